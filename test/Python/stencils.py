# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps on grids, written with pads, slices and updates of the interior, equal JAX's; a cut grid sends only its borders."""

import unittest

from jax_case import JaxCase, PartitionSpec, array, jax, jnp, mesh_of
from jax import lax
import numpy as np

import tessera
from tessera.testing import difference


def padded(u):
    p = jnp.pad(u, 1)
    return 0.25 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:])


def corners(u):
    p = jnp.pad(u, ((1, 2), (2, 1)), constant_values=0.5)
    return p[:-3, :-3] - p[3:, 3:] + p[1:-2, 2:-1] * p[::1, ::1][2:-1, 1:-2]


def interior_set(u):
    return u.at[1:-1, 1:-1].set(0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]))


def interior_add(u):
    return u.at[1:-1, 1:-1].add(0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] - 2 * u[1:-1, 1:-1]))


def wave(u, v):
    v = v + 0.1 * jnp.pad(u[2:] - 2 * u[1:-1] + u[:-2], ((1, 1), (0, 0)))
    return u + v, v


def fields(e, h):
    h = h.at[:-1].add(0.5 * (e[1:] - e[:-1]))
    return e.at[1:].subtract(0.5 * (h[1:] - h[:-1])), h


def ends(x):
    return jnp.concatenate([x[:1], x[1:] - 0.9 * x[:-1]]), jnp.gradient(x, axis=0)


def continued(mode):
    """Nine points of a grid that continues beyond its ends."""
    def fn(u):
        p = jnp.pad(u, 1, mode=mode)
        return sum(p[i:i + u.shape[0], j:j + u.shape[1]] * (1 + i + 3 * j) for i in range(3) for j in range(3))
    return fn


def convolved(mode):
    def fn(u):
        p = jnp.pad(u, ((2, 2), (1, 1)), mode=mode)
        return lax.conv_general_dilated(p[None, None], jnp.arange(15, dtype=u.dtype).reshape(1, 1, 5, 3), (1, 1), "VALID")[0, 0]
    return fn


def rolled(u):
    """All neighbors, also over corners, by rolls."""
    around = [(i, j, k) for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 2)]
    return sum(jnp.roll(u, by, (0, 1, 2)) * (0.1 * i + 0.05) for i, by in enumerate(around))


def fourth_order(u):
    """Second differences along rows and columns, in a loop."""
    def step(_, u):
        return u + 0.1 * sum(4 * (jnp.roll(u, 1, d) + jnp.roll(u, -1, d)) - jnp.roll(u, 2, d) - jnp.roll(u, -2, d) - 6 * u for d in (0, 1))
    return lax.fori_loop(0, 3, step, u)


MODES = ("wrap", "reflect", "symmetric", "edge")


