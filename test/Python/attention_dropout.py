# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dropout between softmax and values is part of the attention: JAX's draws, forward and with gradients, for any placement."""

import unittest

import jax
import numpy as np
from jax_case import JaxCase, PartitionSpec, array, cut, jnp, mesh_of
from jax import lax

import tessera
from tessera import nn, ops, random

B, S, H, D = 2, 12, 4, 6
KEEP = 0.75
KEY = array(2, dtype=jnp.uint32)


def scores(q, k, sees=None):
    a = jnp.einsum("bqhe,bkhe->bhqk", q, k) * D ** -0.5
    if sees is None:
        return a
    return jnp.where(sees(jnp.arange(q.shape[1])[:, None], jnp.arange(k.shape[1])[None]), a, -1e30)


def causal(m, n):
    return m >= n


def weighted(p, v):
    return jnp.einsum("bhqk,bkhe->bqhe", p, v)


def kept(key, shape):
    return jax.random.bernoulli(key, KEEP, shape)


def by_where(q, k, v, key, sees=None):
    p = jax.nn.softmax(scores(q, k, sees), -1)
    return weighted(jnp.where(kept(key, p.shape), p / KEEP, 0), v)


def with_causal_mask(q, k, v, key):
    return by_where(q, k, v, key, causal)


def with_window(q, k, v, key):
    return by_where(q, k, v, key, lambda m, n: (m >= n) & (m - n < 3))


def by_product(q, k, v, key):  # as in flax
    p = jax.nn.softmax(scores(q, k), -1)
    return weighted(p * (kept(key, p.shape).astype(p.dtype) / jnp.asarray(KEEP, p.dtype)), v)


def by_select_of_dropped(q, k, v, key):
    p = jax.nn.softmax(scores(q, k, causal), -1)
    return weighted(lax.select(jax.random.uniform(key, p.shape) < 1 - KEEP, jnp.zeros_like(p), p * (1 / KEEP)), v)


def the_same_for_all_heads(q, k, v, key):
    p = jax.nn.softmax(scores(q, k), -1)
    return weighted(jnp.where(jnp.broadcast_to(kept(key, (1, 1, *p.shape[2:])), p.shape), p / KEEP, 0), v)


def grouped(q, k, v, key):
    q = q.reshape(B, S, 2, H // 2, D)
    p = jax.nn.softmax(jnp.einsum("bqgre,bkge->bgrqk", q, k[:, :, :2]), -1)
    return jnp.einsum("bgrqk,bkge->bqgre", jnp.where(kept(key, p.shape), p / KEEP, 0), v[:, :, :2]).reshape(B, S, H, D)


def merged_heads(q, k, v, key):
    q, k, v = (x.transpose(0, 2, 1, 3).reshape(B * H, S, D) for x in (q, k, v))
    p = jax.nn.softmax(lax.batch_matmul(q, k.swapaxes(1, 2)).reshape(B, H, S, S), -1)
    p = jnp.where(kept(key, p.shape), p / KEEP, 0)
    return lax.batch_matmul(p.reshape(B * H, S, S), v).reshape(B, H, S, D).transpose(0, 2, 1, 3)


def divided_behind(q, k, v, key):
    a = scores(q, k)
    e = jnp.exp(a - a.max(-1, keepdims=True))
    return jnp.einsum("bhqk,bkhe->bhqe", jnp.where(kept(key, e.shape), e / KEEP, 0), v) / e.sum(-1, keepdims=True)


def twice(q, k, v, key):
    p = jax.nn.softmax(scores(q, k), -1)
    first, second = jax.random.split(key)
    return weighted(jnp.where(kept(second, p.shape), jnp.where(kept(first, p.shape), p / KEEP, 0) / KEEP, 0), v)


SPELLINGS = [by_where, with_causal_mask, with_window, by_product, by_select_of_dropped, the_same_for_all_heads, grouped,
             merged_heads, divided_behind, twice]
DIFFERENTIATED = [fn for fn in SPELLINGS if fn is not divided_behind]


def gradient(fn):
    return jax.value_and_grad(lambda q, k, v, key: jnp.sum(jnp.sin(fn(q, k, v, key))), argnums=(0, 1, 2))


def differentiated(fn, avals, *rest, **options):
    program = tessera.from_jax(gradient(fn), avals, *rest, **options)
    program.passes = "dist-normalize,dist-recognize-attention-backward{recomputed-scores=0}"  # otherwise small scores are kept
    return program


def close(found, wanted, message=None):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=3e-5, err_msg=message or "")


