# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`jax.lax.ragged_dot` and its derivatives, of few and many groups, full and empty ones, equal JAX's, also in mixtures of experts whose
tokens and experts are cut over one axis."""

import unittest

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import tessera as ts

rng = np.random.default_rng(0)


def product(x, weights, sizes):
    return jax.lax.ragged_dot(x, weights, sizes)


def gradients(x, weights, sizes):
    return jax.grad(lambda x, weights: (jax.lax.ragged_dot(x, weights, sizes) ** 2).sum(), (0, 1))(x, weights)


def layer(x, w):
    """Tokens sorted by expert, multiplied, and put back."""
    expert = jnp.argmax(x @ w["router"], -1)
    order, sizes = jnp.argsort(expert), jnp.bincount(expert, length=w["up"].shape[0])
    y = jax.lax.ragged_dot(jax.nn.silu(jax.lax.ragged_dot(x[order], w["up"], sizes)), w["down"], sizes)
    return x + jnp.zeros_like(x).at[order].set(y)


def scanned(x, w):
    return jax.lax.scan(lambda x, w: (jax.checkpoint(layer)(x, w), None), x, w)[0]


def experts(tokens, width, hidden, groups, layers=(), dtype=np.float32):
    of = lambda *shape: (rng.standard_normal(shape) / np.sqrt(shape[-2])).astype(dtype)
    return of(tokens, width), dict(router=of(*layers, width, groups) * 3, up=of(*layers, groups, width, hidden), down=of(*layers, groups, hidden, width))


def on_mesh(f, x, w, devices):
    cut = {k: P(*[None] * (v.ndim - 3), "d") if k != "router" else P() for k, v in w.items()}
    return ts.from_jax(f, (x, w), (P("d"), cut), mesh=AbstractMesh((devices,), ("d",)))


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

    def test_experts_on_meshes(self):
        # Blocks of many rows, uneven parts of tokens, width and experts, fewer experts than devices, layers in a loop.
        for model, sizes, layers, meshes in (layer, (300, 64, 32, 12), (), (2, 8)), (layer, (301, 33, 47, 5), (), (3, 8)), (scanned, (120, 31, 40, 6), (2,), (4,)):
            x, w = experts(*sizes, layers)
            step = jax.value_and_grad(lambda x, w: (model(x, w) ** 2).mean(), (0, 1))
            wanted = jax.tree.leaves(step(x, w))
            for devices in meshes:
                with self.subTest(sizes=sizes, devices=devices):
                    for a, b in zip(jax.tree.leaves(on_mesh(step, x, w, devices)(x, w)), wanted):
                        np.testing.assert_allclose(np.asarray(a), b, atol=1e-5 * max(1, np.abs(b).max()))

    def test_narrow_floats(self):
        x, w = experts(256, 32, 64, 8, dtype=jnp.bfloat16)
        found, wanted = on_mesh(layer, x, w, 4)(x, w), layer(x, w)
        np.testing.assert_allclose(np.asarray(found).astype(np.float32), np.asarray(wanted).astype(np.float32), atol=0.05)

    def test_plan_of_experts(self):
        # Each device multiplies its tokens with gathered weights: nothing is sorted, no collective is in a loop over groups.
        x, w = jax.eval_shape(lambda: experts(8192, 64, 128, 8))
        plan = on_mesh(layer, x, w, 8).explain()
        self.assertEqual([c["trips"] for c in plan["collectives"]], [1] * len(plan["collectives"]))
        self.assertEqual(plan["wire_bytes_total"], 2 * 8 * 64 * 128 * 4 * 7 // 8)
        # In a loop over layers, a gather in each layer.
        x, w = jax.eval_shape(lambda: experts(8192, 64, 128, 8, (3,)))
        plan = on_mesh(scanned, x, w, 8).explain()
        self.assertEqual(plan["wire_bytes_total"], 3 * 2 * 8 * 64 * 128 * 4 * 7 // 8)

    def test_batches_are_refused(self):
        x, weights, sizes = np.zeros((2, 4, 3), np.float32), np.zeros((2, 5, 3, 4), np.float32), np.zeros((2, 5), np.int32)
        with self.assertRaisesRegex(ts.Error, "'ragged_dot_general' is supported for groups of rows of one matrix, without batch"):
            ts.from_jax(jax.vmap(product), (x, weights, sizes))


unittest.main()
