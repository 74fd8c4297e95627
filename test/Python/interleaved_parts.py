# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batches concatenated of parts that are cut, a network of each row, and its results by part: values and gradients equal JAX's, and
the devices send nothing for the parts."""

import unittest

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P
from jax_case import JaxCase, array

import tessera as ts
from tessera.testing import difference

B, D, H = 8, 6, 10
x, w1, w2 = array(B, D), array(D, H), array(H, D)


def network(w, v, x):
    return jax.nn.gelu(x @ w) @ v


def guided(f):
    """Classifier-free guidance of a network f."""
    def step(x, *weights):
        u, v = jnp.split(f(jnp.concatenate([x + 1, x]), *weights), 2)
        return v + 1.5 * (u - v)
    return step


def convolved(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def unet(x, down, up):
    """Convolutions with strides and group norms, attention over pixels, upsampling, a skip connection."""
    h = convolved(jax.nn.silu(x), down)
    g = h.reshape(*h.shape[:3], 2, -1)
    g = (g - g.mean((1, 2, 4), keepdims=True)) * lax.rsqrt(g.var((1, 2, 4), keepdims=True) + 1e-5)
    h = g.reshape(h.shape)
    p = lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    t = p.reshape(p.shape[0], -1, p.shape[-1])
    t = t + jax.nn.softmax(t @ t.swapaxes(1, 2)) @ t
    p = jnp.repeat(jnp.repeat(t.reshape(p.shape), 2, 1), 2, 2)
    return convolved(jnp.concatenate([p, h], -1), up)


class Interleaved(JaxCase):
    def compare(self, fn, *avals, sent=0, cut=1, devices=4, below=5):
        """On devices that cut the first dimension of the first `cut` arguments, and on one. `sent`: most bytes of moves; sums of
        gradients and losses are not counted."""
        values = self.values(avals, below)
        expected = jax.tree.leaves(jax.jit(fn)(*values))
        specs = tuple(P("d") if i < cut else P() for i in range(len(avals)))
        program = ts.from_jax(fn, avals, specs, mesh=AbstractMesh((devices,), ("d",)))
        moved = [c for c in program.explain()["collectives"] if c["kind"] not in ("all_reduce", "reduce_scatter", "all_gather")]
        self.assertLessEqual(sum(c["wire_bytes"] * c["trips"] for c in moved), sent, [(c["kind"], c["reason"]) for c in moved])
        for leaf, a, b in zip(program.outputs, jax.tree.leaves(program(*values)), expected):
            wrong = difference(a, b)
            self.assertIsNone(wrong, f"{leaf.name}: {wrong}")

    def gradients(self, fn, *avals, **options):
        """By all arguments but the first."""
        loss = lambda *v: jnp.mean(fn(*v) ** 2)
        self.compare(jax.value_and_grad(loss, tuple(range(1, len(avals)))), *avals, **options)

    def test_guidance(self):
        f = guided(lambda x, w, v: network(w, v, x))
        self.compare(f, x, w1, w2)
        self.gradients(f, x, w1, w2)
        tiled = lambda x, w, v: network(w, v, jnp.tile(x, (2, 1)) + jnp.repeat(jnp.stack([w[:, 0], w[:, 1]]), B, 0))
        self.compare(lambda *a: tiled(*a)[:B] - tiled(*a)[B:], x, w1, w2)
        sampler = lambda x, w, v: lax.fori_loop(0, 5, lambda i, x: x + .1 * f(x, w, v), x)
        self.compare(sampler, x, w1, w2)
        self.compare(lambda x, w, v: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, f(s[1], w, v)), (0, x))[1], x, w1, w2)

    def test_unet(self):
        image, down, up = array(B, 4, 6, 3), array(3, 3, 3, 4), array(3, 3, 8, 3)
        self.compare(guided(unet), image, down, up)
        self.gradients(guided(unet), image, down, up)

    def test_scanned_layers(self):
        def layers(x, ws):
            def layer(h, w):
                q = h.reshape(-1, D) @ w  # tokens of all rows
                q = q.reshape(h.shape)
                q = q - q.mean(-1, keepdims=True)
                a = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((5, 5), bool)), q @ h.swapaxes(1, 2), -1e9))
                return h + a @ h, q.sum((1, 2))
            h, sums = lax.scan(jax.checkpoint(layer), x, ws)
            return h + sums.sum(0)[:, None, None]
        self.compare(guided(layers), array(B, 5, D), array(3, D, D))
        self.gradients(guided(layers), array(B, 5, D), array(3, D, D))

    def test_losses(self):
        def simclr(a, b, w, v):
            z = network(w, v, jnp.concatenate([a, b]))
            z = z / jnp.linalg.norm(z, axis=1, keepdims=True)
            s = jnp.where(jnp.eye(2 * B, dtype=bool), -1e9, z @ z.T / .1)
            labels = (jnp.arange(2 * B) + B) % (2 * B)
            return jnp.mean(jax.nn.logsumexp(s, 1) - jnp.take_along_axis(s, labels[:, None], 1)[:, 0])

        def gan(real, fake, w, v):
            score = network(w, v, jnp.concatenate([real, fake]))
            score = (score - score.mean(0)) / (score.std(0) + 1)  # over all rows
            return jax.nn.softplus(-score[:B]).mean() + jax.nn.softplus(score[B:]).mean()

        def dpr(q, p, n, w, v):
            z = network(w, v, jnp.concatenate([q, p, n.reshape(-1, D)]))
            q, p, n = z[:B], z[B:2 * B], z[2 * B:].reshape(B, 3, -1)
            s = jnp.concatenate([(q * p).sum(-1, keepdims=True), jnp.einsum("bd,bnd->bn", q, n)], 1)
            return -jax.nn.log_softmax(s)[:, 0].mean()
        for loss, avals in ((simclr, (x, x)), (gan, (x, x)), (dpr, (x, x, array(B, 3, D)))):
            avals += w1, w2
            for devices in 2, 4:
                self.compare(loss, *avals, cut=len(avals) - 2, devices=devices)
                self.compare(jax.grad(loss, tuple(range(len(avals)))), *avals, cut=len(avals) - 2, devices=devices)

    def test_positions(self):
        """What depends on the number of a row stays as it is."""
        def numbered(a, b, w):
            n = jnp.arange(2 * B)
            h = jnp.concatenate([a, b]) @ w + n[:, None] * 0.1
            h = jnp.where((n % 3 == 1)[:, None], h, -h) + jax.nn.one_hot(n % H, H)
            return h[:B] * 2, h[B:]
        self.compare(numbered, x, x, w1, cut=2)
        self.compare(lambda a, b, w: (jnp.cumsum(h := jnp.concatenate([a, b]) @ w, 1)[:B], jnp.sort(h, 1)[B:], jnp.argmax(h, 1)[:B]),
                     x, x, w1, cut=2)
        for f in (lambda h: jnp.cumsum(h, 0), lambda h: h[::-1], lambda h: jnp.sort(h, 0), lambda h: jnp.argmax(h, 0), lambda h: h[3:11],
                  lambda h: h, lambda h: jnp.roll(h, 1, 0), lambda h: h[jnp.array([3, 9, 14])], lambda h: h.reshape(4, -1),
                  lambda h: jnp.tril(h @ h.T)[:B], lambda h: h.at[5].set(0)[B:]):
            self.compare(lambda a, b, w, f=f: (f(h := jnp.concatenate([a, b]) @ w), jnp.tanh(h)[:B]), x, x, w1, cut=2, sent=1e9)

    def test_parts(self):
        three = lambda a, b, c, w: [y * (i + 1) for i, y in enumerate(jnp.split(jnp.concatenate([a, b, c]) @ w, 3))]
        self.compare(three, x, x, x, w1, cut=3)
        tail = lambda a, b, w: jnp.concatenate([a, b]).reshape(-1, D)  @ w
        self.compare(lambda a, b, w: tail(a, b, w).reshape(2 * B, 3, H)[B:].sum(1), array(B, 3, D), array(B, 3, D), w1, cut=2)
        self.compare(lambda a, b, w: tail(a, b, w).reshape(2, B, 3, H)[1], array(B, 3, D), array(B, 3, D), w1, cut=2)
        self.compare(lambda a, b, w: tail(a, b, w)[B * 3:], array(B, 3, D), array(B, 3, D), w1, cut=2)
        labels = lambda a, b, y, w: (jnp.concatenate([a, b]) @ w * y[:, None]).sum(1)[:B]  # whose rows are moved
        self.compare(labels, x, x, array(2 * B), w1, cut=3, sent=2 * B * 4)
        few = lambda a, b, w: jnp.split(jnp.tanh(jnp.concatenate([a, b])) @ w, 2)  # not as many rows as devices divide
        self.compare(few, array(6, D), array(6, D), w1, cut=2, sent=1e9)
        uneven = lambda a, b, w: jnp.split(jnp.tanh(jnp.concatenate([a, b]) @ w), [B])
        self.compare(uneven, x, array(3 * B, D), w1, cut=2)
        inner = lambda a, b, w: jnp.split(jnp.concatenate([a, b], 1) @ w, [4], 1)
        values = array(3, 4, D), array(3, 8, D), w1
        self.check(inner, *values)


if __name__ == "__main__":
    unittest.main()
