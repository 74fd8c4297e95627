# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gathers, scatters and slices at computed indices, also out of bounds, equal JAX's."""

import unittest

from jax_case import I, JaxCase, array, jax, jnp, mesh_of, np
from jax import lax

from tessera import from_jax


class Gathers(JaxCase):
    a, i = array(5, 6), array(3, dtype=I)

    def test_lookup(self):
        self.check(lambda a, i: (a[i], a[:, i], jnp.take(a, i, axis=1)), self.a, self.i)

    def test_modes(self):
        self.check(lambda a, i: (jnp.take(a, i, axis=0, mode="clip"), jnp.take(a, i, axis=0, mode="fill"), a[i]), self.a, self.i, below=8)

    def test_unsigned_indices_beyond_what_signed_ones_reach(self):
        n = array(7, dtype=jnp.uint32)
        self.check(lambda a, i: (jnp.take(a, i, axis=0, mode="clip"), jnp.take(a, i, axis=0, mode="fill")), self.a, n, below=4_000_000_000)

    def test_several_indices(self):
        self.check(lambda a, i: (a[i, i], a[i, 1:3], a[i[:, None], i[None]]), self.a, self.i)

    def test_short_and_long_dimensions(self):
        """Short dimensions use comparisons with the index, long ones a read at the index; also if one tensor has both."""
        i = array(9, dtype=I)
        for shape in ((4, 16), (16, 4), (3, 12, 5), (12, 3, 20), (16, 16)):
            self.check(lambda a, i: (a[i, i], a[i, i].sum(-1), a[i[:4], 1]), array(*shape), i, below=3)
        self.check(lambda a, i: a[jnp.arange(4), i[:4]], array(4, 16), i, below=16)
        self.check(lambda a, i: (a[i, i, i], a[i, :, i]), array(4, 8, 16), i, below=4)
        self.check(self.gradient(lambda a, i: a[i, i], 0), array(4, 16), i, below=4)

    def test_dimensions_that_a_cut_makes_short(self):
        for devices in (2, 4, 8):
            mesh = jax.sharding.AbstractMesh((devices,), ("d",))
            cut = jax.sharding.PartitionSpec("d")
            for f in (lambda a, i: a[i, i], self.gradient(lambda a, i: a[i, i] * 2, 0)):
                values = self.values((array(16, 16, 3), array(9, dtype=I)), 16)
                made = from_jax(f, values, (cut, None), mesh=mesh)
                np.testing.assert_allclose(np.asarray(made(*values)), np.asarray(f(*values)), rtol=1e-6, atol=1e-6)

    def test_updates_of_rows_of_a_cut_dimension_have_gradients(self):
        """The dispatch of a mixture of experts: rows are added at (expert, slot), experts are cut."""
        mesh = jax.sharding.AbstractMesh((4,), ("d",))
        f = jax.grad(lambda b, i, j, w: jnp.sum(jnp.zeros((8, 16, 6)).at[i, j].add(b) * w))
        values = (*self.values((array(32, 6),), 5), *self.values((array(32, dtype=I),), 8), *self.values((array(32, dtype=I),), 16),
                  *self.values((array(8, 16, 6),), 5))
        made = from_jax(f, values, (None, None, None, jax.sharding.PartitionSpec("d")), mesh=mesh)
        np.testing.assert_allclose(np.asarray(made(*values)), np.asarray(f(*values)), rtol=1e-6, atol=1e-6)

    def test_along_an_axis(self):
        self.check(lambda a, i: (jnp.take_along_axis(a, i, 1), jnp.take_along_axis(a, i, 1, mode="fill")), array(4, 6),
                   array(4, 3, dtype=I), below=8)

    def test_gradients(self):
        self.check(self.gradient(lambda a, i: a[i] * 2, 0), self.a, array(3, 4, dtype=I))
        self.check(self.gradient(lambda a, i: jnp.take_along_axis(a, i, 1), 0), array(4, 6), array(4, 3, dtype=I))
        self.check(self.gradient(lambda a, i: a[i, i[::-1]], 0), self.a, self.i)


