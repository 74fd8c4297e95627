# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps in JAX (forward, backward, update), with their usual manual plans for 8 devices.

A Model has the step without any annotation and its human plans: name to (mesh axes, specs by argument). MODELS names them;
sizes are those of papers with a batch that 8 devices share.
"""

from __future__ import annotations

import dataclasses
import os
import sys

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "communication"))
from workloads.common import F, S, sgd  # noqa: E402
from workloads.gpt import Gpt, gpt as gpt_step, parameters  # noqa: E402
from workloads.moe import Moe, moe as moe_step  # noqa: E402

DEVICES = 8


@dataclasses.dataclass
class Model:
    step: object
    args: tuple
    plans: dict  # name: (mesh axes, specs of the arguments)


def whole(tree):
    return jax.tree.map(lambda a: P(), tree)


def zero(tree, axis="d", devices=DEVICES):
    """Every parameter cut along its longest dimension that the devices divide."""
    def cut(a):
        dims = [i for i, n in enumerate(a.shape) if n % devices == 0]
        if not dims:
            return P()
        best = max(dims, key=lambda i: a.shape[i])
        return P(*[axis if i == best else None for i in range(best + 1)])
    return jax.tree.map(cut, tree)


def by_batch(params, *data, more=None):
    """The plans of every network, pure data parallel and ZeRO-3, and `more`."""
    cut = tuple(P("d") for _ in data)
    plans = {"data parallel": (dict(d=DEVICES), (whole(params), *cut)), "ZeRO-3": (dict(d=DEVICES), (zero(params), *cut))}
    return plans | (more or {})


# ---------------------------------------------------------------- Transformers

def gpt(layers, d, heads, seq, batch, ffn, vocab, embed=True):
    c = Gpt(d=d, heads=heads, seq=seq, batch=batch, ffn=ffn, vocab=vocab, layers=layers, embed=embed)
    program = gpt_step(c, dict(d=DEVICES), "fsdp")
    params, data = program.args[0], program.args[1:]
    _, megatron = parameters(c, "megatron")
    batch_cut = (P("d"), P("d"))
    more = {"Megatron 8": (dict(t=DEVICES), (megatron, P(), P())), "Megatron 2x4": (dict(d=2, t=4), (megatron, *batch_cut)),
            "Megatron 4x2": (dict(d=4, t=2), (megatron, *batch_cut))}
    return Model(program.fn, program.args, by_batch(params, *data, more=more))


def gpt3(layers, shape, batch):
    """GPT-3 on a grid: data parallel and ZeRO-3 over all axes, Megatron's tensors over the last. A sequence is on one
    device, so the size of the batch limits the axes that cut it."""
    c = Gpt(d=12288, heads=96, seq=2048, batch=batch, ffn=49152, vocab=51200, layers=layers, embed=True)
    axes = {f"a{i}": n for i, n in enumerate(shape[:-1])} | {"t": shape[-1]}
    program = gpt_step(c, dict(d=DEVICES), "fsdp")
    params = program.args[0]
    _, megatron = parameters(c, "megatron")
    by_axis, parts = [], 1
    for name, n in axes.items():
        if parts * n <= batch:
            by_axis.append(name)
            parts *= n
    every, rest = (P(tuple(by_axis)),) * 2, (P(tuple(axes)[:-1]),) * 2
    devices = 1
    for n in shape:
        devices *= n
    plans = {"data parallel": (axes, (whole(params), *every)), "Megatron": (axes, (megatron, *rest)),
             "ZeRO-3": (axes, (zero(params, tuple(axes), devices), *every))}
    return Model(program.fn, program.args, plans)


def llama_block(d=1024, heads=16, groups=4, seq=512, batch=16, ffn=2816):
    """RMS norm, rotary positions, grouped queries, SwiGLU."""
    e = d // heads
    params = dict(n1=S((d,), F), wq=S((d, heads * e), F), wk=S((d, groups * e), F), wv=S((d, groups * e), F), wo=S((heads * e, d), F),
                  n2=S((d,), F), gate=S((d, ffn), F), up=S((d, ffn), F), down=S((ffn, d), F))

    def norm(x, gain):
        return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * gain

    def rotate(x):
        angle = jnp.arange(seq, dtype=F)[:, None] * jnp.exp(jnp.arange(e // 2, dtype=F) * (-9.2 / (e // 2)))[None, :]
        sin, cos = jnp.sin(angle)[None, :, None, :], jnp.cos(angle)[None, :, None, :]
        a, b = x[..., : e // 2], x[..., e // 2:]
        return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

    def loss(p, x, y):
        h = norm(x, p["n1"])
        q = rotate((h @ p["wq"]).reshape(batch, seq, heads, e)).reshape(batch, seq, groups, heads // groups, e)
        k = rotate((h @ p["wk"]).reshape(batch, seq, groups, e))
        v = (h @ p["wv"]).reshape(batch, seq, groups, e)
        a = jnp.einsum("bqghe,bkge->bghqk", q, k) * e ** -0.5
        a = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((seq, seq), bool)), a, -1e9), -1)
        x = x + jnp.einsum("bghqk,bkge->bqghe", a, v).reshape(batch, seq, heads * e) @ p["wo"]
        h = norm(x, p["n2"])
        return jnp.mean((x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"] - y) ** 2)

    data = (S((batch, seq, d), F),) * 2
    columns, rows = P(None, "t"), P("t", None)
    tensor = dict(n1=P(), n2=P(), wq=columns, wk=columns, wv=columns, wo=rows, gate=columns, up=columns, down=rows)
    more = {"Megatron 2x4": (dict(d=2, t=4), (tensor, P("d"), P("d")))}
    return Model(sgd(loss), (params, *data), by_batch(params, *data, more=more))


def vit(layers=4, d=384, heads=6, batch=64, size=224, patch=16, classes=1000):
    """Patches as a convolution, a class token, learned positions, pre-norm blocks, a head on the class token."""
    e, places = d // heads, (size // patch) ** 2 + 1
    block = dict(g1=S((d,), F), b1=S((d,), F), qkv=S((d, 3 * d), F), cqkv=S((3 * d,), F), wo=S((d, d), F), co=S((d,), F),
                 g2=S((d,), F), b2=S((d,), F), w1=S((d, 4 * d), F), c1=S((4 * d,), F), w2=S((4 * d, d), F), c2=S((d,), F))
    params = dict(patch=S((patch, patch, 3, d), F), cls=S((1, 1, d), F), pos=S((1, places, d), F), blocks=[block] * layers,
                  g=S((d,), F), b=S((d,), F), head=S((d, classes), F), bias=S((classes,), F))

    def norm(x, gain, bias):
        mean = jnp.mean(x, -1, keepdims=True)
        return (x - mean) * lax.rsqrt(jnp.mean((x - mean) ** 2, -1, keepdims=True) + 1e-6) * gain + bias

    def attend(p, x):
        q, k, v = jnp.moveaxis((x @ p["qkv"] + p["cqkv"]).reshape(batch, places, 3, heads, e), 2, 0)
        a = jax.nn.softmax(jnp.einsum("bqhe,bkhe->bhqk", q, k) * e ** -0.5, -1)
        return jnp.einsum("bhqk,bkhe->bqhe", a, v).reshape(batch, places, d) @ p["wo"] + p["co"]

    def loss(p, x, y):
        h = lax.conv_general_dilated(x, p["patch"], (patch, patch), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        h = jnp.concatenate([jnp.broadcast_to(p["cls"], (batch, 1, d)), h.reshape(batch, places - 1, d)], 1) + p["pos"]
        for q in p["blocks"]:
            h = h + attend(q, norm(h, q["g1"], q["b1"]))
            h = h + jax.nn.gelu(norm(h, q["g2"], q["b2"]) @ q["w1"] + q["c1"]) @ q["w2"] + q["c2"]
        logits = norm(h, p["g"], p["b"])[:, 0] @ p["head"] + p["bias"]
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(y, classes), -1))

    data = S((batch, size, size, 3), F), S((batch,), jnp.int32)
    cut = dict(block, **{name: P(None, "t") for name in ("qkv", "w1")}, cqkv=P("t"), c1=P("t"), wo=P("t"), w2=P("t"))
    tensor = dict(whole(params), blocks=[{name: p if isinstance(p, P) else P() for name, p in cut.items()}] * layers)
    more = {"Megatron 4x2": (dict(d=4, t=2), (tensor, P("d"), P("d")))}
    return Model(sgd(loss), (params, *data), by_batch(params, *data, more=more))


def moe():
    program = moe_step(Moe())
    params, data = program.args[0], program.args[1:]
    expert = dict(gate=P(), wi=P("e"), wo=P("e"))
    return Model(program.fn, program.args, by_batch(params, *data, more={"expert parallel": (dict(e=DEVICES), (expert, P("e"), P("e")))}))


def moe_top2(groups=8, tokens=256, d=512, experts=16, capacity=64, hidden=2048):
    """Two experts per token, weighted by their normalized gates."""
    params = dict(gate=S((d, experts), F), wi=S((experts, d, hidden), F), wo=S((experts, hidden, d), F))

    def loss(p, x, y):
        gates = jax.nn.softmax(jnp.einsum("gsd,de->gse", x, p["gate"]))
        first = jax.nn.one_hot(jnp.argmax(gates, -1), experts, dtype=F)
        rest = gates * (1 - first)
        second = jax.nn.one_hot(jnp.argmax(rest, -1), experts, dtype=F)
        w1, w2 = jnp.sum(gates * first, -1), jnp.sum(gates * second, -1)
        combine = 0.0
        before = 0.0
        for chosen, weight in ((first, w1), (second, w2)):
            place = jnp.cumsum(chosen, 1) * chosen - chosen + before * chosen
            kept = chosen * (place < capacity)
            slot = jax.nn.one_hot(jnp.sum(place * chosen, -1).astype(jnp.int32), capacity, dtype=F)
            combine = combine + (weight / (w1 + w2 + 1e-9))[..., None, None] * kept[..., None] * slot[:, :, None, :]
            before = jnp.sum(chosen, 1, keepdims=True)
        dispatch = (combine > 0).astype(F)
        inputs = jnp.einsum("gsec,gsd->egcd", dispatch, x)
        outputs = jnp.einsum("egch,ehd->egcd", jax.nn.relu(jnp.einsum("egcd,edh->egch", inputs, p["wi"])), p["wo"])
        return jnp.mean((jnp.einsum("gsec,egcd->gsd", combine, outputs) - y) ** 2)

    data = (S((groups, tokens, d), F),) * 2
    expert = dict(gate=P(), wi=P("e"), wo=P("e"))
    return Model(sgd(loss), (params, *data), by_batch(params, *data, more={"expert parallel": (dict(e=DEVICES), (expert, P("e"), P("e")))}))


# ---------------------------------------------------------------- Convolutions

LAYOUT = ("NHWC", "HWIO", "NHWC")


def conv(x, w, stride=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=LAYOUT)


def batch_norm(x, gain, bias):
    mean = jnp.mean(x, (0, 1, 2))
    return (x - mean) * lax.rsqrt(jnp.mean((x - mean) ** 2, (0, 1, 2)) + 1e-5) * gain + bias


def resnet50(batch=64, size=224, classes=1000, blocks=(3, 4, 6, 3)):
    params = {}

    def make(name, *shape):
        params[name] = dict(w=S(shape, F), g=S(shape[-1:], F), b=S(shape[-1:], F))
    make("stem", 7, 7, 3, 64)
    width = 64
    for stage, count in enumerate(blocks):
        inner, outer = 64 << stage, 256 << stage
        for block in range(count):
            name = f"s{stage}b{block}"
            make(name + "a", 1, 1, width, inner)
            make(name + "b", 3, 3, inner, inner)
            make(name + "c", 1, 1, inner, outer)
            if block == 0:
                make(name + "skip", 1, 1, width, outer)
            width = outer
    params["fc"] = dict(w=S((width, classes), F), b=S((classes,), F))

    def unit(p, x, stride=1):
        return batch_norm(conv(x, p["w"], stride), p["g"], p["b"])

    def loss(p, x, y):
        x = jax.nn.relu(unit(p["stem"], x, 2))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        for stage, count in enumerate(blocks):
            for block in range(count):
                name, stride = f"s{stage}b{block}", 2 if stage and block == 0 else 1
                skip = unit(p[name + "skip"], x, stride) if block == 0 else x
                h = jax.nn.relu(unit(p[name + "a"], x))
                h = jax.nn.relu(unit(p[name + "b"], h, stride))
                x = jax.nn.relu(unit(p[name + "c"], h) + skip)
        logits = jnp.mean(x, (1, 2)) @ p["fc"]["w"] + p["fc"]["b"]
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(y, classes), -1))

    data = S((batch, size, size, 3), F), S((batch,), jnp.int32)
    return Model(sgd(loss), (params, *data), by_batch(params, *data))


def unet(batch=16, size=128, width=64, depth=3):
    params = {}
    channels = [width << level for level in range(depth + 1)]
    for level, n in enumerate(channels):
        params[f"down{level}"] = dict(a=S((3, 3, channels[level - 1] if level else 3, n), F), b=S((3, 3, n, n), F))
    for level in range(depth):
        n = channels[level]
        params[f"up{level}"] = dict(u=S((3, 3, 2 * n, n), F), a=S((3, 3, 2 * n, n), F), b=S((3, 3, n, n), F))
    params["head"] = S((1, 1, width, 3), F)

    def double(p, x):
        return jax.nn.relu(conv(jax.nn.relu(conv(x, p["a"])), p["b"]))

    def grow(x):
        b, h, w, c = x.shape
        return jnp.broadcast_to(x[:, :, None, :, None, :], (b, h, 2, w, 2, c)).reshape(b, 2 * h, 2 * w, c)

    def loss(p, x, y):
        kept = []
        for level in range(depth + 1):
            if level:
                x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
            x = double(p[f"down{level}"], x)
            kept.append(x)
        for level in reversed(range(depth)):
            q = p[f"up{level}"]
            x = double(q, jnp.concatenate([kept[level], conv(grow(x), q["u"])], -1))
        return jnp.mean((conv(x, p["head"]) - y) ** 2)

    data = (S((batch, size, size, 3), F),) * 2
    spatial = {"spatial": (dict(d=DEVICES), (whole(params), P(None, "d"), P(None, "d")))}
    return Model(sgd(loss), (params, *data), by_batch(params, *data, more=spatial))


# ---------------------------------------------------------------- Others

def mlp(batch=512, widths=(1024, 4096, 4096, 1024)):
    params = [dict(w=S((a, b), F), b=S((b,), F)) for a, b in zip(widths, widths[1:])]

    def loss(p, x, y):
        for layer in p[:-1]:
            x = jax.nn.relu(x @ layer["w"] + layer["b"])
        return jnp.mean((x @ p[-1]["w"] + p[-1]["b"] - y) ** 2)
    return Model(sgd(loss), (params, S((batch, widths[0]), F), S((batch, widths[-1]), F)),
                 by_batch(params, 0, 1))


def dlrm(batch=2048, tables=8, rows=100000, width=64, dense=13):
    """Embedding tables, a bottom and a top perceptron, dot products of all pairs between them."""
    bottom, top = (dense, 512, 256, width), (width + (tables + 1) * tables // 2, 512, 256, 1)
    layers = lambda sizes: [dict(w=S((a, b), F), b=S((b,), F)) for a, b in zip(sizes, sizes[1:])]
    params = dict(tables=[S((rows, width), F)] * tables, bottom=layers(bottom), top=layers(top))

    def stack(p, x):
        for layer in p[:-1]:
            x = jax.nn.relu(x @ layer["w"] + layer["b"])
        return x @ p[-1]["w"] + p[-1]["b"]

    def loss(p, x, ids, y):
        x = jax.nn.relu(stack(p["bottom"], x))
        vectors = jnp.stack([x] + [table[ids[:, t]] for t, table in enumerate(p["tables"])], 1)
        products = jnp.einsum("bie,bje->bij", vectors, vectors)
        pairs = jnp.concatenate([products[:, i, :i] for i in range(1, tables + 1)], 1)
        logit = stack(p["top"], jnp.concatenate([x, pairs], 1))[:, 0]
        return jnp.mean(jnp.maximum(logit, 0) - logit * y + jnp.log1p(jnp.exp(-jnp.abs(logit))))

    data = S((batch, dense), F), S((batch, tables), jnp.int32), S((batch,), F)
    by_rows = dict(whole(params), tables=[P("d")] * tables)
    by_columns = dict(whole(params), tables=[P(None, "d")] * tables)
    cut = (P("d"), P("d"), P("d"))
    return Model(sgd(loss), (params, *data), by_batch(params, *data, more={
        "tables by rows": (dict(d=DEVICES), (by_rows, *cut)), "tables by columns": (dict(d=DEVICES), (by_columns, *cut))}))


def lstm(batch=64, steps=32, width=1024):
    """A recurrent layer over a sequence, as a loop."""
    params = dict(w=S((width, 4 * width), F), u=S((width, 4 * width), F), b=S((4 * width,), F))

    def loss(p, xs, y):
        def step(state, x):
            h, c = state
            i, f, g, o = jnp.split(x @ p["w"] + h @ p["u"] + p["b"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h
        zero_state = (jnp.zeros((batch, width), F),) * 2
        return jnp.mean((lax.scan(step, zero_state, xs)[0][0] - y) ** 2)

    data = S((steps, batch, width), F), S((batch, width), F)
    cut = (P(None, "d"), P("d"))
    plans = {"data parallel": (dict(d=DEVICES), (whole(params), *cut)), "ZeRO-3": (dict(d=DEVICES), (zero(params), *cut))}
    return Model(sgd(loss), (params, *data), plans)


MODELS = {
    "mlp": mlp,
    "gpt_block": lambda: gpt(1, 512, 8, 128, 8, 2048, 0, embed=False),
    "gpt_4_layers": lambda: gpt(4, 512, 8, 128, 8, 2048, 8192),
    "llama_block": llama_block, "vit": vit, "moe": moe, "moe_top2": moe_top2, "resnet50": resnet50, "unet": unet, "dlrm": dlrm, "lstm": lstm,
}
