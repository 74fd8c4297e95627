# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multi-head attention."""

from __future__ import annotations

import math

from .. import ops
from ..errors import ArgumentError, ShapeError
from ..source import refuse
from . import init
from .layers import Dropout, positive
from .module import Module


def _check(q, k, v) -> None:
    """Raises ShapeError where the shapes of query, key and value are not those of one attention."""
    def say(message: str):
        return refuse(ShapeError, f"{message}; attention takes a query (batch, queries, heads, size), a key and a value (batch, keys, key heads, size)")

    for name, tensor in (("query", q), ("key", k), ("value", v)):
        if len(tensor.shape) != 4:
            raise say(f"{name} of shape {tuple(tensor.shape)} has {len(tensor.shape)} axes, not 4")
    for (name, one), (other, two), axes in ((("query", q), ("key", k), {"batch": 0, "size": 3}), (("key", k), ("value", v), {"batch": 0, "keys": 1, "key heads": 2})):
        for what, axis in axes.items():
            if one.shape[axis] != two.shape[axis]:
                raise say(f"{name} of shape {tuple(one.shape)} and {other} of shape {tuple(two.shape)} differ in {what}, {one.shape[axis]} and {two.shape[axis]}")
    if q.shape[2] and (not k.shape[2] or q.shape[2] % k.shape[2]):
        raise refuse(ShapeError, f"{q.shape[2]} heads of queries are not a multiple of {k.shape[2]} heads of keys; each key head serves as many query heads")


def attention(q, k, v, causal: bool = False, mask=None, dropout=None):
    """softmax(q k^T / sqrt(size)) v, in the shape of q. 16-bit scores are normalized in float32.

    q: (batch, queries, heads, size); k, v: (batch, keys, key heads, size). Each key head serves heads / (key heads)
        query heads.
    causal: the last query sees all keys, the one before it all but the last, and so on.
    mask: broadcast to (batch, heads, queries, keys); bool, True where a query sees a key, or a bias added to the scores.
    dropout: applied to the softmax, (batch, heads, queries, keys), such as a module Dropout.

    Raises ShapeError if batch, keys or size differ, or the number of key heads does not divide the heads.
    """
    _check(q, k, v)
    (batch, queries, heads, size), (_, keys, groups, _) = q.shape, k.shape
    # A product sums over the heads that share a key, also that of its gradient: 16-bit floats are rounded once.
    grouped = groups not in (0, heads)
    if grouped:
        scores = ops.einsum("bqnhd,bknd->bnhqk", ops.reshape(q, (batch, queries, groups, heads // groups, size)), k)
        scores = ops.reshape(scores, (batch, heads, queries, keys))
    else:
        scores = ops.einsum("bqhd,bkhd->bhqk", q, k)
    scores = scores * (1 / math.sqrt(size))
    if causal:
        here = ops.greater_equal(ops.iota((q.shape[1], k.shape[1]), 0) + (k.shape[1] - q.shape[1]), ops.iota((q.shape[1], k.shape[1]), 1))
        scores = ops.where(here, scores, -math.inf)
    if mask is not None:
        mask = ops.base.tensor_of(mask, "attention")
        scores = ops.where(mask, scores, -math.inf) if mask.dtype.kind == "bool" else scores + mask
    weights = ops.softmax(scores, -1)
    weights = weights if dropout is None else dropout(weights)
    if not grouped:
        return ops.einsum("bhqk,bkhd->bqhd", weights, v)
    weights = ops.reshape(weights, (batch, groups, heads // groups, queries, keys))
    return ops.reshape(ops.einsum("bnhqk,bknd->bqnhd", weights, v), (batch, queries, heads, v.shape[-1]))


class MultiHeadAttention(Module):
    """Self-attention, (batch, length, features) -> the same shape: projections to heads, attention, output projection.

    The projections have shapes (features, heads, size) and (heads, size, features): sharding the axis of heads is
    tensor parallelism. While training, shares of the softmax are dropped with probability `dropout`, as by Dropout of
    this seed. Raises ArgumentError if heads does not divide features, or dropout is not in [0, 1).
    """

    def __init__(self, features: int, heads: int, causal: bool = False, bias: bool = True, dtype="float32", dropout: float = 0, seed: int = 0):
        super().__init__()
        positive("MultiHeadAttention", features=features, heads=heads)
        if features % heads:
            raise refuse(ArgumentError, f"features {features} of MultiHeadAttention are not a multiple of heads {heads}")
        self.causal, size = causal, features // heads
        self.query, self.key, self.value = [init.fan_in((features, heads, size), features, dtype) for _ in range(3)]
        self.out = init.fan_in((heads, size, features), features, dtype)
        self.biases = [init.constant((heads, size), 0, dtype) for _ in range(3)] if bias else None
        self.out_bias = init.constant((features,), 0, dtype) if bias else None
        self.dropout = Dropout(dropout, seed) if dropout else None

    def forward(self, x, mask=None):
        q, k, v = [ops.einsum("bse,ehd->bshd", x, w) for w in (self.query, self.key, self.value)]
        if self.biases is not None:
            q, k, v = [t + b for t, b in zip((q, k, v), self.biases)]
        y = ops.einsum("bshd,hde->bse", attention(q, k, v, self.causal, mask, self.dropout), self.out)
        return y if self.out_bias is None else y + self.out_bias


