# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention that JAX has differentiated is recognized with its derivative, and equals JAX's."""

import unittest

import jax
import numpy as np
from jax_case import JaxCase, array, cut, jnp, mesh_of

import attention_forms as spelled
import tessera

B, S, H, D = spelled.B, spelled.S, spelled.H, spelled.D
# Otherwise small scores are kept.
PASSES = "dist-normalize,dist-recognize-attention-backward{recomputed-scores=0}"


def softmax_with_derivative_of_maximum(q, k, v):
    a = jnp.einsum("bqhe,bkhe->bhqk", q, k)
    e = jnp.exp(a - jnp.max(a, -1, keepdims=True))
    return jnp.einsum("bhqk,bkhe->bqhe", e / e.sum(-1, keepdims=True), v)


def capped(q, k, v):
    a = jnp.where(spelled.causal(), 5 * jnp.tanh(jnp.einsum("bqhe,bkhe->bhqk", q, k) / 5), -1e30)
    return jnp.einsum("bhqk,bkhe->bqhe", jax.nn.softmax(a, -1), v)


SPELLINGS = [spelled.scale_behind, spelled.scale_before, spelled.matmul_heads_first, spelled.mask_by_where, spelled.mask_by_addition,
             spelled.mask_by_product, spelled.window_and_cap, spelled.log_softmax, spelled.library, spelled.library_grouped,
             spelled.merged_heads, spelled.grouped_by_repeat, spelled.grouped_by_broadcast,
             spelled.grouped_by_reshape, spelled.positions_as_bias, spelled.segments, spelled.narrow,
             softmax_with_derivative_of_maximum, capped]


def gradient(fn):
    return jax.value_and_grad(lambda q, k, v: jnp.sum(jnp.sin(fn(q, k, v))), argnums=(0, 1, 2))


def imported(fn, avals, *rest, **options):
    program = tessera.from_jax(fn, avals, *rest, **options)
    program.passes = PASSES
    return program


class Derivatives(JaxCase):
    arguments = [array(B, S, H, D)] * 3

    def test_each_is_one_op(self):
        for spelling in SPELLINGS:
            with self.subTest(spelling.__name__):
                text = imported(gradient(spelling), self.arguments).lower("normalized")
                self.assertEqual(text.count("= ext.attention_backward"), 1, text)
                self.assertEqual(text.count("= ext.attention "), 1, text)
                self.assertNotIn("math.exp", text)

    def test_programs_without_the_output(self):
        for spelling in SPELLINGS:
            with self.subTest(spelling.__name__):
                def pullback(q, k, v, of_output, fn=spelling):
                    return jax.vjp(fn, q, k, v)[1](of_output)
                output = jax.eval_shape(spelling, *self.arguments)
                text = imported(pullback, [*self.arguments, output]).lower("normalized")
                self.assertEqual(text.count("= ext.attention_backward"), 1, text)
                self.assertNotIn("math.exp", text)

    def test_no_tensor_of_scores_is_left(self):
        for spelling in spelled.scale_behind, spelled.mask_by_where, spelled.library, capped:
            with self.subTest(spelling.__name__):
                self.assertNotIn(f"{S}x{S}x", imported(gradient(spelling), self.arguments).lower("normalized"))

    def test_values(self):
        """On one device, and cut over batch, sequence, heads and features."""
        fns = [gradient(fn) for fn in SPELLINGS if fn is not spelled.narrow]
        values = self.values(self.arguments, 0)
        together = lambda *args: [fn(*args) for fn in fns]
        expected = jax.tree.leaves(jax.jit(together)(*values))
        for turn in None, 0, 1, 2:
            cuts = () if turn is None else (tuple(cut(4, turn) for _ in values),)
            program = imported(together, self.arguments, *cuts, mesh=None if turn is None else mesh_of(x=2, y=3))
            for leaf, wanted, found in zip(program.outputs, expected, jax.tree.leaves(program(*values))):
                np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=3e-5, err_msg=f"{leaf.name} cut by turn {turn}")

    def test_a_block(self):
        """Differentiates the weights: products also read the gradients of query, key and value."""
        def loss(p, x):
            q, k, v = ((x @ p[name]).reshape(B, S, H, D) for name in "qkv")
            return jnp.mean((x + spelled.mask_by_where(q, k, v).reshape(B, S, H * D) @ p["o"]) ** 2)
        arguments = {name: array(H * D, H * D) for name in "qkvo"}, array(B, S, H * D)
        values = self.values(arguments, 0)
        expected = jax.tree.leaves(jax.jit(jax.value_and_grad(loss))(*values))
        for turn in None, 0, 1:
            cuts = () if turn is None else (({name: cut(2, turn) for name in "qkvo"}, cut(3, turn)),)
            program = imported(jax.value_and_grad(loss), arguments, *cuts, mesh=None if turn is None else mesh_of(x=2, y=3))
            self.assertEqual(program.lower("normalized").count("= ext.attention_backward"), 1)
            for wanted, found in zip(expected, jax.tree.leaves(program(*values))):
                np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=3e-5, err_msg=f"cut by turn {turn}")

    def test_narrow_gradients(self):
        values = self.values(self.arguments, 0)
        expected = jax.jit(gradient(spelled.narrow))(*values)
        found = imported(gradient(spelled.narrow), self.arguments)(*values)
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
            np.testing.assert_allclose(np.asarray(a, np.float32), np.asarray(b, np.float32), atol=2e-2)

    def test_small_scores_are_kept(self):
        text = tessera.from_jax(gradient(spelled.scale_behind), self.arguments).lower("normalized")
        self.assertNotIn("ext.attention", text)

    def test_large_scores_are_not(self):
        text = tessera.from_jax(gradient(spelled.library), [array(2, 1024, 4, 8)] * 3).lower("normalized")
        self.assertEqual(text.count("= ext.attention_backward"), 1, text)
        self.assertNotIn("1024x1024", text)

    def test_shares_that_others_read_stay(self):
        def entropy(q, k, v):
            p = jax.nn.softmax(jnp.einsum("bqhe,bkhe->bhqk", q, k), -1)
            return jnp.sum(jnp.sin(jnp.einsum("bhqk,bkhe->bqhe", p, v))) + jnp.sum(p * p)
        fn = jax.value_and_grad(entropy, argnums=(0, 1, 2))
        self.assertNotIn("ext.attention", imported(fn, self.arguments).lower("normalized"))

    def test_gradients_that_a_program_scales_stay(self):
        """The products do not read the derivative itself."""
        @jax.custom_vjp
        def softmax(a):
            return jax.nn.softmax(a, -1)
        softmax.defvjp(lambda a: (jax.nn.softmax(a, -1),) * 2, lambda p, g: (p * (g - 0.9 * (p * g).sum(-1, keepdims=True)),))

        def attend(q, k, v):
            return jnp.einsum("bhqk,bkhe->bqhe", softmax(jnp.einsum("bqhe,bkhe->bhqk", q, k)), v)
        self.assertNotIn("ext.attention", imported(gradient(attend), self.arguments).lower("normalized"))


if __name__ == "__main__":
    unittest.main()
