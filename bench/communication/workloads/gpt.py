# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GPT blocks, with and without vocabulary: Megatron, ZeRO-3, sequence parallel."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding

from .common import F, P, Prog, S, mesh_of, sgd


@dataclasses.dataclass
class Gpt:
    d: int = 512
    heads: int = 8
    seq: int = 128
    batch: int = 8
    ffn: int = 2048
    vocab: int = 8192
    layers: int = 1
    embed: bool = False
    tied: bool = False
    scan: bool = False
    fusedqkv: bool = False  # one weight [d, 3, d] in place of wq, wk, wv
    onehot: bool = False    # loss and lookup by a product with one-hot rows in place of a gather


def layer_params(c):
    return dict(ln1g=S((c.d,), F), ln1b=S((c.d,), F), wq=S((c.d, c.d), F), wk=S((c.d, c.d), F), wv=S((c.d, c.d), F), wo=S((c.d, c.d), F),
                bo=S((c.d,), F), ln2g=S((c.d,), F), ln2b=S((c.d,), F), w1=S((c.d, c.ffn), F), b1=S((c.ffn,), F), w2=S((c.ffn, c.d), F),
                b2=S((c.d,), F))


def layer_specs(style):
    small = dict.fromkeys(["ln1g", "ln1b", "bo", "ln2g", "ln2b", "b2"], P())
    if style == "megatron":
        return small | dict(wq=P(None, "t"), wk=P(None, "t"), wv=P(None, "t"), wo=P("t", None), w1=P(None, "t"), b1=P("t"), w2=P("t", None))
    if style == "fsdp":
        return dict.fromkeys([*small, "b1"], P("d")) | dict.fromkeys(["wq", "wk", "wv", "wo", "w1", "w2"], P("d", None))
    raise ValueError(f"unknown style '{style}'; it is megatron or fsdp")


def layernorm(x, gain, bias):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * gain + bias


def layer(c, p, x, pin, pin_in):
    b, s, _ = x.shape
    h = pin_in(layernorm(x, p["ln1g"], p["ln1b"]))
    if c.fusedqkv:
        qkv = jnp.einsum("bsd,dif->bsif", h, p["wqkv"]).reshape(b, s, 3, c.heads, c.d // c.heads)
        q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    else:
        q, k, v = [(h @ p[w]).reshape(b, s, c.heads, c.d // c.heads) for w in ("wq", "wk", "wv")]
    a = jnp.einsum("bqhe,bkhe->bhqk", q, k) * ((c.d // c.heads) ** -0.5)
    a = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((s, s), bool)), a, -1e9), axis=-1)
    o = jnp.einsum("bhqk,bkhe->bqhe", a, v).reshape(b, s, c.d)
    x = pin(x + pin(o @ p["wo"]) + p["bo"])
    h = pin_in(layernorm(x, p["ln2g"], p["ln2b"]))
    h = jax.nn.gelu(h @ p["w1"] + p["b1"])
    return pin(x + pin(h @ p["w2"]) + p["b2"])


def parameters(c, style):
    """Trees of the parameters' shapes and specs."""
    layer_tree, layer_spec = layer_params(c), layer_specs(style)
    if c.fusedqkv:
        for w in ("wq", "wk", "wv"):
            del layer_tree[w]
            q = layer_spec.pop(w)
        layer_tree["wqkv"], layer_spec["wqkv"] = S((c.d, 3, c.d), F), P(q[0], None, q[1])
    if c.scan:
        layers = jax.tree.map(lambda a: S((c.layers,) + a.shape, a.dtype), layer_tree)
        layer_specs_ = jax.tree.map(lambda p: P(None, *p), layer_spec, is_leaf=lambda x: isinstance(x, P))
    else:
        layers, layer_specs_ = [layer_tree] * c.layers, [layer_spec] * c.layers
    params, specs = dict(layers=layers), dict(layers=layer_specs_)
    if c.embed:
        params |= dict(emb=S((c.vocab, c.d), F), pos=S((c.seq, c.d), F), lnfg=S((c.d,), F), lnfb=S((c.d,), F))
        norm = P() if style == "megatron" else P("d")
        specs |= dict(emb=P("t", None) if style == "megatron" else P("d", None), pos=P(), lnfg=norm, lnfb=norm)
        if not c.tied:
            params["out"] = S((c.d, c.vocab), F)
            specs["out"] = P(None, "t") if style == "megatron" else P("d", None)
    return params, specs


def gpt(c, axes, style, ref=None, pin=None, pin_in=None, pin_out=True):
    """A step on a mesh whose axis "d" cuts the batch. pin, pin_in: specs of the layers' outputs and of the normalized
    inputs, if they are constrained; pin_out: whether the new parameters keep the shardings of the old ones."""
    mesh = mesh_of(**axes)

    def constrain(spec):
        return (lambda x: x) if spec is None else (lambda x: lax.with_sharding_constraint(x, NamedSharding(mesh, spec)))
    pin, pin_in = constrain(pin), constrain(pin_in)
    params, specs = parameters(c, style)

    def body(params, x):
        if c.scan:
            return lax.scan(lambda h, p: (layer(c, p, h, pin, pin_in), None), x, params["layers"])[0]
        for p in params["layers"]:
            x = layer(c, p, x, pin, pin_in)
        return x

    def loss_of_tokens(params, tokens, targets):
        if c.onehot:
            x = jax.nn.one_hot(tokens, c.vocab, dtype=F) @ params["emb"]
        else:
            x = params["emb"][tokens]
        x = layernorm(body(params, pin(x + params["pos"])), params["lnfg"], params["lnfb"])
        logits = x @ (params["emb"].T if c.tied else params["out"])
        if c.onehot:
            lse = jax.nn.logsumexp(logits, -1)
            return jnp.mean(lse - jnp.sum(logits * jax.nn.one_hot(targets, c.vocab, dtype=F), -1))
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1))

    def loss_of_activations(params, x, y):
        return jnp.mean((body(params, x) - y) ** 2)

    data = S((c.batch, c.seq), jnp.int32) if c.embed else S((c.batch, c.seq, c.d), F)
    return Prog(sgd(loss_of_tokens if c.embed else loss_of_activations), (params, data, data), (specs, P("d"), P("d")), mesh,
                out=(specs, P()) if pin_out else None, ref=ref)
