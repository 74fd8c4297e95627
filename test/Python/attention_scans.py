# RUN: %tessera_python %s
# REQUIRES: python, jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of transformers whose layers are a lax.scan: the scores of no layer are kept."""

import unittest

import jax
import jax.numpy as jnp
import numpy as np

import tessera as ts
from jax.sharding import PartitionSpec as P
from tessera import ProcessMesh

LAYERS, LENGTH, WIDTH, HEADS = 3, 2048, 32, 4
SCORES = HEADS * LENGTH * LENGTH * 4  # bytes of a layer


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * 0.3


def layer(score, heads=HEADS, shares=lambda p, _: p):
    """A layer whose attention has the scores `score(product of queries and keys)`."""
    def run(x, w):
        split = lambda name, n: (x @ w[name]).reshape(*x.shape[:2], n, WIDTH // HEADS)
        q, k, v = split("q", HEADS), split("k", heads), split("v", heads)
        k, v = (jnp.repeat(t, HEADS // heads, axis=2) for t in (k, v))
        p = shares(jax.nn.softmax(score(jnp.einsum("bqhd,bkhd->bhqk", q, k)).astype(jnp.float32)), w).astype(x.dtype)
        return x + jnp.tanh(jnp.einsum("bhqk,bkhd->bqhd", p, v).reshape(x.shape) @ w["o"]), None
    return run


def causal(s):
    return jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s / 3, -1e30)


def weights(heads=HEADS):
    part = WIDTH * heads // HEADS
    return {name: draw(LAYERS, WIDTH, columns, seed=i) for i, (name, columns) in
            enumerate({"q": WIDTH, "k": part, "v": part, "o": WIDTH}.items())}


def gradients(run, steps=1):
    def loss(w, x):
        for _ in range(steps):
            x, _ = jax.lax.scan(run, x, w)
        return jnp.mean(x.astype(jnp.float32) ** 2)
    return jax.grad(loss, (0, 1))


class Scans(unittest.TestCase):
    def check(self, f, arguments, shardings=None, tolerance=2e-4, **options):
        """The report, after comparing values with JAX."""
        program = ts.from_jax(f, arguments, shardings, **options)
        for ours, theirs in zip(jax.tree.leaves(program(*arguments)), jax.tree.leaves(jax.jit(f)(*arguments))):
            theirs = np.asarray(theirs, np.float32)
            np.testing.assert_allclose(np.asarray(ours, np.float32), theirs, atol=tolerance * np.abs(theirs).max())
        return program.explain()

    def test_memory(self):
        x = draw(1, LENGTH, WIDTH)
        softcap = lambda s: 5 * jnp.tanh(s / 5)
        for score, heads in ((causal, HEADS), (causal, 2), (softcap, HEADS), (lambda s: s / 3, HEADS)):
            report = self.check(gradients(layer(score, heads)), (weights(heads), x))
            self.assertLess(report["peak_memory_bytes"], SCORES / 2)

    def test_sixteen_bits(self):
        w, x = jax.tree.map(lambda a: a.astype(jnp.bfloat16), (weights(), draw(1, LENGTH, WIDTH)))
        report = self.check(gradients(layer(causal)), (w, x), tolerance=0.03)
        self.assertLess(report["peak_memory_bytes"], SCORES / 2)

    def test_loops_in_loops(self):
        """Micro-batches around the layers, and two scans after each other."""
        def accumulated(w, xs):
            step = lambda total, x: (jax.tree.map(jnp.add, total, gradients(layer(causal))(w, x)[0]), None)
            return jax.lax.scan(step, jax.tree.map(jnp.zeros_like, w), xs)[0]
        report = self.check(accumulated, (weights(), draw(2, 1, LENGTH, WIDTH)))
        self.assertLess(report["peak_memory_bytes"], SCORES)
        report = self.check(gradients(layer(causal), steps=2), (weights(), draw(1, LENGTH, WIDTH)))
        self.assertLess(report["peak_memory_bytes"], SCORES)

    def test_scores_with_other_readers(self):
        """What something else needs of them stays right."""
        def run(x, w):
            y, _ = layer(causal)(x, w)
            s = causal(jnp.einsum("bqd,bkd->bqk", x @ w["q"], x @ w["k"]))
            p = jax.nn.softmax(s)
            return y + (p @ x) * 0.1, (p ** 2).sum()

        def loss(w, x):
            y, aux = jax.lax.scan(run, x, w)
            return jnp.mean(y ** 2) + aux.sum() * 1e-3
        self.check(jax.grad(loss, (0, 1)), (weights(), draw(1, LENGTH, WIDTH)))

    def test_merged_heads(self):
        """Batch and heads are one dimension of the scores, and two of what is kept."""
        def run(x, w):
            split = lambda name: (x @ w[name]).reshape(2, LENGTH, HEADS, -1).transpose(0, 2, 1, 3).reshape(2 * HEADS, LENGTH, -1)
            q, k, v = map(split, "qkv")
            p = jax.nn.softmax(causal(q @ k.transpose(0, 2, 1)).reshape(2, HEADS, LENGTH, LENGTH))
            y = p.reshape(2 * HEADS, LENGTH, LENGTH) @ v
            return x + jnp.tanh(y.reshape(2, HEADS, LENGTH, -1).transpose(0, 2, 1, 3).reshape(x.shape) @ w["o"]), None
        self.check(gradients(run), (weights(), draw(2, LENGTH, WIDTH)))

    def test_dropped_shares(self):
        def drop(p, w):
            return jnp.where(jax.random.bernoulli(w["key"], 0.8, p.shape), p / 0.8, 0)
        keys = jax.random.split(jax.random.PRNGKey(0), LAYERS)

        def loss(w, x):
            return jnp.mean(jax.lax.scan(layer(causal, shares=drop), x, {**w, "key": keys})[0] ** 2)
        self.check(jax.grad(loss, (0, 1)), (weights(), draw(1, LENGTH, WIDTH)))

    def test_devices(self):
        """Heads, batch and sequence cut: the same bytes as of layers that are written out."""
        def written_out(w, x):
            def loss(w, x):
                for i in range(LAYERS):
                    x, _ = layer(causal)(x, jax.tree.map(lambda a: a[i], w))
                return jnp.mean(x ** 2)
            return jax.grad(loss, (0, 1))(w, x)
        whole = {name: P() for name in "qkvo"}
        heads = {"q": P(None, None, "t"), "k": P(None, None, "t"), "v": P(None, None, "t"), "o": P(None, "t", None)}
        for shape, w, x in (((2, 2), heads, P("d")), ((2, 2), whole, P(None, "d")), ((4, 1), whole, P("d"))):
            mesh = ProcessMesh(np.arange(4).reshape(shape), ("d", "t"))
            arguments = weights(), draw(4, 256, WIDTH)
            report = self.check(gradients(layer(causal)), arguments, (w, x), mesh=mesh)
            other = ts.from_jax(written_out, arguments, (w, x), mesh=mesh).explain()
            self.assertLessEqual(report["wire_bytes_total"], other["wire_bytes_total"] * 1.02)


if __name__ == "__main__":
    unittest.main()
