# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention is recognised in many forms, and equals JAX's."""

import unittest

import jax
import numpy as np
from jax_case import F, JaxCase, array, jnp
from jax import lax

import tessera
from tessera import nn, ops

B, S, H, D = 2, 24, 4, 6
LEAST = float(np.finfo(np.float32).min)


def causal(s=S):
    return jnp.tril(jnp.ones((s, s), bool))


def softmax_by_hand(x):
    e = jnp.exp(x - lax.stop_gradient(jnp.max(x, -1, keepdims=True)))
    return e / e.sum(-1, keepdims=True)


def heads_first(q, k, v):
    return (x.transpose(0, 2, 1, 3) for x in (q, k, v))


def scale_behind(q, k, v):
    a = jnp.einsum("bqhe,bkhe->bhqk", q, k) * D ** -0.5
    return jnp.einsum("bhqk,bkhe->bqhe", jax.nn.softmax(a, -1), v)


def scale_before(q, k, v):
    return jnp.einsum("bhqk,bkhe->bqhe", jax.nn.softmax(jnp.einsum("bqhe,bkhe->bhqk", q / D ** 0.5, k), -1), v)


def matmul_heads_first(q, k, v):
    q, k, v = heads_first(q, k, v)
    a = q @ k.swapaxes(-1, -2) / np.sqrt(D)
    return (jax.nn.softmax(a) @ v).transpose(0, 2, 1, 3)


def mask_by_where(q, k, v):
    a = jnp.where(causal(), jnp.einsum("bqhe,bkhe->bhqk", q, k), -1e30)
    return jnp.einsum("bhqk,bkhe->bqhe", jax.nn.softmax(a, -1), v)


def mask_by_addition(q, k, v):
    a = jnp.einsum("bqhe,bkhe->bhqk", q, k) + jnp.where(causal(), 0, LEAST / 2)[None, None]
    return jnp.einsum("bhqk,bkhe->bqhe", softmax_by_hand(a), v)


def mask_by_product(q, k, v):
    keep = causal().astype(F)
    a = jnp.einsum("bqhe,bkhe->bhqk", q, k) * keep - 1e9 * (1 - keep)
    return jnp.einsum("bhqk,bkhe->bqhe", softmax_by_hand(a), v)


def window_and_cap(q, k, v):
    a = 20 * jnp.tanh(jnp.einsum("bqhe,bkhe->bhqk", q, k) / 20)
    i, j = lax.broadcasted_iota(jnp.int32, (S, S), 0), lax.broadcasted_iota(jnp.int32, (S, S), 1)
    a = jnp.where((i >= j) & (i - j < 5), a, LEAST)
    return jnp.einsum("bhqk,bkhe->bqhe", jax.nn.softmax(a, -1), v)


def divided_behind(q, k, v):
    a = jnp.einsum("bqhe,bkhe->bhqk", q, k)
    e = jnp.exp(a - a.max(-1, keepdims=True))
    return jnp.einsum("bhqk,bkhe->bhqe", e, v) / e.sum(-1, keepdims=True)


def log_softmax(q, k, v):
    return jnp.einsum("bhqk,bkhe->bqhe", jnp.exp(jax.nn.log_softmax(jnp.einsum("bqhe,bkhe->bhqk", q, k), -1)), v)


def library(q, k, v):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


def library_grouped(q, k, v):
    return jax.nn.dot_product_attention(q, k[:, :, :2], v[:, :, :2])


def merged_heads(q, k, v):  # as exported by PyTorch: products over merged batch and heads
    q, k, v = (x.reshape(B * H, S, D) for x in heads_first(q, k, v))
    a = lax.batch_matmul(q, k.swapaxes(1, 2)).reshape(B, H, S, S) * D ** -0.5 + jnp.where(causal(), 0, LEAST)
    o = lax.batch_matmul(jax.nn.softmax(a, -1).reshape(B * H, S, S), v)
    return o.reshape(B, H, S, D).transpose(0, 2, 1, 3)


