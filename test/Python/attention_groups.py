# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Heads of queries that share keys: attention equals that with repeated keys, and with its gradient is two operations in all types."""

import math
import unittest

import ml_dtypes
import numpy as np

import tessera as ts
from tessera import nn, ops
from tessera.nn.attention import attention

B, Q, K, H, G, D = 2, 5, 7, 6, 2, 4
RANDOM = np.random.default_rng(7)


def arrays(queries=Q, keys=K, groups=G, kind=np.float32):
    return [RANDOM.standard_normal(shape).astype(kind)
            for shape in ((B, queries, H, D), (B, keys, groups, D), (B, keys, groups, D), (B, queries, H, D))]


def expected(q, k, v, mask=None, causal=False):
    q, k, v = (each.astype(np.float64) for each in (q, k, v))
    k, v = (np.repeat(each, q.shape[2] // k.shape[2], 2) for each in (k, v))
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(D)
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[2:], bool), K - Q), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhqk,bkhd->bqhd", weights / weights.sum(-1, keepdims=True), v)


def value_and_gradients(function):
    return ts.jit(lambda p, g: ts.value_and_grad(lambda p: ops.sum(function(*p) * g))(p))


class AttentionGroups(unittest.TestCase):
    def test_equals_repeated_keys(self):
        for groups in (1, 2, 3, 6):
            q, k, v, _ = arrays(groups=groups)
            for causal in (False, True):
                found = ts.jit(lambda q, k, v, causal=causal: attention(q, k, v, causal=causal))(q, k, v)
                np.testing.assert_allclose(found.numpy(), expected(q, k, v, causal=causal), rtol=2e-5, atol=2e-6, err_msg=str((groups, causal)))

    def test_masks_have_heads_of_queries(self):
        q, k, v, _ = arrays()
        for shape in ((B, H, Q, K), (1, H, 1, K), (Q, K)):
            seen = RANDOM.random(shape) < 0.7
            seen[..., 0] = True
            for mask in (seen, RANDOM.standard_normal(shape).astype(np.float32)):
                found = ts.jit(lambda q, k, v, m: attention(q, k, v, mask=m))(q, k, v, mask)
                np.testing.assert_allclose(found.numpy(), expected(q, k, v, mask), rtol=2e-5, atol=2e-6, err_msg=str((shape, mask.dtype)))

    def test_gradients_equal_those_of_repeated_keys(self):
        q, k, v, g = arrays()
        repeated = lambda q, k, v: attention(q, *(ops.repeat(each, H // G, 2) for each in (k, v)))  # noqa: E731
        (value, ours), (other, theirs) = (value_and_gradients(each)([q, k, v], g) for each in (attention, repeated))
        np.testing.assert_allclose(float(value), float(other), rtol=1e-4)
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)

    def test_is_one_operation_forward_and_backward(self):
        for kind in (np.float32, ml_dtypes.bfloat16):
            q, k, v, g = arrays(1024, 1024, kind=kind)
            text = value_and_gradients(lambda q, k, v: attention(q, k, v, causal=True)).lower([q, k, v], g).lower("normalized")
            self.assertEqual((text.count("ext.attention "), text.count("ext.attention_backward ")), (1, 1), kind)

    def test_repeated_keys_are_one_operation(self):
        """Gradients of 16 bits are rounded for each head, then summed over those that share a key."""
        for kind in (np.float32, ml_dtypes.bfloat16):
            q, k, v, g = arrays(1024, 1024, kind=kind)
            text = value_and_gradients(lambda q, k, v: attention(q, *(ops.repeat(each, H // G, 2) for each in (k, v)), causal=True)) \
                .lower([q, k, v], g).lower("normalized")
            self.assertEqual((text.count("ext.attention "), text.count("ext.attention_backward ")), (1, 1), kind)
            self.assertIn(f"tensor<{B}x1024x{G}x{D}x", text.split("ext.attention_backward ")[1].split("ins(")[1].split(")")[0], kind)

    def test_dropout_draws_for_each_head(self):
        q, k, v, _ = arrays()
        dropout = nn.Dropout(0.5, 3)
        y = ts.jit(lambda q, k, v: attention(q, k, v, dropout=dropout))(q, k, v).numpy()
        self.assertEqual(y.shape, (B, Q, H, D))
        self.assertTrue(np.abs(y - expected(q, k, v)).max() > 1e-2)


if __name__ == "__main__":
    unittest.main()
