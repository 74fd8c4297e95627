# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scan, while, cond, checkpoint and calls equal JAX's."""

import unittest
import warnings

from jax_case import I, JaxCase, array, jax, jnp, np
from jax import lax
from jax.ad_checkpoint import checkpoint_name

import tessera
from tessera.testing import difference


class Loops(JaxCase):
    c, xs = array(6), array(5, 6)

    def test_scan(self):
        self.check(lambda c, xs: lax.scan(lambda c, x: (c * 0.5 + x, (c, x * 2)), c, xs), self.c, self.xs)

    def test_no_steps(self):
        self.check(lambda c, xs: lax.scan(lambda c, x: (c + x, c * 2), c, xs[:0]), self.c, self.xs)

    def test_backwards(self):
        self.check(lambda c, xs: lax.scan(lambda c, x: (jnp.tanh(c + x), c), c, xs, reverse=True), self.c, self.xs)

    def test_gradient(self):
        self.check(self.gradient(lambda c, xs: lax.scan(lambda c, x: (jnp.tanh(c + x), c * x), c, xs)[1], 0, 1), self.c, self.xs)

    def test_counted(self):
        self.check(lambda a: lax.fori_loop(0, 5, lambda i, c: c + i * a, a), self.c)

    def test_while(self):
        self.check(lambda a: lax.while_loop(lambda c: c[0].sum() < 20, lambda c: (c[0] * 1.5, c[1] + 1), (jnp.abs(a) + 0.1, 0)), self.c)

    def test_lanes_that_end_one_by_one(self):
        self.check(jax.vmap(lambda a: lax.while_loop(lambda c: jnp.sum(c) < 9, lambda c: c * 1.4 + 1, a)), array(6, 4))
        self.check(jax.vmap(lambda a, n: lax.fori_loop(0, n, lambda i, c: c * 2, a)), array(6, 4), array(6, dtype=I))

    def test_nested(self):
        def outer(c, x):
            return lax.scan(lambda d, y: (d * 0.9 + y * x.sum(), None), c, jnp.stack([x, x * 2]))
        self.check(lambda c, xs: lax.scan(lambda c, x: (outer(c, x)[0], c.sum()), c, xs), self.c, self.xs)


class Branches(JaxCase):
    def test_cond(self):
        self.check(lambda a: lax.cond(a[0] > 0, lambda a: a + 1, lambda a: a * 2, a), array(6))

    def test_switch(self):
        branches = [lambda a: a, lambda a: a * 2, lambda a: a * 3]
        self.check(lambda a, i: lax.switch(i, branches, a), array(6), array(dtype=I))

    def test_gradient(self):
        self.check(self.gradient(lambda a: lax.cond(a[0] > 0, lambda a: a * a, lambda a: a * 2, a), 0), array(6))


class Calls(JaxCase):
    def test_checkpoint(self):
        self.check(self.gradient(jax.checkpoint(lambda a: jnp.tanh(jnp.sin(a))), 0), array(6))

    def test_custom_derivatives(self):
        @jax.custom_vjp
        def f(x):
            return jnp.sin(x)
        f.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * 3 * jnp.cos(x),))
        self.check(self.gradient(f, 0), array(6))

    def test_platforms(self):
        """Branches that JAX takes by platform are those of the host."""
        self.check(lambda x: lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x * 2), array(3, 4))
        self.check(lambda x: (jnp.trace(x), jnp.diag(x)), array(4, 4))


class Checkpoints(JaxCase):
    """jax.checkpoint imports with one warning if a derivative would rematerialize; names are preserved."""

    def warned(self, fn, *args):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            program = tessera.from_jax(fn, args)
        return program, [w for w in caught if issubclass(w.category, tessera.TesseraWarning)]

    def test_warning(self):
        x = np.linspace(-1, 1, 6, dtype=np.float32)

        def fn(x):
            for _ in range(3):
                x = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x)
            return x.sum()
        program, (warning,) = self.warned(jax.grad(fn), x)
        self.assertRegex(str(warning.message), "^jax.checkpoint is not honored")
        self.assertEqual((warning.filename, warning.lineno), (__file__, fn.__code__.co_firstlineno + 2))
        self.assertIsNone(difference(program(x), np.asarray(jax.grad(fn)(x))))

    def test_none_in_the_loop_of_derivatives(self):
        """The layers of a scan are computed again: their intermediate values are not in memory."""
        def loss(layer):
            return lambda w, x: jnp.sum(lax.scan(lambda c, w: (layer(c, w), None), x, w)[0])
        layer = lambda c, w: jnp.sin(jnp.sin(jnp.sin(c @ w) * 2) + 1)
        values = self.values((array(6, 8, 8), array(512, 8)), 5)
        peaks = []
        for each in (layer, jax.checkpoint(layer)):
            fn = jax.grad(loss(each))
            program, found = self.warned(fn, *values)
            self.assertEqual(found, [])
            self.assertIsNone(difference(program(*values), np.asarray(jax.grad(loss(layer))(*values)), 8))
            peaks.append(program.explain()["peak_memory_bytes"])
        self.assertLess(2 * peaks[1], peaks[0])

    def test_warning_in_a_loop(self):
        """Of micro-batches: the forward pass and its derivative are in one iteration."""
        layer = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
        total = lambda xs: lax.scan(lambda c, x: (c + jax.grad(lambda x: layer(layer(x)).sum())(x), None), jnp.zeros(6), xs)[0]
        _, (warning,) = self.warned(total, array(4, 6))
        self.assertRegex(str(warning.message), "^jax.checkpoint is not honored")

    def test_none_without_a_derivative(self):
        _, found = self.warned(jax.checkpoint(lambda x: jnp.sin(x)), array(6))
        self.assertEqual(found, [])

    def test_names(self):
        named = lambda x: checkpoint_name(jnp.sin(x), "s") * 2
        self.check(named, array(6))
        policy = jax.checkpoint_policies.save_only_these_names("s")
        _, found = self.warned(self.gradient(jax.checkpoint(named, policy=policy), 0), array(6))
        self.assertEqual(found, [])  # the derivative computes nothing again


if __name__ == "__main__":
    unittest.main()
