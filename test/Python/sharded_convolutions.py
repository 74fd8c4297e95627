# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random convolutions with enough channels for `contract` steps, cut at random over two axes, equal JAX's, derivatives too."""

import random
import unittest

import numpy as np

import tessera
from jax_case import PartitionSpec, jax
from jax import lax

MESH = tessera.ProcessMesh(np.arange(4).reshape(2, 2), ["a", "b"])


def random_spec(choose, rank):
    free, entries = ["a", "b"], []
    for _ in range(rank):
        count = choose.choice((0, 0, 1, 1, 2))
        axes = [free.pop(choose.randrange(len(free))) for _ in range(min(count, len(free)))]
        entries.append(tuple(axes) or None)
    return PartitionSpec(*entries)


class ShardedConvolutions(unittest.TestCase):
    def test_random(self):
        for seed in range(8):
            choose = random.Random(seed)
            groups = choose.choice((1, 1, 2))
            inputs, outputs = choose.choice((16, 24, 32, 48)), choose.choice((16, 20, 32, 48))
            x = np.random.default_rng(seed).standard_normal(
                (choose.randint(2, 5), choose.randint(7, 19), choose.randint(7, 19), inputs)).astype(np.float32)
            w = np.random.default_rng(seed + 1).standard_normal(
                (choose.randint(1, 3), choose.randint(1, 3), inputs // groups, outputs)).astype(np.float32)
            strides, dilation = (choose.randint(1, 2), choose.randint(1, 2)), (choose.randint(1, 2), 1)
            padding = [(choose.randint(0, 2), choose.randint(0, 2)) for _ in range(2)]

            def convolution(x, w):
                return lax.conv_general_dilated(x, w, strides, padding, rhs_dilation=dilation, feature_group_count=groups,
                                                dimension_numbers=("NHWC", "HWIO", "NHWC"))

            def both(x, w):
                return convolution(x, w), *jax.grad(lambda x, w: (convolution(x, w) ** 2).sum(), (0, 1))(x, w)

            specs = random_spec(choose, 4), random_spec(choose, 4)
            with self.subTest(seed=seed, x=x.shape, w=w.shape, specs=specs):
                for got, wanted in zip(tessera.from_jax(both, (x, w), specs, mesh=MESH)(x, w), jax.jit(both)(x, w)):
                    np.testing.assert_allclose(got, wanted, rtol=0, atol=2e-5 * float(np.abs(wanted).max()))


if __name__ == "__main__":
    unittest.main()
