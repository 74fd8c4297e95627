# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps (forward, backward, SGD) for the strategy search, each with the plans a person would write for it.

A program is a loss in JAX with the shapes of its parameters and data; a plan gives a PartitionSpec to every parameter and
input. PROGRAMS names them all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

F, S = jnp.float32, jax.ShapeDtypeStruct


@dataclasses.dataclass
class Program:
    """A step's loss, the shapes of its parameters and of its data, and plans by name: (mesh axes, specs of parameters, of data)."""

    loss: Callable
    params: Any
    data: tuple
    plans: dict[str, tuple[dict[str, int], Any, tuple]]

    def step(self, params, *data):
        value, gradients = jax.value_and_grad(self.loss)(params, *data)
        return jax.tree.map(lambda p, d: p - 0.1 * d, params, gradients), value


def shapes(**sizes):
    return {name: S(size, F) for name, size in sizes.items()}


def everywhere(tree, spec):
    return jax.tree.map(lambda _: spec, tree)


def cut_first(tree, axis, devices):
    """Every parameter's first dimension that the devices divide, as ZeRO-3 keeps it."""
    def spec(leaf):
        at = next((d for d, size in enumerate(leaf.shape) if size % devices == 0), None)
        return P() if at is None else P(*[None] * at, axis)
    return jax.tree.map(spec, tree)


def common_plans(params, data, devices):
    """Pure data parallelism, and ZeRO-3: parameters cut as well and gathered where they are used."""
    inputs = tuple(P("d") for _ in data)
    return {"data parallel": (dict(d=devices), everywhere(params, P()), inputs),
            "ZeRO-3": (dict(d=devices), cut_first(params, "d", devices), inputs)}


def cross_entropy(logits, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1))


