# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention to a window of keys exchanges the halo where the sequence is cut, forward and backward, and equals JAX's."""

import unittest

import jax
import numpy as np
from jax_case import JaxCase, PartitionSpec, array, jnp, mesh_of

import tessera

D = 4
# Otherwise small scores are kept.
PASSES = "dist-normalize,dist-recognize-attention-backward{recomputed-scores=0},dist-recognize-attention"


def attention(sees, least=-1e30):
    """Attention of queries to the keys for which `sees` holds. Several heads may share keys."""
    def fn(q, k, v):
        k, v = (jnp.repeat(x, q.shape[2] // k.shape[2], 2) for x in (k, v))
        m, n = jnp.arange(q.shape[1])[:, None], jnp.arange(k.shape[1])[None]
        a = jnp.where(sees(m, n), jnp.einsum("bqhe,bkhe->bhqk", q, k) * D ** -0.5, least)
        return jnp.einsum("bhqk,bkhe->bqhe", jax.nn.softmax(a, -1), v)
    return fn


def behind(window):
    return lambda m, n: (m >= n) & (m - n < window)


def around(reach):
    return lambda m, n: abs(m - n) <= reach


def masked_by(mask):
    """`mask` maps the S x S scores to masked ones."""
    def fn(q, k, v):
        a = mask(jnp.einsum("bqhe,bkhe->bhqk", q, k) * D ** -0.5, q.shape[1])
        return jnp.einsum("bhqk,bkhe->bqhe", jax.nn.softmax(a, -1), v)
    return fn


def between_diagonals(s):
    return jnp.tril(jnp.ones((s, s), bool)) & jnp.triu(jnp.ones((s, s), bool), -3)


def neither_ahead_nor_far(a, s):
    m, n = (jax.lax.broadcasted_iota(jnp.int32, (s, s), dim) for dim in (0, 1))
    return jnp.where(jnp.logical_not(jnp.logical_or(n > m, m - n >= 4)), a, np.finfo("f").min)


def with_gradients(fn):
    def together(q, k, v, gradient):
        output, back = jax.vjp(fn, q, k, v)
        return output, *back(gradient)
    return together


class Windows(JaxCase):
    def compare(self, fn, halo, *, length, heads=3, kv_heads=3, devices=4, cut=PartitionSpec(None, "s"), **mesh):
        """Compares values, and bytes: forward the halo of key and value, backward as many of their gradients."""
        q, k = array(2, length, heads, D), array(2, length, kv_heads, D)
        mesh = mesh_of(**(mesh or dict(s=devices)))
        parts = np.prod([n for axis, n in mesh.shape.items() if axis != "s" and axis in jax.tree.leaves(tuple(cut))], dtype=int)
        rows = 2 * 2 * kv_heads * D * 4 // parts  # bytes of a key and a value of the device's batch and heads
        for both, avals, times in (fn, (q, k, k), 1), (with_gradients(fn), (q, k, k, q), 2):
            values = self.values(avals, 0)
            program = tessera.from_jax(both, avals, (cut,) * len(avals), jax.tree.map(lambda _: cut, jax.eval_shape(both, *avals)),
                                       mesh=mesh)
            program.passes = PASSES
            self.assertEqual(program.explain()["wire_bytes_total"], times * halo * rows)
            for found, wanted in zip(jax.tree.leaves(program(*values)), jax.tree.leaves(jax.jit(both)(*values))):
                np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=3e-5)

    def test_keys_behind(self):
        self.compare(attention(behind(4)), 3, length=32)

    def test_infinite_mask(self):
        self.compare(attention(behind(4), -jnp.inf), 3, length=32)

    def test_keys_on_both_sides(self):
        self.compare(attention(around(3)), 6, length=32)

    def test_uneven_parts(self):
        self.compare(attention(around(3)), 6, length=29)

    def test_window_longer_than_a_part(self):
        self.compare(attention(behind(12)), 11, length=32, devices=8)

    def test_shared_keys(self):
        self.compare(attention(behind(4)), 3, length=32, heads=6, kv_heads=2)

    def test_other_dimensions_cut(self):
        self.compare(attention(behind(4)), 3, length=32, heads=4, kv_heads=2, cut=PartitionSpec(None, "s", "t"), s=4, t=2)
        self.compare(attention(behind(4)), 3, length=30, cut=PartitionSpec("b", "s"), b=2, s=4)

    def test_heads_that_divide(self):
        """Uses the halo if it is smaller than four moves of the sequence to heads, of 3/4 of a part of 8 each."""
        self.compare(attention(behind(4)), 3, length=32, heads=4, kv_heads=4)
        self.compare(attention(behind(17)), 12, length=32, heads=4, kv_heads=4)

    def test_spellings(self):
        for halo, fn in ((3, masked_by(lambda a, s: jnp.where(between_diagonals(s), a, -jnp.inf))),
                         (3, masked_by(lambda a, s: a + jnp.where(between_diagonals(s), 0., -1e9))),
                         (3, masked_by(lambda a, s: a + (1 - between_diagonals(s).astype("f")) * -1e9)),
                         (3, masked_by(neither_ahead_nor_far)),
                         (3, lambda q, k, v: jax.nn.dot_product_attention(q, k, v, local_window_size=(3, 0))),
                         (6, lambda q, k, v: jax.nn.dot_product_attention(q, k, v, local_window_size=3)),
                         (8, attention(lambda m, n: m // 5 == n // 5)),
                         (4, attention(lambda m, n: (m // 5 == n // 5) & (m >= n)))):
            self.compare(fn, halo, length=64)

    def test_parts_of_chunks(self):
        """Chunks are batches if the devices divide their number."""
        for fn in (attention(lambda m, n: m // 4 == n // 4), attention(lambda m, n: (m // 16 == n // 16) & (m >= n)),
                   attention(lambda m, n: (m >= n) & (n // 8 == m // 8), -jnp.inf),
                   masked_by(lambda a, s: a + jnp.where(jnp.arange(s)[:, None] // 8 == jnp.arange(s)[None] // 8, 0., -1e9))):
            self.compare(fn, 0, length=64)
        self.compare(attention(lambda m, n: m // 4 == n // 4), 0, length=64, cut=PartitionSpec("b", "s"), b=2, s=4)


if __name__ == "__main__":
    unittest.main()
