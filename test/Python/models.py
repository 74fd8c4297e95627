# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps of other models than the workloads: LLaMA, ResNet, U-Net, LSTM, top-2 experts, embedding bags, Adam.
Sizes that do not divide."""

import unittest

from jax_case import I, JaxCase, array, jax, jnp, mesh_of
from jax import lax

NHWC = ("NHWC", "HWIO", "NHWC")


def step(loss):
    """Gradients and loss."""
    return lambda params, *data: jax.value_and_grad(loss)(params, *data)


class Models(JaxCase):
    def train(self, loss, params, *data, below=5):
        self.check(step(loss), params, *data, below=below)

    def test_llama(self):
        """RMS norm, rotary embedding, grouped queries, SwiGLU."""
        d, heads, groups, e, seq = 12, 6, 2, 4, 5

        def norm(x, g):
            return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * g

        def rotate(x):
            half = e // 2
            angle = jnp.arange(seq)[:, None] * (0.1 ** (jnp.arange(half) / half))
            c, s = jnp.cos(angle)[:, None], jnp.sin(angle)[:, None]
            a, b = x[..., :half], x[..., half:]
            return jnp.concatenate([a * c - b * s, a * s + b * c], -1)

        def loss(p, x, y):
            h = norm(x, p["g1"])
            q = rotate((h @ p["wq"]).reshape(*x.shape[:2], groups, heads // groups, e).reshape(*x.shape[:2], heads, e))
            k = rotate((h @ p["wk"]).reshape(*x.shape[:2], groups, e))
            v = (h @ p["wv"]).reshape(*x.shape[:2], groups, e)
            q = q.reshape(*x.shape[:2], groups, heads // groups, e)
            a = jnp.einsum("bqghe,bkge->bghqk", q, k) / e ** 0.5
            a = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((seq, seq), bool)), a, -jnp.inf))
            x = x + jnp.einsum("bghqk,bkge->bqghe", a, v).reshape(*x.shape[:2], heads * e) @ p["wo"]
            h = norm(x, p["g2"])
            return jnp.mean((x + (jax.nn.silu(h @ p["w1"]) * (h @ p["w3"])) @ p["w2"] - y) ** 2)
        p = dict(g1=array(d), g2=array(d), wq=array(d, heads * e), wk=array(d, groups * e), wv=array(d, groups * e), wo=array(heads * e, d),
                 w1=array(d, 14), w3=array(d, 14), w2=array(14, d))
        self.train(loss, p, array(3, seq, d), array(3, seq, d))

    def test_multi_query_decoding(self):
        """One step with a cache of keys and values that is written at a computed index."""
        def decode(p, x, keys, values, at):
            q = (x @ p["wq"]).reshape(3, 4, 2)
            keys = lax.dynamic_update_slice(keys, (x @ p["wk"])[:, None], (0, at, 0))
            values = lax.dynamic_update_slice(values, (x @ p["wv"])[:, None], (0, at, 0))
            a = jnp.einsum("bhe,bke->bhk", q, keys)
            a = jax.nn.softmax(jnp.where(jnp.arange(7) <= at, a, -jnp.inf))
            return jnp.einsum("bhk,bke->bhe", a, values).reshape(3, 8), keys, values
        p = dict(wq=array(6, 8), wk=array(6, 2), wv=array(6, 2))
        self.check(decode, p, array(3, 6), array(3, 7, 2), array(3, 7, 2), array(dtype=I))

    def test_resnet(self):
        """Strided residual block with batch normalization, max pool, global mean."""
        def conv(x, w, stride=1):
            return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=NHWC)

        def normal(x, g, b):
            mean = x.mean((0, 1, 2))
            return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean((0, 1, 2)) + 1e-5) * g + b

        def loss(p, x, y):
            x = jax.nn.relu(normal(conv(x, p["stem"], 2), p["g0"], p["b0"]))
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
            h = jax.nn.relu(normal(conv(x, p["c1"], 2), p["g1"], p["b1"]))
            x = jax.nn.relu(normal(conv(h, p["c2"]), p["g2"], p["b2"]) + conv(x, p["skip"], 2))
            logits = x.mean((1, 2)) @ p["w"]
            return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1))
        p = dict(stem=array(7, 7, 3, 4), c1=array(3, 3, 4, 6), c2=array(3, 3, 6, 6), skip=array(1, 1, 4, 6), w=array(6, 5))
        for i, n in enumerate((4, 6, 6)):
            p |= {f"g{i}": array(n), f"b{i}": array(n)}
        self.train(loss, p, array(4, 17, 16, 3), array(4, dtype=I))

    def test_unet(self):
        """Down by pooling, up by transposed convolution, skip by concatenation, group normalization."""
        def conv(x, w):
            return jax.nn.silu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NHWC))

        def grouped(x):
            parts = x.reshape(*x.shape[:3], 2, x.shape[3] // 2)
            mean = parts.mean((1, 2, 4), keepdims=True)
            return ((parts - mean) * lax.rsqrt(((parts - mean) ** 2).mean((1, 2, 4), keepdims=True) + 1e-5)).reshape(x.shape)

        def loss(p, x, y):
            top = grouped(conv(x, p["down"]))
            low = lax.reduce_window(top, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
            low = conv(low, p["mid"])
            up = lax.conv_transpose(low, p["up"], (2, 2), "SAME", dimension_numbers=NHWC)
            out = lax.conv_general_dilated(jnp.concatenate([top, up], -1), p["out"], (1, 1), "SAME", dimension_numbers=NHWC)
            return jnp.mean((out - y) ** 2)
        p = dict(down=array(3, 3, 2, 4), mid=array(3, 3, 4, 6), up=array(2, 2, 6, 4), out=array(3, 3, 8, 2))
        self.train(loss, p, array(3, 10, 8, 2), array(3, 10, 8, 2))

    def test_lstm(self):
        def loss(p, xs, y):
            def cell(state, x):
                h, c = state
                i, f, g, o = jnp.split(x @ p["w"] + h @ p["u"] + p["b"], 4, axis=-1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                return (h, c), h
            zero = jnp.zeros((xs.shape[1], 5))
            _, hs = lax.scan(cell, (zero, zero), xs)
            return jnp.mean((hs @ p["out"] - y) ** 2)
        p = dict(w=array(3, 20), u=array(5, 20), b=array(20), out=array(5, 2))
        self.train(loss, p, array(7, 4, 3), array(7, 4, 2))

    def test_two_experts_a_token(self):
        """Top 2, weights normalized over the two, every expert on every token it is given."""
        def loss(p, x, y):
            weights, experts = lax.top_k(jax.nn.softmax(x @ p["gate"]), 2)
            weights = weights / weights.sum(-1, keepdims=True)
            mixed = jnp.einsum("tk,tke->te", weights, jax.nn.one_hot(experts, 5))
            h = jax.nn.relu(jnp.einsum("td,edh->teh", x, p["wi"]))
            return jnp.mean((jnp.einsum("te,teh,ehd->td", mixed, h, p["wo"]) - y) ** 2)
        self.train(loss, dict(gate=array(6, 5), wi=array(5, 6, 7), wo=array(5, 7, 6)), array(9, 6), array(9, 6))

    def test_embedding_bags(self):
        """Two tables, sums of looked-up rows by segments, dot-product interaction."""
        def loss(p, ids, bags, other, y):
            a = jax.ops.segment_sum(p["first"][ids], bags, 5)
            b = jnp.take(p["second"], other, axis=0)
            return jnp.mean((jnp.einsum("bd,bd->b", a, b) - y) ** 2)
        self.train(loss, dict(first=array(11, 4), second=array(7, 4)), array(13, dtype=I), array(13, dtype=I), array(5, dtype=I), array(5))

    def test_adam(self):
        """A step with state: moments, a count, weight decay."""
        def update(params, state, x, y):
            gradients = jax.grad(lambda p: jnp.mean((jnp.tanh(x @ p["w"]) + p["b"] - y) ** 2))(params)
            count = state["count"] + 1
            m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["m"], gradients)
            v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, jax.tree.map(jnp.abs, state["v"]), gradients)
            def one(p, m, v):
                scale = 1 - 0.9 ** count.astype(jnp.float32)
                return p - 0.1 * (m / scale / (jnp.sqrt(v) + 1e-3) + 0.01 * p)
            return jax.tree.map(one, params, m, v), dict(m=m, v=v, count=count)
        tree = dict(w=array(6, 4), b=array(4))
        self.check(update, tree, dict(m=tree, v=tree, count=array(dtype=I)), array(5, 6), array(5, 4))

    def test_accumulated_gradients(self):
        def accumulate(params, xs, ys):
            def loss(p, x, y):
                return jnp.mean((jnp.tanh(x @ p["w"]) @ p["v"] - y) ** 2)

            def add(total, data):
                return jax.tree.map(jnp.add, total, jax.grad(loss)(params, *data)), None
            return lax.scan(add, jax.tree.map(jnp.zeros_like, params), (xs, ys))[0]
        self.check(accumulate, dict(w=array(6, 8), v=array(8, 3)), array(4, 5, 6), array(4, 5, 3))

    def test_a_mesh_of_three_axes(self):
        def loss(p, x, y):
            return jnp.mean((jax.nn.relu(x @ p["w1"]) @ p["w2"] - y) ** 2)
        self.check(step(loss), dict(w1=array(6, 7), w2=array(7, 5)), array(9, 6), array(9, 5), mesh=mesh_of(x=2, y=2, z=2))


if __name__ == "__main__":
    unittest.main()