class Stencils(JaxCase):
    grid = array(17, 19)

    def test_pads_and_slices(self):
        self.check(padded, self.grid)
        self.check(corners, self.grid)
        self.check(self.gradient(padded, 0), self.grid)

    def test_interiors(self):
        self.check(interior_set, self.grid)
        self.check(interior_add, self.grid)
        self.check(wave, self.grid, self.grid)
        self.check(fields, self.grid, self.grid)
        self.check(ends, self.grid)

    def test_gradients_of_interiors(self):
        self.check(self.gradient(interior_set, 0), self.grid)
        self.check(self.gradient(lambda e, h: fields(e, h)[0], 0, 1), self.grid, self.grid)

    def test_loops(self):
        self.check(lambda u: lax.fori_loop(0, 3, lambda _, u: interior_add(padded(u)), u), self.grid)

    def test_boxes_at_constant_places(self):
        u, v = array(9, 7), array(2, 3)
        self.check(lambda u, v: (u.at[3:5, 2:5].add(v), u.at[3:5, 2:5].subtract(v), u.at[3:5, 2:5].set(v), u.at[4].add(v[0, 0]),
                                 u.at[8:20, 5:].add(1.0), u.at[-1, -3:].add(v[1])), u, v)
        self.check(lambda u, v: lax.dynamic_update_slice(u, v, (8, 6)), u, v)

    def test_continued_grids(self):
        for mode in MODES:
            self.check(continued(mode), self.grid)
            self.check(convolved(mode), self.grid)
            self.check(self.gradient(continued(mode), 0), self.grid)
            self.check(lambda u, mode=mode: jnp.pad(u, ((3, 2), (0, 4)), mode=mode), self.grid)

    def assert_equal(self, fn, program, *avals):
        values = self.values(avals, 0)
        for got, want in zip(jax.tree.leaves(program(*values)), jax.tree.leaves(jax.jit(fn)(*values))):
            self.assertIsNone(difference(np.asarray(got), want, 16))

    def test_blocks_with_borders(self):
        """Rolls along several dimensions at once, and by several distances, of grids that devices divide."""
        for extents, mesh, cut in (((8, 12, 6), dict(x=2, y=2, z=2), ("x", "y", "z")), ((8, 12, 6), dict(x=2, y=4), ("x", "y")),
                                   ((7, 12, 6), dict(x=2, y=4), ("x", "y"))):
            for fn in (rolled, self.gradient(rolled, 0)):
                program = tessera.from_jax(fn, (array(*extents),), (PartitionSpec(*cut),), mesh=mesh_of(**mesh))
                self.assert_equal(fn, program, array(*extents))
        program = tessera.from_jax(fourth_order, (array(16, 8),), (PartitionSpec("x", "y"),), mesh=mesh_of(x=4, y=2))
        self.assert_equal(fourth_order, program, array(16, 8))
        # Two rows of 8 columns and two columns of 12 rows, the corners with these, in place of what each of 13 rolls moves.
        grid = array(16, 16, 8)
        program = tessera.from_jax(rolled, (grid,), (PartitionSpec("x", "y"),), PartitionSpec("x", "y"), mesh=mesh_of(x=2, y=4))
        self.assertEqual(program.explain()["wire_bytes_total"], 4 * 8 * (2 * 4 + 2 * 10))

    def test_walls_of_two_values(self):
        """Corners have the value of the wall that is added last."""
        def nine_points(u, sides, ends):
            side, end = jnp.full((12, 1), sides), jnp.full((1, 12), ends)
            rows = lambda v: jnp.concatenate([end, v[:-1]]) + jnp.concatenate([v[1:], end])
            left, right = jnp.concatenate([side, u[:, :-1]], 1), jnp.concatenate([u[:, 1:], side], 1)
            return rows(left) + rows(right) + rows(u) + left + right
        u = array(12, 12)
        for sides, ends in ((1., 2.), (0., 2.), (1., 0.), (2., 2.)):
            fn = lambda u: nine_points(u, sides, ends)
            for mesh, cut in ((dict(x=2, y=2), ("x", "y")), (dict(x=2, y=3), ("x", "y")), (dict(x=4), ("x", None))):
                self.assert_equal(fn, tessera.from_jax(fn, (u,), (PartitionSpec(*cut),), mesh=mesh_of(**mesh)), u)

    def test_parts_meet(self):
        u = array(18, 5)
        self.check(lambda u: u[:9] + u[9:], u)
        self.check(lambda u: (u[:6] * jnp.tanh(u[6:12]), u[12:] - u[:6]), u)
        self.check(self.gradient(lambda u: u[:9] * u[9:], 0), u)

    def test_borders_alone_are_sent(self):
        mesh, rows = mesh_of(s=8), PartitionSpec("s")
        row = 24 * 4

        def sent(fn, *args):
            specs = jax.tree.map(lambda _: rows, args)
            outs = jax.tree.map(lambda _: rows, jax.eval_shape(fn, *args))
            return tessera.from_jax(fn, args, specs, outs, mesh=mesh).explain(objective="bytes")["wire_bytes_total"]
        grid = array(64, 24)
        for fn, rows_sent in ((padded, 2), (interior_set, 2), (interior_add, 2)):
            self.assertEqual(sent(fn, grid), rows_sent * row, fn.__name__)
        self.assertEqual(sent(wave, grid, grid), 2 * row)
        self.assertEqual(sent(fields, grid, grid), 2 * row)
        self.assertEqual(sent(lambda x: ends(x)[0], grid), row)
        self.assertEqual(sent(lambda u, g: jax.vjp(padded, u)[1](g)[0], grid, grid), 2 * row)
        for mode in MODES:
            self.assertEqual(sent(continued(mode), grid), 2 * row, mode)
            self.assertEqual(sent(convolved(mode), grid), 4 * row, mode)
        self.assertEqual(sent(lambda u: u[:32] + u[32:], grid), 8 * row)


if __name__ == "__main__":
    unittest.main()
