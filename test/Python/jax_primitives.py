# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Primitives of other packages import as what evaluates them; checks that only raise become NaN."""

import unittest
import warnings

from jax_case import I, JaxCase, array, jax, jnp, np
from jax import lax
from jax.experimental import sparse
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

import tessera


def primitive(name, impl, several=False):
    """A primitive as other packages define them: evaluated and lowered by a function of arrays."""
    made = Primitive(name)
    made.multiple_results = several
    made.def_impl(impl)

    def abstract(*avals, **parameters):
        found = jax.eval_shape(lambda *x: impl(*x, **parameters), *avals)
        return jax.tree.map(lambda s: jax.core.ShapedArray(s.shape, s.dtype), found)
    made.def_abstract_eval(abstract)
    mlir.register_lowering(made, mlir.lower_fun(impl, multiple_results=several))
    return made


# With a derivative, which is another primitive, and batching.
scaled = primitive("test_scaled", lambda x, y, *, times: jnp.tanh(x) * y * times)
scaled_slope = primitive("test_scaled_slope", lambda x, t: (1 - jnp.tanh(x) ** 2) * t)
ad.defjvp(scaled, lambda t, x, y, times: scaled_slope.bind(x, t * y * times), lambda t, x, y, times: jnp.tanh(x) * t * times)
ad.primitive_jvps[scaled_slope] = lambda primals, tangents: (_ for _ in ()).throw(NotImplementedError())
ad.primitive_transposes[scaled_slope] = lambda g, x, t: (None, scaled_slope.bind(x, g))
for each in (scaled, scaled_slope):
    batching.defbroadcasting(each)

# Of every lane at once, whatever is mapped over.
any_lane = primitive("test_any_lane", jnp.any)
batching.primitive_batchers[any_lane] = lambda values, axes: (any_lane.bind(*values), None)

# Evaluates itself on halves, with other parameters.
halves = primitive("test_halves", lambda x, *, depth: jnp.sort(x) if not depth else jnp.concatenate(
    [halves.bind(x[:3], depth=depth - 1), halves.bind(x[3:], depth=depth - 1)]))

spectrum = primitive("test_spectrum", lambda x: [jnp.fft.fft(x).real, jnp.fft.fft(x).imag], several=True)


class Primitives(JaxCase):
    def test_values(self):
        self.check(lambda x, y: scaled.bind(x, y, times=3.0), array(5, 4), array(5, 4))
        self.check(lambda x: halves.bind(x, depth=2), array(14))
        self.check(lambda x: spectrum.bind(x), array(6))

    def test_specs_of_64_bits(self):
        """As JAX traces them without jax_enable_x64: with 32."""
        program = tessera.from_jax(lambda x: jnp.pad(x, 1), (jax.ShapeDtypeStruct((3, 4), np.int64),))
        x = np.arange(12, dtype=np.int32).reshape(3, 4)
        np.testing.assert_array_equal(np.asarray(program(x)), np.pad(x, 1))

    def test_derivatives(self):
        self.check(self.gradient(lambda x, y: scaled.bind(x, y, times=2.0), 0, 1), array(5, 4), array(5, 4))

    def test_batching(self):
        self.check(jax.vmap(lambda x, y: scaled.bind(x, y, times=2.0) + any_lane.bind(x > 1)), array(5, 4), array(5, 4))

    def test_in_loops_and_branches(self):
        step = lambda c, x: (scaled.bind(c, x, times=0.5), lax.cond(any_lane.bind(c > 0), lambda: x, lambda: scaled.bind(x, x, times=1.0)))
        self.check(lambda c, xs: lax.scan(step, c, xs), array(4), array(5, 4))
        self.check(self.gradient(lambda c, xs: lax.scan(step, c, xs)[1], 0, 1), array(4), array(5, 4))
        self.check(lambda c: lax.while_loop(lambda c: ~any_lane.bind(c > 9), lambda c: c + jnp.abs(scaled.bind(c, c, times=1.0)) + 1, c), array(4))

    def refused(self, fn, *args):
        with self.assertRaises(tessera.jax.ImportFailure) as caught:
            tessera.from_jax(fn, args)
        return str(caught.exception)

    def test_lowered(self):
        """What jit runs counts, also where evaluation outside of it needs values."""
        on_host = primitive("test_lowered", jnp.sin)
        on_host.def_impl(lambda x: jnp.asarray(np.sin(np.asarray(x))))
        self.check(lambda x: on_host.bind(x) + 1, array(4))

    def test_refused(self):
        on_host = primitive("test_on_host", lambda x: jnp.sin(x))
        on_host.def_impl(lambda x: jnp.asarray(np.sin(np.asarray(x))))
        mlir.register_lowering(on_host, lambda ctx, x: [x])  # of another kind
        self.assertRegex(self.refused(lambda x: on_host.bind(x) + 1, array(4)), rf"^{__file__}:\d+:\d+: error: primitive 'test_on_host' is not supported$")
        endless = primitive("test_endless", lambda x: x)
        endless.def_impl(lambda x: endless.bind(x))
        mlir.register_lowering(endless, lambda ctx, x: [x])
        self.assertRegex(self.refused(lambda x: endless.bind(x), array(4)), "primitive 'test_endless' is not supported$")
        callback = lambda x: jax.pure_callback(lambda x: np.sin(x), x, x)
        self.assertRegex(self.refused(callback, array(4)), "primitive 'pure_callback' is not supported$")
        raises = lambda x: jax.pure_callback(raise_error, x, x)
        self.assertRegex(self.refused(raises, array(4)), "primitive 'pure_callback' is not supported$")  # always