def gpt_block(devices=8, batch=16, seq=512, d=1024, heads=16):
    """One block of GPT-2 medium's width."""
    def norm(x, g, b):
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * g + b

    def loss(p, x, y):
        b, s, _ = x.shape
        h = norm(x, p["g1"], p["b1"])
        q, k, v = [(h @ p[w]).reshape(b, s, heads, d // heads) for w in ("wq", "wk", "wv")]
        a = jnp.einsum("bqhe,bkhe->bhqk", q, k) * ((d // heads) ** -0.5)
        a = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((s, s), bool)), a, -1e9), axis=-1)
        x = x + jnp.einsum("bhqk,bkhe->bqhe", a, v).reshape(b, s, d) @ p["wo"]
        h = jax.nn.gelu(norm(x, p["g2"], p["b2"]) @ p["w1"] + p["c1"])
        return jnp.mean((x + h @ p["w2"] - y) ** 2)

    params = shapes(g1=(d,), b1=(d,), g2=(d,), b2=(d,), wq=(d, d), wk=(d, d), wv=(d, d), wo=(d, d), w1=(d, 4 * d), c1=(4 * d,), w2=(4 * d, d))
    data = (S((batch, seq, d), F),) * 2
    megatron = everywhere(params, P()) | dict.fromkeys(["wq", "wk", "wv", "w1"], P(None, "t")) | dict(wo=P("t"), w2=P("t"), c1=P("t"))
    plans = common_plans(params, data, devices)
    plans["Megatron"] = (dict(d=2, t=devices // 2), megatron, (P("d"), P("d")))
    return Program(loss, params, data, plans)


def moe(devices=8, groups=8, tokens=256, width=512, experts=8, capacity=64, hidden=2048):
    """A layer of experts, top 1, GShard's dispatch."""
    def loss(p, x, y):
        probabilities = jax.nn.softmax(jnp.einsum("gsm,me->gse", x, p["gate"]))
        chosen = jax.nn.one_hot(jnp.argmax(probabilities, -1), experts, dtype=F)
        position = jnp.cumsum(chosen, axis=1) * chosen - chosen
        place = jax.nn.one_hot(jnp.sum(position, -1).astype(jnp.int32), capacity, dtype=F)
        dispatch = (chosen * (position < capacity))[..., None] * place[:, :, None, :]
        inputs = jnp.einsum("gsec,gsm->egcm", dispatch, x)
        outputs = jnp.einsum("egch,ehm->egcm", jax.nn.relu(jnp.einsum("egcm,emh->egch", inputs, p["wi"])), p["wo"])
        return jnp.mean((jnp.einsum("gsec,egcm->gsm", dispatch * jnp.max(probabilities, -1)[..., None, None], outputs) - y) ** 2)

    params = shapes(gate=(width, experts), wi=(experts, width, hidden), wo=(experts, hidden, width))
    data = (S((groups, tokens, width), F),) * 2
    plans = common_plans(params, data, devices)
    plans["expert parallel"] = (dict(d=devices), dict(gate=P(), wi=P("d"), wo=P("d")), (P("d"), P("d")))
    return Program(loss, params, data, plans)


def convolve(x, w, stride=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def resnet50(devices=8, batch=32, image=224, classes=1000):
    """ResNet-50 with batch normalisation over the whole batch."""
    stages = [(64, 256, 3), (128, 512, 4), (256, 1024, 6), (512, 2048, 3)]
    sizes = {}

    def declare(name, *shape):
        sizes[name], sizes[name + "g"], sizes[name + "b"] = shape, shape[-1:], shape[-1:]

    declare("stem", 7, 7, 3, 64)
    width = 64
    for s, (mid, out, blocks) in enumerate(stages):
        for b in range(blocks):
            for name, shape in (("a", (1, 1, width, mid)), ("b", (3, 3, mid, mid)), ("c", (1, 1, mid, out))):
                declare(f"s{s}b{b}{name}", *shape)
            if b == 0:
                declare(f"s{s}p", 1, 1, width, out)
            width = out

    def loss(p, x, labels):
        def unit(x, name, stride=1):
            x = convolve(x, p[name], stride)
            mean = x.mean((0, 1, 2))
            return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean((0, 1, 2)) + 1e-5) * p[name + "g"] + p[name + "b"]

        x = jax.nn.relu(unit(x, "stem", 2))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        for s, (_, _, blocks) in enumerate(stages):
            for b in range(blocks):
                stride = 2 if b == 0 and s > 0 else 1
                y = jax.nn.relu(unit(x, f"s{s}b{b}a"))
                y = unit(jax.nn.relu(unit(y, f"s{s}b{b}b", stride)), f"s{s}b{b}c")
                x = jax.nn.relu(y + (unit(x, f"s{s}p", stride) if b == 0 else x))
        return cross_entropy(x.mean((1, 2)) @ p["fc"], labels)

    params = shapes(**sizes, fc=(2048, classes))
    data = (S((batch, image, image, 3), F), S((batch,), jnp.int32))
    return Program(loss, params, data, common_plans(params, data, devices))


def unet(devices=8, batch=8, image=128, width=32, levels=4):
    """A U-Net: pooling down, doubling up, skipped connections concatenated."""
    sizes, channels = {}, 3
    for level in range(levels):
        out = width << level
        sizes[f"d{level}a"], sizes[f"d{level}b"] = (3, 3, channels, out), (3, 3, out, out)
        channels = out
    for level in reversed(range(levels - 1)):
        out = width << level
        sizes[f"u{level}a"], sizes[f"u{level}b"] = (3, 3, channels + out, out), (3, 3, out, out)
        channels = out

    def loss(p, x, y):
        skipped = []
        for level in range(levels):
            if level:
                b, h, w, c = x.shape
                x = x.reshape(b, h // 2, 2, w // 2, 2, c).max((2, 4))
            x = jax.nn.relu(convolve(jax.nn.relu(convolve(x, p[f"d{level}a"])), p[f"d{level}b"]))
            skipped.append(x)
        for level in reversed(range(levels - 1)):
            b, h, w, c = x.shape
            x = jnp.broadcast_to(x[:, :, None, :, None, :], (b, h, 2, w, 2, c)).reshape(b, 2 * h, 2 * w, c)
            x = jnp.concatenate([x, skipped[level]], -1)
            x = jax.nn.relu(convolve(jax.nn.relu(convolve(x, p[f"u{level}a"])), p[f"u{level}b"]))
        return jnp.mean((x @ p["out"] - y) ** 2)

    params = shapes(**sizes, out=(width, 3))
    data = (S((batch, image, image, 3), F),) * 2
    plans = common_plans(params, data, devices)
    plans["rows of the image"] = (dict(d=devices), everywhere(params, P()), (P(None, "d"), P(None, "d")))
    return Program(loss, params, data, plans)


def dlrm(devices=8, batch=2048, tables=8, rows=100_000, width=64, dense=13):
    """DLRM: embedding tables, a multilayer perceptron below, pairwise products, one above."""
    pairs = (tables + 1) * tables // 2
    sizes = {f"table{t}": (rows, width) for t in range(tables)}
    bottom, top = [dense, 512, 256, width], [pairs + width, 512, 256, 1]
    for name, widths in (("bottom", bottom), ("top", top)):
        sizes |= {f"{name}{i}": (widths[i], widths[i + 1]) for i in range(len(widths) - 1)}

    def loss(p, x, ids, y):
        for i in range(3):
            x = jax.nn.relu(x @ p[f"bottom{i}"])
        rows_of = jnp.stack([x] + [p[f"table{t}"][ids[:, t]] for t in range(tables)], 1)
        products = jnp.einsum("bie,bje->bij", rows_of, rows_of)
        above = [products[:, i, i + 1:] for i in range(tables)]
        z = jnp.concatenate([x] + above, 1)
        for i in range(3):
            z = z @ p[f"top{i}"]
            z = jax.nn.relu(z) if i < 2 else z
        return jnp.mean((z[:, 0] - y) ** 2)

    params = shapes(**sizes)
    data = (S((batch, dense), F), S((batch, tables), jnp.int32), S((batch,), F))
    plans = common_plans(params, data, devices)
    by_row = {name: P("d") if name.startswith("table") else P() for name in params}
    plans["tables by row"] = (dict(d=devices), by_row, tuple(P("d") for _ in data))
    return Program(loss, params, data, plans)


PROGRAMS = {"GPT block": gpt_block, "MoE": moe, "ResNet-50": resnet50, "U-Net": unet, "DLRM": dlrm}
