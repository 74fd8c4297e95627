# RUN: %tessera_python %s
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`nn.grouped_matmul`: groups of rows times a matrix each, against a loop in NumPy, with derivatives, sharded or not."""

import unittest

import numpy as np

import tessera as ts
from tessera import ProcessMesh, Replicate, Shard, nn, shard_tensor

rng = np.random.default_rng(0)


def random(*shape):
    return rng.standard_normal(shape, np.float32)


def by_hand(x, weights, ends, cotangent):
    """The result and the derivatives by x and weights of sum(result * cotangent)."""
    result, by_x, by_weights, begin = np.zeros((x.shape[0], weights.shape[2]), np.float32), np.zeros_like(x), np.zeros_like(weights), 0
    for g, end in enumerate(np.minimum(ends, x.shape[0])):
        rows = slice(begin, end)
        result[rows] = x[rows] @ weights[g]
        by_x[rows], by_weights[g] = cotangent[rows] @ weights[g].T, x[rows].T @ cotangent[rows]
        begin = end
    return result, by_x, by_weights


@ts.jit
def ours(x, weights, ends, cotangent):
    gradients = ts.grad(lambda x, weights: (nn.grouped_matmul(x, weights, ends) * cotangent).sum(), (0, 1))(x, weights)
    return nn.grouped_matmul(x, weights, ends), *gradients


class Grouped(unittest.TestCase):
    def same(self, found, wanted):
        for a, b in zip(found, wanted):
            np.testing.assert_allclose(a.numpy(), b, atol=1e-4)

    def test_groups(self):
        # Few groups (a product each), and more, whose blocks are partly filled; empty groups, rows after the last one.
        for rows, groups in (10, 3), (37, 6), (300, 9), (5, 16):
            x, weights, cotangent = random(rows, 3), random(groups, 3, 4), random(rows, 4)
            for ends in (np.sort(rng.integers(0, rows + 1, groups)), np.full(groups, rows), np.r_[np.zeros(groups - 1), rows],
                         np.zeros(groups), np.r_[np.arange(groups - 1), rows + 5].clip(max=rows + 5)):
                ends = np.maximum.accumulate(ends).astype(np.int32)
                with self.subTest(rows=rows, ends=ends):
                    self.same(ours(x, weights, ends, cotangent), by_hand(x, weights, ends, cotangent))

    def test_sharded(self):
        mesh = ProcessMesh([0, 1, 2], ["x"])
        x, weights, cotangent = random(40, 6), random(7, 6, 9), random(40, 9)
        ends = np.sort(rng.integers(0, 41, 7)).astype(np.int32)
        wanted = by_hand(x, weights, ends, cotangent)
        for of_x in (Shard(0), Shard(1), Replicate()):
            for of_weights in (Shard(0), Shard(1), Shard(2), Replicate()):
                with self.subTest(x=of_x, weights=of_weights):
                    self.same(ours(shard_tensor(x, mesh, [of_x]), shard_tensor(weights, mesh, [of_weights]), ends, cotangent), wanted)

    def test_errors(self):
        with self.assertRaisesRegex(ts.ShapeError, r"'grouped_matmul' of shapes \(4, 3\), \(2, 5, 6\) and \(2,\) takes \(S, K\), \(G, K, N\) and \(G,\)"):
            nn.grouped_matmul(random(4, 3), random(2, 5, 6), np.array([2, 4]))
        with self.assertRaisesRegex(ts.ArgumentError, "the ends of 'grouped_matmul' are float32; give integers"):
            nn.grouped_matmul(random(4, 5), random(2, 5, 6), random(2))


unittest.main()