class Scatters(JaxCase):
    a, i, u = array(5, 6), array(3, dtype=I), array(3, 6)

    def test_combined(self):
        self.check(lambda a, i, u: (a.at[i].add(u), a.at[i].subtract(u), a.at[i].max(u), a.at[i].min(u), a.at[i].multiply(u)),
                   self.a, self.i, self.u, below=7)

    def test_places(self):
        self.check(lambda a, i, u: (a.at[:, i].add(1.0), a.at[0].set(1.0), a.at[1:3].set(0.0), a.at[1, 2].add(3.0)), self.a, self.i, self.u)

    def test_last_one_wins(self):
        self.check(lambda a, i, u: a.at[i].set(u), self.a, self.i, self.u)

    def test_a_step_of_a_cache_writes_rows_of_it_alone(self):
        """Cut over sequences, positions or heads, nothing of the cache is sent; out of bounds nothing is written."""
        def step(cache, position, x):
            return cache.at[jnp.arange(4), position].set(x)
        avals = array(4, 24, 6, 3), array(4, dtype=I), array(4, 6, 3)
        cache, _, x = self.values(avals, 24)
        for positions in ([5, 0, 23, 7], [5, 5, 40, -1]):
            values = cache, np.array(positions, np.int32), x
            for spec in (("x",), (None, "x"), (None, None, "x"), (None, ("x", "y"))):
                spec = jax.sharding.PartitionSpec(*spec)
                made = from_jax(step, avals, (spec, None, None), spec, mesh=mesh_of(x=2, y=3))
                np.testing.assert_array_equal(np.asarray(made(*values)), np.asarray(step(*map(jnp.asarray, values))))
                self.assertEqual(made.explain()["wire_bytes_total"], 0)

    def test_products_with_one_hot_rows(self):
        """They are look-ups and scatters: a table cut by rows sends contributions to the result, as a gather does."""
        spec = jax.sharding.PartitionSpec
        mesh = jax.sharding.AbstractMesh((4,), ("d",))
        hot = lambda table, i: jax.nn.one_hot(i, 50) @ table
        avals = array(50, 6), array(20, dtype=I)
        values = self.values(avals, 50)
        made = [from_jax(f, avals, (spec("d"), spec()), spec("d"), mesh=mesh) for f in (hot, lambda table, i: table[i])]
        for program in made:
            np.testing.assert_array_equal(np.asarray(program(*values)), values[0][values[1]])
        self.assertEqual(*[program.explain()["wire_bytes_total"] for program in made])
        self.check(hot, *avals, below=60)
        self.check(self.gradient(lambda table, i: jnp.sin(hot(table, i)), 0), *avals, below=60)
        self.check(lambda x, i: (jax.nn.one_hot(i, 50).T @ x, jnp.einsum("iv,iv->i", jax.nn.one_hot(i, 50), x @ x.T @ x[:, :1] * jnp.ones((20, 50)))),
                   array(20, 20), array(20, dtype=I), below=50)

    def test_segments(self):
        self.check(lambda u, i: jax.ops.segment_sum(u, i, 5), array(7, 3), array(7, dtype=I))


class Slices(JaxCase):
    def test_dynamic(self):
        self.check(lambda a, i: (lax.dynamic_slice(a, (i, i), (2, 3)), a[i], lax.dynamic_index_in_dim(a, i, 1),
                                 lax.dynamic_update_slice(a, jnp.ones((2, 2)), (i, 0))), array(5, 6), array(dtype=I), below=7)

    def test_whole_dimensions_of_slices_may_be_cut(self):
        """jnp computes a clamped start for them, too; a loop that fills column after column of a cut buffer sends nothing."""
        def decode(x):
            body = lambda t, i: (t.at[:, i + 1].set(t[:, i] + x[:, 0]), None)
            return lax.scan(body, jnp.zeros((64, 12)), jnp.arange(11))[0]
        values = self.values((array(64, 3),), 5)
        program = from_jax(decode, values, (jax.sharding.PartitionSpec("d"),), mesh=mesh_of(d=4))
        np.testing.assert_allclose(np.asarray(program(*values)), np.asarray(decode(*values)), rtol=1e-6)
        self.assertEqual(program.explain()["wire_bytes_total"], 0)

    def test_a_slice_a_row(self):
        self.check(lambda a, i: jax.vmap(lambda r, j: lax.dynamic_slice(r, (j,), (3,)))(a, i), array(5, 6), array(5, dtype=I), below=7)
        self.check(lambda a, i, u: jax.vmap(lambda r, j, v: lax.dynamic_update_slice(r, v, (j,)))(a, i, u), array(5, 6),
                   array(5, dtype=I), array(5, 2), below=7)


    def test_apply(self):
        """`.at[].apply(f)`: applies f once per occurrence of an index, and not for indices out of range."""
        x, i = array(5, 4), array(3, dtype=I)
        repeated = np.array([2, 0, 2], np.int32)
        for f in (jnp.sin, lambda v: 2 * v + 1, lambda v: jnp.where(v > 0, v, -v) ** 0.5):
            self.check(lambda x, i, f=f: (x.at[i].apply(f), x.at[1:3, 2].apply(f), x.at[-1, -1].apply(f), x.at[i, 1].apply(f)), x, i,
                       values=self.values((x,), 5) + (repeated,))
        self.check(lambda x, i: (x.at[i].apply(jnp.exp), x.at[i].apply(jnp.exp, mode="clip")), x, i,
                   values=self.values((x,), 5) + (np.array([9, 1, -7], np.int32),))
        self.check(lambda x: x.at[jnp.array([1, 1, 1])].apply(lambda v: v * 3 + 1), array(4, dtype=I))


if __name__ == "__main__":
    unittest.main()