class Dropout(JaxCase):
    arguments = [array(B, S, H, D)] * 3 + [KEY]

    def of_key(self, avals):
        """Random values, and a key, whose words use all bits."""
        return [*self.values(avals[:3], 0), np.array([0x9E3779B9, 0xDEADBEEF], np.uint32)]

    def test_each_is_one_op(self):
        for fn in SPELLINGS:
            with self.subTest(fn.__name__):
                text = tessera.from_jax(fn, self.arguments).lower("normalized")
                self.assertEqual(text.count("= ext.attention "), 1, text)
                self.assertIn("} weights {", text)
                self.assertNotIn(f"{S}x{S}x", text)

    def test_values(self):
        values = self.of_key(self.arguments)
        for fn in SPELLINGS:
            self.check(fn, *self.arguments, values=values)

    def test_each_derivative_is_one_op(self):
        for fn in DIFFERENTIATED:
            with self.subTest(fn.__name__):
                text = differentiated(fn, self.arguments).lower("normalized")
                self.assertEqual(text.count("= ext.attention_backward"), 1, text)
                self.assertEqual(text.count("= ext.attention "), 1, text)
                self.assertNotIn(f"{S}x{S}x", text)

    def test_gradients(self):
        """On one device, and cut over batch, sequence and heads."""
        values = self.of_key(self.arguments)
        for fn in DIFFERENTIATED:
            wanted = jax.jit(gradient(fn))(*values)
            for turn in None, 0, 1:
                cuts = () if turn is None else ((*(cut(4, turn) for _ in range(3)), PartitionSpec()),)
                program = differentiated(fn, self.arguments, *cuts, mesh=None if turn is None else mesh_of(x=2, y=3))
                close(program(*values), wanted, f"{fn.__name__} cut by turn {turn}")

    def test_a_mask_that_is_an_argument(self):
        def given(q, k, v, mask):
            p = jax.nn.softmax(scores(q, k), -1)
            return weighted(jnp.where(mask, p / KEEP, 0), v)
        arguments = [*self.arguments[:3], array(B, H, S, S, dtype=bool)]
        self.assertEqual(tessera.from_jax(given, arguments).lower("normalized").count("= ext.attention "), 1)
        self.check(given, *arguments)
        values = self.values(arguments, 0)
        program = differentiated(given, arguments)
        self.assertIn("= ext.attention_backward", program.lower("normalized"))
        close(program(*values), jax.jit(gradient(given))(*values))

    def test_rings_and_bands(self):
        """Keys cut like the queries: blocks in turn, balanced or not, and windows; draws are at global positions."""
        parts = PartitionSpec(None, "s")
        for length in 16, 13:
            arguments = [array(B, length, 3, D)] * 3 + [KEY]
            values = self.of_key(arguments)
            for fn in by_where, with_causal_mask, with_window:
                for both in fn, gradient(fn):
                    outs = parts if both is fn else (PartitionSpec(), (parts,) * 3)
                    program = tessera.from_jax(both, arguments, (parts,) * 3 + (PartitionSpec(),), outs, mesh=mesh_of(s=4))
                    program.passes = "dist-normalize,dist-recognize-attention-backward{recomputed-scores=0},dist-recognize-attention"
                    options = {"attention_sequence": "ring"}
                    kinds = {each["kind"] for each in program.explain(**options)["collectives"]}
                    self.assertNotIn("all_gather", kinds)
                    found = tessera.load(program.compile(**options))(*values)
                    close(found, jax.jit(both)(*values), f"{fn.__name__} of {length}")

    def test_of_modules(self):
        """In the form of tessera.nn, whose derivative is formed from the op."""
        def attend(q, k, v):
            p = ops.softmax(ops.einsum("bqhe,bkhe->bhqk", q, k), -1)
            return ops.einsum("bhqk,bkhe->bqhe", nn.functional.dropout(p, 1 - KEEP, random.key(5)), v)

        def by_hand(q, k, v):
            p = jax.nn.softmax(jnp.einsum("bqhe,bkhe->bhqk", q, k), -1)
            return weighted(jnp.where(drawn >= 1 - KEEP, p / KEEP, 0), v)
        values = self.of_key(self.arguments)[:3]
        drawn = tessera.jit(lambda: random.uniform(random.key(5), (B, H, S, S)))().numpy()
        self.assertEqual(tessera.jit(attend).lower(*values).lower("normalized").count("= ext.attention "), 1)
        close(tessera.jit(attend)(*values).numpy(), by_hand(*values))
        large = np.zeros((1, 2048, 2, 8), np.float32)  # 32 MiB of scores
        step = tessera.jit(lambda q, k, v: tessera.grad(lambda *a: ops.sum(ops.sin(attend(*a))), (0, 1, 2))(q, k, v))
        text = step.lower(large, large, large).lower("normalized")
        self.assertEqual(text.count("= ext.attention_backward"), 1, text)
        self.assertNotIn("2048x2048", text)

    def test_memory_is_linear(self):
        arguments = [array(8, 2048, 12, 64)] * 3 + [KEY]
        tensor = 8 * 2048 * 12 * 64 * 4  # bytes; scores take 32 times as many
        for fn, tensors in (by_where, 4), (gradient(by_where), 8):
            peak = tessera.from_jax(fn, arguments).explain()["peak_memory_bytes"]
            self.assertLess(peak, 1.3 * tensors * tensor)

    def test_a_mask_of_the_scores_stays(self):
        """Zeros for rows without a key, whose softmax is not a number, are not dropout."""
        def masked(q, k, v, key):
            sees = (jnp.arange(S)[:, None] < 5) | causal(jnp.arange(S)[:, None], jnp.arange(S)[None])
            p = jax.nn.softmax(jnp.where(sees, scores(q, k), -jnp.inf), -1)
            return weighted(jnp.where(sees, p, 0), v)
        self.assertNotIn("ext.attention", tessera.from_jax(masked, self.arguments).lower("normalized"))

    def test_weights_that_are_not_linear_stay(self):
        def squared(q, k, v, key):
            return weighted(jnp.square(jax.nn.softmax(scores(q, k), -1)), v)

        def shifted(q, k, v, key):
            p = jax.nn.softmax(scores(q, k), -1)
            return weighted(jnp.where(kept(key, p.shape), p, 0.5), v)
        for fn in squared, shifted:
            self.assertNotIn("ext.attention", tessera.from_jax(fn, self.arguments).lower("normalized"))

    def test_gradients_with_another_mask_stay(self):
        @jax.custom_vjp
        def dropped(p, key, other):
            return jnp.where(kept(key, p.shape), p / KEEP, 0)
        dropped.defvjp(lambda p, key, other: (dropped(p, key, other), other),
                       lambda other, g: (jnp.where(kept(other, g.shape), g / KEEP, 0), None, None))

        def attend(q, k, v, key):
            first, second = jax.random.split(key)
            return weighted(dropped(jax.nn.softmax(scores(q, k), -1), first, second), v)
        self.assertNotIn("ext.attention", differentiated(attend, self.arguments).lower("normalized"))


if __name__ == "__main__":
    unittest.main()
