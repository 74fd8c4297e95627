# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Unsupported programs are errors with the user's line, one for all unknown primitives."""

import unittest
from unittest import mock

from jax_case import array, jax, jnp, mesh_of, np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P

import tessera
from tessera.jax import ImportFailure


def line_of(function, offset):
    return f"refusals.py:{function.__code__.co_firstlineno + offset}:"


class Refusals(unittest.TestCase):
    def refused(self, fn, args, *parts, **options):
        with self.assertRaises(ImportFailure) as caught:
            tessera.from_jax(fn, args, **options)
        for part in parts:
            self.assertIn(part, str(caught.exception))

    def test_unknown_primitives(self):
        def fn(x):
            y = jax.pure_callback(np.sin, x, x)
            return y + lax.linalg.schur(x)[0]
        self.refused(fn, (array(3, 3),), line_of(fn, 1), "primitive 'pure_callback' is not supported; also 'schur' at ", line_of(fn, 2)[:-1])

    def test_unknown_primitives_inside_loops(self):
        def fn(x):
            return lax.fori_loop(0, 3, lambda i, c: lax.linalg.schur(c)[0], x)
        self.refused(fn, (array(3, 3),), line_of(fn, 1), "'schur'")

    def test_unknown_primitives_that_a_rule_meets(self):
        """Those of a generator of random numbers are found when its program is traced."""
        def fn(key):
            return jax.random.uniform(key, (4,))
        with mock.patch.dict("tessera.jax.registry.RULES"):
            del tessera.jax.registry.RULES["threefry2x32"]
            self.refused(fn, (jax.random.key(0),), line_of(fn, 1), "primitive 'threefry2x32' is not supported")

    def test_primitives_without_a_rule(self):
        """Unsupported primitives are named in the error."""
        for fn, args, name in ((lambda x: jax.pure_callback(np.sin, x, x), (array(4),), "pure_callback"),
                               (lambda x: lax.linalg.schur(x)[0], (array(4, 4),), "schur")):
            self.refused(fn, args, f"primitive '{name}' is not supported")
        self.refused(lambda x: jnp.linalg.eigvals(x).real, (array(4, 4),), "primitive 'eig' of complex values is not supported")

    def test_a_scatter_by_two_values(self):
        """JAX has no public way to it."""
        from jax._src.lax import lax as internal, slicing
        numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        jaxpr, consts = internal._reduction_jaxpr(lambda x, y: x * 2 + y, jax.typeof(np.float32(0)))

        def fn(x):
            return slicing.scatter_p.bind(x, np.zeros((1, 1), np.int32), x[:1], update_jaxpr=jaxpr, update_consts=consts, dimension_numbers=numbers,
                                          indices_are_sorted=False, unique_indices=False, mode=lax.GatherScatterMode.CLIP)
        self.refused(fn, (array(3),), line_of(fn, 1), "'scatter' with a function of the element and the update is not supported")

    def test_a_fault_of_the_importer(self):
        def fn(x):
            return jnp.sin(x)
        with mock.patch.dict("tessera.jax.registry.RULES", sin=lambda ctx, eqn, x: ctx.b.constant(0, "f32")):
            with self.assertRaisesRegex(tessera.InternalError, rf"refusals.py:{fn.__code__.co_firstlineno + 1}:\d+: error: internal error: .*report it"):
                tessera.from_jax(fn, (array(3),))

    def test_types(self):
        self.refused(lambda x: lax.cumlogsumexp(x), (array(3, dtype=jnp.complex64),), "primitive 'cumlogsumexp' of complex values is not supported")

        def fn(x):
            return jnp.real(lax.cumlogsumexp(jnp.fft.fft(x)))
        self.refused(fn, (array(3),), line_of(fn, 1), "'cumlogsumexp' of complex values")

    def test_types_on_the_way(self):
        def fn(x):
            y = x * 2
            return y.astype(jnp.float8_e4m3fn).astype(jnp.float32)
        self.refused(fn, (array(3),), line_of(fn, 2), "result of 'convert_element_type' has type float8_e4m3fn[3]; element types are")

    def test_names_that_need_quotes(self):
        program = tessera.from_jax(lambda d: d['a"b\n'] + 1, ({'a"b\n': array(3)},))
        self.assertEqual([a["name"] for a in program.explain()["arguments"]], [program.inputs[0].name])

    def test_a_leaked_tracer(self):
        kept = []
        jax.jit(lambda x: kept.append(x))(1.0)

        def fn(x):
            return x + kept[0]
        self.refused(fn, (array(),), line_of(fn, 1), "a tracer")

    def test_another_mesh(self):
        a, b = mesh_of(d=8), mesh_of(d=2, t=4)

        def fn(x):
            return lax.with_sharding_constraint(x * 2, NamedSharding(b, P("t")))
        self.refused(fn, (array(8),), line_of(fn, 1), "on mesh (d=2, t=4)", "the program on (d=8)", in_shardings=NamedSharding(a, P("d")))

    def test_shardings(self):
        mesh = mesh_of(d=8)
        self.refused(lambda x: x, (array(8),), "has P('q',)", "no axis 'q'", in_shardings=P("q"), mesh=mesh)
        self.refused(lambda x: x, (array(8),), "of rank 1", in_shardings=P("d", None), mesh=mesh)
        self.refused(lambda x: x, (array(8),), "without a mesh", in_shardings=P("d"))
        self.refused(lambda x: x, (array(8),), "mesh is a list", "tessera.ProcessMesh", in_shardings=P("d"), mesh=[8])
        self.refused(lambda x, y: x, (array(8), array(8)), "in_shardings do not match", in_shardings=(P(),), mesh=mesh)

    def test_how_many_shardings(self):
        mesh = mesh_of(d=8)
        self.refused(lambda x, y: x, (array(8), array(8)), "in_shardings do not match the arguments: 1 for 2 arguments; give one for each, or one "
                     "sharding for all of them", in_shardings=(P(),), mesh=mesh)
        self.refused(lambda x: x, ({"a": array(8)},), "in_shardings do not match the arguments: each entry is a sharding",
                     in_shardings=({"b": P()},), mesh=mesh)

    def test_arguments_are_a_tuple(self):
        self.refused(lambda x: x, array(8), "refusals.py:25:", "error: args of from_jax is a ", "not a tuple of arguments; write (x,)")

    def test_a_mesh_alone(self):
        """All values are replicated on it, unless a search cuts them."""
        program = tessera.from_jax(lambda x: x + 1, (array(8, 4),), mesh=tessera.ProcessMesh(range(2), ["d"]))
        self.assertEqual([a["sharding"] for a in program.explain()["arguments"]], ["#dist.sharding<@mesh, [replicate]>"])
        self.assertEqual([a["sharding"] for a in program.explain(search="dynamic_programming")["arguments"]], ["#dist.sharding<@mesh, [shard(0)]>"])

    def test_a_mesh_of_tessera(self):
        mesh = tessera.ProcessMesh([3, 1, 2, 0], ["d"])
        text = str(tessera.from_jax(lambda x: x, (array(8),), P("d"), mesh=mesh))
        self.assertIn("shape = [4]", text)
        self.assertIn("[3, 1, 2, 0]", text)

    def test_shapes_that_jax_refuses(self):
        with self.assertRaises(TypeError):
            tessera.from_jax(lambda x, y: x + y, (array(3), array(4)))

    def test_calls(self):
        program = tessera.from_jax(lambda x: x * 2, (array(3),))
        for args, message in (((np.zeros(3, np.float32), 1), "'<lambda>' takes 1 argument, got 2"),
                              (({"a": np.zeros(3, np.float32)},), "argument 0 of '<lambda>' has the structure {'a': *}; the program was imported for *"),
                              ((np.zeros(4, np.float32),), "argument 'x' has shape (4,), the program takes (3,)"),
                              ((np.zeros(3),), "argument 'x' is float64, the program takes float32; convert it with astype")):
            with self.assertRaises(tessera.Error) as caught:
                program(*args)
            self.assertRegex(str(caught.exception), r"^\S*refusals.py:\d+:\d+: error: ")
            self.assertIn(message, str(caught.exception))

    def test_calls_by_name(self):
        program, x, y = tessera.from_jax(lambda x, y: x - y, (array(3), array(3))), np.ones(3, np.float32), np.zeros(3, np.float32)
        for values in (program(y=y, x=x), program(x, y=y)):
            np.testing.assert_array_equal(values, x)
        for args, names, message in (((x,), {"z": y}, "'<lambda>' has no argument 'z'"), ((x,), {"x": y}, "is given the argument 'x' by position and by name"),
                                     ((), {"x": y}, "is called without the argument 'y'")):
            with self.assertRaisesRegex(ImportFailure, r"refusals.py:\d+:\d+: error: .*" + message):
                program(*args, **names)

    def test_functions_of_jax(self):
        for function, message in ((lambda x: jnp.sin(x), "'jnp.sin' takes JAX's arrays, not tensors of tessera; use ts.sin"),
                                  (lambda x: jnp.linalg.norm(x), "'jnp.linalg.norm' takes JAX's arrays, not tensors of tessera; compute on tensors")):
            with self.assertRaisesRegex(tessera.DTypeError, r"refusals.py:\d+:\d+: error: " + message):
                tessera.jit(function)(np.ones(3, np.float32))


if __name__ == "__main__":
    unittest.main()
