# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Places of each row of a cut batch, by flat indices row * length + place or by repeated rows: values and gradients equal JAX's. Nothing
is sent where a place is known to be in its row; where it is not, other rows are read, as in JAX."""

import unittest

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P
from jax_case import I, JaxCase, array

import tessera as ts
from tessera.testing import difference

B, T, D, M = 8, 6, 3, 2
rows = np.arange(B)


def flat(x, place):
    return x.reshape(B * T, D)[(place + jnp.arange(B)[:, None] * T).reshape(-1)]


class FlatIndices(JaxCase):
    def compare(self, fn, *avals, is_local=True, low=-3, high=T + 3, devices=4):
        random = np.random.default_rng(0)
        values = [random.integers(low, high, a.shape).astype(a.dtype) if a.dtype == I else random.standard_normal(a.shape).astype(a.dtype)
                  for a in avals]
        program = ts.from_jax(fn, avals, (P("d"),) * len(avals), mesh=AbstractMesh((devices,), ("d",)))
        if is_local:
            self.assertEqual(program.explain()["wire_bytes_total"], 0)
        for a, b in zip(jax.tree.leaves(program(*values)), jax.tree.leaves(jax.jit(fn)(*values))):
            self.assertIsNone(difference(a, b))

    def test_flat(self):
        x, place = array(B, T, D), array(B, M, dtype=I)
        clipped = lambda x, p: flat(x, jnp.clip(p, 0, T - 1))
        gradient = lambda f: lambda x, p: jax.grad(lambda x: (f(x, p) ** 2).sum())(x)
        self.compare(clipped, x, place)
        self.compare(clipped, x, place, devices=3, is_local=False)
        self.compare(gradient(clipped), x, place)
        two = lambda x, p: x.reshape(B * T, D)[jnp.clip(p, 0, T - 1) + jnp.arange(B)[:, None] * T]
        self.compare(two, x, place)
        self.compare(gradient(two), x, place)
        self.compare(lambda x, p: x.reshape(B * T, D).at[jnp.clip(p, 0, T - 1) + jnp.arange(B)[:, None] * T].add(1.5).reshape(B, T, D),
                     x, place)
        self.compare(lambda x, n: x.reshape(B * T, D)[jnp.arange(B) * T + jnp.minimum(jnp.maximum(n - 1, 0), T - 1)], x, array(B, dtype=I))
        # Bounds of another row, a place in no row or in others.
        for f in (flat, lambda x, p: flat(x, jnp.clip(p, 0, T)), lambda x, p: flat(x, jnp.clip(p, -1, T - 1)),
                  lambda x, p: x.reshape(B * T, D)[(jnp.clip(p, 0, T - 1) + jnp.arange(B)[:, None] * (T - 1)).reshape(-1)],
                  lambda x, p: x.reshape(B * T, D)[(jnp.clip(p, 0, T - 1) + (B - 1 - jnp.arange(B))[:, None] * T).reshape(-1)]):
            self.compare(f, x, place, is_local=False)
            self.compare(gradient(f), x, place, is_local=False)

    def test_repeated_rows(self):
        x, place = array(B, T, D), array(B, M, dtype=I)
        repeated = lambda x, p: x[jnp.repeat(jnp.arange(B), M), p.reshape(-1)]
        self.compare(repeated, x, place)
        self.compare(lambda x, p: jax.grad(lambda x: (repeated(x, p) ** 2).sum())(x), x, place)
        self.compare(lambda x, p, y: x.at[jnp.repeat(jnp.arange(B), M), p.reshape(-1)].set(y.reshape(B * M, D)), x, place, array(B, M, D))


if __name__ == "__main__":
    unittest.main()
