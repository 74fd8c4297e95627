# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`jax.lax.ragged_dot` and its derivatives, of few and many groups, full and empty ones, equal JAX's."""

import unittest

import jax
import numpy as np

import tessera as ts

rng = np.random.default_rng(0)


def product(x, weights, sizes):
    return jax.lax.ragged_dot(x, weights, sizes)


def gradients(x, weights, sizes):
    return jax.grad(lambda x, weights: (jax.lax.ragged_dot(x, weights, sizes) ** 2).sum(), (0, 1))(x, weights)


class Ragged(unittest.TestCase):
    def test_groups(self):
        for rows, groups in (10, 3), (37, 6), (300, 9), (5, 16):
            x, weights = rng.standard_normal((rows, 3), np.float32), rng.standard_normal((groups, 3, 4), np.float32)
            programs = [ts.from_jax(f, (x, weights, np.zeros(groups, np.int32))) for f in (product, gradients)]
            for sizes in (rng.multinomial(rows, np.ones(groups) / groups), rng.multinomial(rows // 2, np.ones(groups) / groups),
                          np.eye(groups)[-1] * rows, np.zeros(groups)):
                sizes = sizes.astype(np.int32)
                for program, function in zip(programs, (product, gradients)):
                    with self.subTest(rows=rows, sizes=sizes, function=function.__name__):
                        found, wanted = program(x, weights, sizes), function(x, weights, sizes)
                        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted)):
                            np.testing.assert_allclose(np.asarray(a), b, atol=1e-3)

    def test_batches_are_refused(self):
        x, weights, sizes = np.zeros((2, 4, 3), np.float32), np.zeros((2, 5, 3, 4), np.float32), np.zeros((2, 5), np.int32)
        with self.assertRaisesRegex(ts.Error, "'ragged_dot_general' is supported for groups of rows of one matrix, without batch"):
            ts.from_jax(jax.vmap(product), (x, weights, sizes))


unittest.main()
