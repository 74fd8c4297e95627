# RUN: %tessera_python %s
# REQUIRES: python, jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lax.scan and lax.map along a cut dimension: each device computes its iterations and passes on its last state."""

import unittest

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AbstractMesh, PartitionSpec as P

import tessera as ts

LENGTH, BATCH, WIDTH, STATE = 64, 4, 8, 4
ROWS, COLUMNS = P("d"), P(None, "d")


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * 0.5


def recurrence(a, b, reverse=False):
    return lax.scan(lambda h, ab: (h * ab[0] + ab[1],) * 2, jnp.ones((BATCH, WIDTH)), (a, b), reverse=reverse)


def selective(x, step, a, b, c):
    """Mamba's first form."""
    def advance(h, at):
        x, step, b, c = at
        h = h * jnp.exp(-jnp.abs(step)[:, :, None] * jnp.abs(a)) + (step * x)[:, :, None] * b[:, None]
        return h, jnp.einsum("bdn,bn->bd", h, c)
    time_first = lambda t: t.swapaxes(0, 1)
    return time_first(lax.scan(advance, jnp.zeros((BATCH, WIDTH, STATE)), tuple(map(time_first, (x, step, b, c))))[1])


def retention(r, k, v, w):
    def step(state, at):
        r, k, v, w = at
        update = k[..., None] * v[..., None, :]
        return state * jnp.exp(-jnp.exp(w))[..., None] + update, jnp.einsum("bhk,bhkv->bhv", r, state + update)
    return lax.scan(step, jnp.zeros((2, 4, 8, 8)), tuple(t.swapaxes(0, 1) for t in (r, k, v, w)))[1].swapaxes(0, 1)


def counted(x):
    """A state that a counter resets, which another state adds up."""
    def step(carry, x):
        n, h, g = carry
        n = n + 1
        h = h * jnp.where(n % 3 == 0, 0., .9) + x
        g = g * .5 + h * n
        return (n, h, g), (h, g)
    return lax.scan(step, (jnp.zeros(()), jnp.zeros((BATCH, WIDTH)), jnp.ones((BATCH, WIDTH))), x)


def accumulated(x, y, w):
    add = lambda g, xy: (g + jax.grad(lambda w: ((jnp.tanh(xy[0] @ w) - xy[1]) ** 2).mean())(w), None)
    return lax.scan(add, jnp.ones_like(w), (x, y))[0]


def advantages(rewards, values):
    def step(carry, at):
        sum, following = carry
        reward, value = at
        sum = reward + .99 * following - value + .9 * sum
        return (sum, value), sum
    return lax.scan(step, (jnp.zeros(BATCH), values[-1]), (rewards, values), reverse=True)[1]


rows = lambda seed=0: draw(LENGTH, BATCH, WIDTH, seed=seed)
PROGRAMS = {
    "recurrence": (recurrence, (rows(), rows(1)), (ROWS, ROWS)),
    "reverse": (lambda a, b: recurrence(a, b, reverse=True), (rows(), rows(1)), (ROWS, ROWS)),
    "average": (lambda x: lax.scan(lambda h, x: (.9 * h + .1 * x,) * 2, jnp.zeros((BATCH, WIDTH)), x), (rows(),), (ROWS,)),
    "selective": (selective, (draw(BATCH, LENGTH, WIDTH), draw(BATCH, LENGTH, WIDTH, seed=1), draw(WIDTH, STATE),
                              draw(BATCH, LENGTH, STATE), draw(BATCH, LENGTH, STATE, seed=2)),
                  (COLUMNS, COLUMNS, None, COLUMNS, COLUMNS)),
    "retention": (retention, tuple(draw(2, LENGTH, 4, 8, seed=i) for i in range(4)), (COLUMNS,) * 4),
    "map": (lambda x, w: lax.map(lambda row: jnp.tanh(row @ w), x), (rows(), draw(WIDTH, WIDTH)), (ROWS, None)),
    "accumulated": (accumulated, (rows(), rows(1), draw(WIDTH, WIDTH)), (ROWS, ROWS, None)),
    "previous": (lambda x: lax.scan(lambda h, x: (x, jnp.tanh(x + h)), jnp.ones((BATCH, WIDTH)), x), (rows(),), (ROWS,)),
    "twice": (lambda x: lax.scan(lambda c, x: ((c[0] * .9 + x,) * 2, jnp.sin(c[1])), (jnp.zeros((BATCH, WIDTH)),) * 2, x), (rows(),), (ROWS,)),
    "delayed": (lambda x: lax.scan(lambda c, x: ((x, c[0]), x + c[1]), (jnp.zeros((BATCH, WIDTH)), jnp.ones((BATCH, WIDTH))), x), (rows(),), (ROWS,)),
    # The product of the factors of a block is infinite, the state 0 until the last block.
    "growing": (lambda x: lax.scan(lambda h, x: (h * 1e5 + x,) * 2, jnp.zeros((BATCH, WIDTH)), jnp.where(jnp.arange(LENGTH)[:, None, None] < LENGTH - 3, 0, x)),
                (rows(),), (ROWS,)),
    "counted": (counted, (rows(),), (ROWS,)),
    "advantages": (advantages, (draw(LENGTH, BATCH), draw(LENGTH, BATCH, seed=1)), (ROWS, ROWS)),
}


class CutScans(unittest.TestCase):
    def test_values(self):
        for name, (f, args, cuts) in PROGRAMS.items():
            loss = lambda *a: sum(jnp.sum(jnp.sin(leaf)) for leaf in jax.tree.leaves(f(*a)))
            for g, mesh in ((f, AbstractMesh((8,), ("d",))), (jax.grad(loss, tuple(range(len(args)))), AbstractMesh((2, 4), ("t", "d")))):
                with self.subTest(name, mesh=mesh):
                    ours = jax.tree.leaves(ts.from_jax(g, args, cuts, mesh=mesh)(*args))
                    for mine, theirs in zip(ours, map(np.asarray, jax.tree.leaves(jax.jit(g)(*args)))):
                        np.testing.assert_allclose(np.asarray(mine), theirs, atol=2e-5 * max(1, np.abs(theirs).max()))

    def sent(self, name, gradients=False, **options):
        f, args, cuts = PROGRAMS[name]
        if gradients:
            f = jax.grad(lambda *a: jnp.sum(jnp.sin(PROGRAMS[name][0](*a))), tuple(range(len(args))))
        return ts.from_jax(f, args, cuts, mesh=AbstractMesh((4,), ("d",))).explain(**options)["wire_bytes_total"]

    def test_plans(self):
        state = BATCH * WIDTH * 4
        self.assertLessEqual(self.sent("recurrence"), 3 * 2 * state)  # three states, three products of factors
        self.assertLessEqual(self.sent("average"), 3 * (state + 4))
        self.assertLessEqual(self.sent("retention"), 3 * 2 * 4 * (8 * 8 + 8) * 4)
        self.assertLessEqual(self.sent("retention", gradients=True), 2 * 3 * 2 * 4 * (8 * 8 + 8) * 4)
        self.assertEqual(self.sent("map"), 0)
        self.assertEqual(self.sent("accumulated"), WIDTH * WIDTH * 4 * 3 // 4)  # the sum, scattered

    def test_bytes(self):
        """States to other devices by batch and back, the products of their factors to the batch."""
        self.assertLessEqual(self.sent("recurrence", objective="bytes"), 3 * BATCH * WIDTH * 4 * 3 // 4)


if __name__ == "__main__":
    unittest.main()
