# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of scores too large to be computed at once: blocks of queries read the keys that they see. Values and gradients are JAX's."""

import unittest

import jax
import jax.numpy as jnp
import numpy as np

import tessera


def attention(visible, masked=-jnp.inf):
    """visible: a function of the indices of query and key."""
    def attend(q, k, v):
        scores = jnp.einsum("bhsd,bhtd->bhst", q, k) * q.shape[-1] ** -0.5
        if visible is not None:
            rows, columns = jnp.arange(q.shape[-2])[:, None], jnp.arange(k.shape[-2])[None]
            scores = jnp.where(visible(rows, columns), scores, masked)
        return jnp.einsum("bhst,bhtd->bhsd", jax.nn.softmax(scores, -1), v)
    return attend


class Blocks(unittest.TestCase):
    def check(self, attend, queries, keys=None, heads=2):
        random = np.random.default_rng(queries)
        shape = lambda n: (1, heads, n, 16)
        q, k, v, g = [random.standard_normal(shape(n)).astype(np.float32) for n in (queries, keys or queries, keys or queries, queries)]
        self.assertGreater(4 * heads * queries * (keys or queries), 32 << 20)

        def both(q, k, v, g):
            output, backward = jax.vjp(attend, q, k, v)
            return output, backward(g)
        program = tessera.from_jax(both, (q, k, v, g))
        for mine, theirs in zip(jax.tree.leaves(program(q, k, v, g)), jax.tree.leaves(jax.jit(both)(q, k, v, g))):
            self.assertLess(np.abs(mine - theirs).max(), 1e-5 * np.abs(theirs).max())

    def test_causal(self):
        self.check(attention(lambda i, j: j <= i), 2176)

    def test_causal_of_an_odd_length_masked_by_a_finite_number(self):
        self.check(attention(lambda i, j: j <= i, -1e30), 2103)

    def test_window(self):
        self.check(attention(lambda i, j: (j <= i) & (i - j < 300)), 2176)

    def test_later_keys_alone(self):
        self.check(attention(lambda i, j: j >= i), 2103)

    def test_more_keys_than_queries(self):
        """The last query sees the last key."""
        self.check(attention(lambda i, j: j <= i + 1000), 1700, 2700)

    def test_all_keys(self):
        self.check(attention(None), 2103)

    def check_loss(self, attend, queries, batch, heads):
        random = np.random.default_rng(queries)
        q, k, v = [random.standard_normal((batch, heads, queries, 16)).astype(np.float32) for _ in range(3)]
        self.assertGreater(4 * batch * heads * queries ** 2, 32 << 20)
        backward = jax.grad(lambda *a: (attend(*a) ** 2).sum(), (0, 1, 2))
        for mine, theirs in zip(tessera.from_jax(backward, (q, k, v))(q, k, v), jax.jit(backward)(q, k, v)):
            self.assertLess(np.abs(mine - theirs).max(), 1e-5 * np.abs(theirs).max())

    def test_loss(self):
        """The derivative by the query is written over that by the output, block by block."""
        self.check_loss(attention(None), 1100, 2, 5)
        self.check_loss(attention(lambda i, j: j <= i, -1e30), 1100, 2, 5)
        self.check_loss(attention(lambda i, j: j <= i, -1e30), 2103, 1, 2)

    def test_memory(self):
        """Arguments, results, and blocks; of a loss besides the output or its derivative, which becomes that by the query."""
        x = jax.ShapeDtypeStruct((8, 12, 4096, 64), np.float32)
        for visible in None, lambda i, j: j <= i:
            attend = attention(visible, -1e30)
            for fn, tensors in ((attend, 4), (jax.grad(lambda *a: (attend(*a) ** 2).sum(), (0, 1, 2)), 6),
                                (jax.value_and_grad(lambda *a: jnp.tanh(attend(*a)).sum(), (0, 1, 2)), 6),
                                (lambda q, k, v: jax.vjp(attend, q, k, v)[1](q), 6)):
                peak = tessera.from_jax(fn, (x, x, x)).explain()["peak_memory_bytes"]
                self.assertLess(peak, 1.1 * tensors * 4 * x.size)



if __name__ == "__main__":
    unittest.main()