def grouped_by_repeat(q, k, v):
    k, v = (jnp.repeat(x[:, :, :2], H // 2, axis=2) for x in (k, v))
    return scale_behind(q, k, v)


def grouped_by_broadcast(q, k, v):
    k, v = (jnp.broadcast_to(x[:, :, :2, None], (B, S, 2, H // 2, D)).reshape(B, S, H, D) for x in (k, v))
    return mask_by_where(q, k, v)


def grouped_by_reshape(q, k, v):
    q = q.reshape(B, S, 2, H // 2, D)
    p = jax.nn.softmax(jnp.einsum("bqgre,bkge->bgrqk", q, k[:, :, :2]), -1)
    return jnp.einsum("bgrqk,bkge->bqgre", p, v[:, :, :2]).reshape(B, S, H, D)


def positions_as_bias(q, k, v):
    slopes = 2.0 ** -jnp.arange(1, H + 1, dtype=F)
    distance = (jnp.arange(S)[None, :] - jnp.arange(S)[:, None]).astype(F)
    a = jnp.einsum("bqhe,bkhe->bhqk", q, k) + slopes[:, None, None] * distance
    return jnp.einsum("bhqk,bkhe->bqhe", jax.nn.softmax(a, -1), v)


def segments(q, k, v):
    of = (q[:, :, 0, 0] > 0).astype(jnp.int32)
    a = jnp.where((of[:, :, None] == of[:, None, :])[:, None], jnp.einsum("bqhe,bkhe->bhqk", q, k), -1e30)
    return jnp.einsum("bhqk,bkhe->bqhe", jax.nn.softmax(a, -1), v)


def one_query(q, k, v):
    return scale_behind(q[:, :1], k, v)


def narrow(q, k, v):
    q, k, v = (x.astype(jnp.bfloat16) for x in (q, k, v))
    a = jnp.einsum("bqhe,bkhe->bhqk", q, k, preferred_element_type=F)
    return jnp.einsum("bhqk,bkhe->bqhe", jax.nn.softmax(a, -1).astype(jnp.bfloat16), v).astype(F)


def narrow_softmax(q, k, v):
    return scale_behind(*(x.astype(jnp.bfloat16) for x in (q, k, v))).astype(F)


SPELLINGS = [scale_behind, scale_before, matmul_heads_first, mask_by_where, mask_by_addition, mask_by_product, window_and_cap,
             divided_behind, log_softmax, library, library_grouped, merged_heads, grouped_by_repeat, grouped_by_broadcast,
             grouped_by_reshape, positions_as_bias, segments, one_query, narrow, narrow_softmax]


def recognised(fn, *avals):
    """The program after recognition."""
    return tessera.from_jax(fn, avals).lower("normalized")


class Spellings(JaxCase):
    arguments = [array(B, S, H, D)] * 3

    def test_each_is_one_op(self):
        for spelling in SPELLINGS:
            with self.subTest(spelling.__name__):
                text = recognised(spelling, *self.arguments)
                self.assertEqual(text.count("ext.attention"), 1, text)
                self.assertNotIn("math.exp", text)

    def test_masks_of_indices_are_code(self):
        for spelling in mask_by_where, mask_by_addition, mask_by_product, window_and_cap, library, merged_heads:
            with self.subTest(spelling.__name__):
                self.assertNotIn(f"{S}x{S}x", recognised(spelling, *self.arguments))

    def test_groups_read_shared_heads(self):
        for spelling in grouped_by_repeat, grouped_by_broadcast, grouped_by_reshape, library_grouped:
            with self.subTest(spelling.__name__):
                line = next(line for line in recognised(spelling, *self.arguments).splitlines() if "ext.attention" in line)
                self.assertEqual(line.count(f"tensor<{B}x{S}x2x{D}xf32>"), 2, line)

    def test_of_modules(self):
        """In the form of tessera.nn and tessera.ops."""
        def by_hand(q, k, v):
            a = ops.einsum("bqhe,bkhe->bhqk", q * D ** -0.5, k)
            return ops.einsum("bhqk,bkhe->bqhe", ops.exp(ops.log_softmax(a, -1)), v)
        q, k, v = self.values(self.arguments, 0)
        for fn in nn.attention.attention, lambda *a: nn.attention.attention(*a, causal=True), by_hand:
            text = tessera.jit(fn).lower(q, k, v).lower("normalized")
            self.assertEqual(text.count("ext.attention"), 1, text)
            self.assertNotIn("math.exp", text)
        text = tessera.jit(nn.attention.attention).lower(q, k[:, :, :2], v[:, :, :2]).lower("normalized")
        self.assertEqual(text.count("ext.attention"), 1, text)

    def test_scores_that_others_read_stay(self):
        def shares(q, k, v):
            p = jax.nn.softmax(jnp.einsum("bqhe,bkhe->bhqk", q, k), -1)
            return jnp.einsum("bhqk,bkhe->bqhe", p, v), p
        self.assertNotIn("ext.attention", recognised(shares, *self.arguments))

    def test_a_softmax_over_queries_stays(self):
        def over_queries(q, k, v):
            return jnp.einsum("bhqk,bkhe->bqhe", jax.nn.softmax(jnp.einsum("bqhe,bkhe->bhqk", q, k), -2), v)
        self.assertNotIn("ext.attention", recognised(over_queries, *self.arguments))

    def test_values(self):
        for spelling in SPELLINGS:
            if spelling is not narrow_softmax:
                self.check(spelling, *self.arguments)

    def test_narrow_scores_have_a_wide_softmax(self):
        values = self.values(self.arguments, 0)
        actual = tessera.from_jax(narrow_softmax, self.arguments)(*values)
        np.testing.assert_allclose(actual, scale_behind(*values), atol=2e-2)


if __name__ == "__main__":
    unittest.main()