def raise_error(*_):
    raise ValueError("too large")


def checked(x, bad):
    """As packages check values in a compiled program."""
    return lax.cond(bad, lambda x: jax.pure_callback(raise_error, x, x), lambda x: x, x)


class Sparse(JaxCase):
    def test_products(self):
        dense = np.where(np.arange(30).reshape(6, 5) % 3 == 0, np.linspace(-1, 1, 30).reshape(6, 5), 0).astype(np.float32)
        entries, x = sparse.BCOO.fromdense(dense), np.linspace(0, 2, 15).reshape(5, 3).astype(np.float32)
        rows = sparse.BCSR.from_bcoo(entries)
        self.check(lambda a, x: a @ x, entries, x)
        self.check(lambda a, x: x.T @ a.T, entries, x)
        self.check(lambda data, x: sparse.BCSR((data, rows.indices, rows.indptr), shape=rows.shape) @ x, rows.data, x)

        def loss(data, x):
            return jnp.sum((sparse.BCOO((data, entries.indices), shape=entries.shape) @ x) ** 2)
        self.check(jax.grad(loss, (0, 1)), entries.data, x)


class Debugging(unittest.TestCase):
    def test_left_out(self):
        def fn(x):
            def body(carry, _):
                jax.debug.print("{}", carry[0])
                return carry * 2, jnp.sum(carry)
            jax.debug.callback(print, x)
            return lax.scan(body, x, None, length=3)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            program = tessera.from_jax(jax.jit(fn), (array(4),))
        self.assertEqual([str(w.message)[:41] for w in caught], ["jax.debug.print and jax.debug.callback ar"])
        x = np.ones(4, np.float32)
        last, sums = program(x)
        np.testing.assert_array_equal(last, x * 8)
        np.testing.assert_array_equal(sums, [4, 8, 16])


class Checks(JaxCase):
    def imported(self, fn, *args):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            program = tessera.from_jax(fn, args)
        return program, [w for w in caught if issubclass(w.category, tessera.TesseraWarning)]

    def test_floats_are_nan(self):
        program, (warning,) = self.imported(lambda x, n: checked((jnp.sin(x), n), x.max() > 1), array(5), array(dtype=I))
        self.assertRegex(str(warning.message), rf"^a program cannot raise: where the check 'raise_error' of {__file__}:\d+ would, ")
        self.assertEqual((warning.filename, warning.lineno), (__file__, checked.__code__.co_firstlineno + 2))
        x = np.linspace(-1, 1, 5, dtype=np.float32)
        y, n = program(x, np.int32(7))
        np.testing.assert_allclose(y, np.sin(x), rtol=1e-6)
        self.assertEqual(n, 7)
        y, n = program(x * 2, np.int32(7))
        self.assertTrue(np.isnan(y).all())
        self.assertEqual(n, 7)

    def test_others_of_a_switch(self):
        """The branch that raises is not the last one; an index out of range takes the nearest."""
        def fn(x, i):
            return lax.switch(i, [lambda x: x + 1, lambda x: jax.pure_callback(raise_error, x, x), lambda x: x * 2], x)
        program, (warning,) = self.imported(fn, array(3), array(dtype=I))
        x = np.ones(3, np.float32)
        self.assertEqual([program(x, np.int32(i))[0].item() if i != 1 else np.isnan(program(x, np.int32(i))).all() for i in (-4, 0, 1, 2, 9)],
                         [2, 2, True, 2, 2])

    def test_one_warning(self):
        """Checks whose result is not used say nothing."""
        _, (warning,) = self.imported(lambda x: checked(x, x[0] > 1) + checked(x * 2, x[1] > 1), array(5))
        _, found = self.imported(lambda x: (checked(x, x[0] > 1), x * 2)[1], array(5))
        self.assertEqual(found, [])

    def test_in_a_loop(self):
        program, (warning,) = self.imported(lambda x: lax.fori_loop(0, 3, lambda i, x: checked(x * 2, x.max() > 100), x), array(4))
        self.assertEqual(program(np.ones(4, np.float32)).tolist(), [8] * 4)
        self.assertTrue(np.isnan(program(np.full(4, 60, np.float32))).all())


if __name__ == "__main__":
    unittest.main()
