# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random operations: dropout, and draws as in stochastic depth. Their rules take a key of tessera.random first.

The bits differ from PyTorch's; they depend on the seed of `torch.manual_seed` at the import, a counter (a buffer of the
module), the operation and the index of an element alone, for any placement.
"""

from __future__ import annotations

import math

from .. import ops, random
from ..nn import functional as F
from .layers import attention
from .registry import RULES, dtype_of

RANDOM: dict = {}


def _of_attention(at):
    return lambda node: node.kwargs.get("dropout_p") or (len(node.args) > at and node.args[at])


def _between_layers(node):
    layers, rate, train = node.args[4:7]
    return layers > 1 and train and rate


_RATES = {"scaled_dot_product_attention.default": _of_attention(4), "_scaled_dot_product_flash_attention_for_cpu.default": _of_attention(3),
          **dict.fromkeys(("lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input", "tessera.packed_rnn.default"), _between_layers)}


def draws(node, name: str) -> bool:
    """Whether a node of a graph draws random bits."""
    return name in RANDOM and (name not in _RATES or bool(_RATES[name](node)))


def _random(*names):
    """Decorator: the rule of operations that draw."""
    def register(function):
        for name in names:
            RANDOM[name] = function
            RULES.setdefault(name, function)
        return function
    return register


def _dropout(key, x, rate):
    return ops.zeros_like(x) if rate == 1 else F.dropout(x, rate, key)


def _like(drawn, x, dtype=None):
    return drawn.astype(dtype_of(dtype) if dtype is not None else x.dtype)


@_random("native_dropout.default")
def _(key, x, rate, train=True):
    return (x if train is False else _dropout(key, x, rate)), None


@_random("bernoulli.p", "bernoulli.default")
def _(key, x, p=None, **_):
    return _like(ops.less(random.uniform(key, x.shape), x if p is None else p), x)


@_random("rand.default")
def _(key, shape, dtype=None, **_):
    drawn = random.uniform(key, shape)
    return drawn if dtype is None else drawn.astype(dtype_of(dtype))


@_random("randn.default")
def _(key, shape, dtype=None, **_):
    drawn = random.normal(key, shape)
    return drawn if dtype is None else drawn.astype(dtype_of(dtype))


@_random("rand_like.default", "uniform.default")
def _(key, x, low=0.0, high=1.0, dtype=None, **_):
    return _like(random.uniform(key, x.shape, low, high), x, dtype)


@_random("randn_like.default", "normal_functional.default")
def _(key, x, mean=0.0, deviation=1.0, dtype=None, **_):
    return _like(random.normal(key, x.shape) * deviation + mean, x, dtype)


@_random("normal.Tensor_Tensor", "normal.Tensor_float", "normal.float_Tensor")
def _(key, mean, deviation=1.0, **_):
    like = mean if hasattr(mean, "shape") and (not hasattr(deviation, "shape") or mean.ndim >= deviation.ndim) else deviation
    shape = ops.base.broadcast_shapes("normal", [t.shape for t in (mean, deviation) if hasattr(t, "shape")])
    return (random.normal(key, shape) * deviation + mean).astype(like.dtype)


def _exponential(key, shape):
    """-log of numbers in (0, 1]."""
    return -ops.log(1 - random.uniform(key, shape))


@_random("exponential.default")
def _(key, x, rate=1.0, **_):
    return _like(_exponential(key, x.shape) / rate, x)


@_random("cauchy.default")
def _(key, x, median=0.0, scale=1.0, **_):
    return _like(ops.tan((random.uniform(key, x.shape) - 0.5) * math.pi) * scale + median, x)


@_random("log_normal.default")
def _(key, x, mean=1.0, deviation=2.0, **_):
    return _like(ops.exp(random.normal(key, x.shape) * deviation + mean), x)


@_random("geometric.default")
def _(key, x, p, **_):
    """The number of trials up to the first success."""
    return _like(ops.maximum(ops.ceil(-_exponential(key, x.shape) / math.log1p(-p)), 1.0) if p < 1 else ops.ones(x.shape), x)


def _integers(key, shape, low, high, dtype):
    """The remainder of 32 random bits: up to 2^32 different numbers, whose probabilities differ by (high - low) / 2^32 at most."""
    bits = ops.bitwise_and(random.bits(key, shape).astype("int64"), 0xFFFFFFFF)
    return (ops.remainder(bits, high - low) + low).astype(dtype)


@_random("randint.default")
def _(key, high, shape, dtype=None, **_):
    return _integers(key, shape, 0, high, dtype_of(dtype) if dtype is not None else "int64")


@_random("randint.low")
def _(key, low, high, shape, dtype=None, **_):
    return _integers(key, shape, low, high, dtype_of(dtype) if dtype is not None else "int64")


@_random("randint_like.default")
def _(key, x, high, dtype=None, **_):
    return _integers(key, x.shape, 0, high, dtype_of(dtype) if dtype is not None else x.dtype)


@_random("randint_like.low_dtype")
def _(key, x, low, high, dtype=None, **_):
    return _integers(key, x.shape, low, high, dtype_of(dtype) if dtype is not None else x.dtype)


@_random("randperm.default")
def _(key, n, dtype=None, **_):
    """The order of random numbers."""
    return ops.argsort(random.bits(key, (n,)), 0).astype(dtype_of(dtype) if dtype is not None else "int64")


@_random("multinomial.default")
def _(key, x, count, replacement=False, **_):
    """Categories with probabilities in proportion to x, along its last axis. Without replacement: the first of exponential clocks of rates x."""
    if not replacement:
        clocks = ops.where(ops.greater(x, 0), _exponential(key, x.shape) / ops.where(ops.greater(x, 0), x, 1.0), math.inf)
        return ops.argsort(clocks, -1)[..., :count]
    total = ops.expand_dims(ops.cumulative_sum(x, -1), x.ndim - 1)  # of the categories up to each
    whole = total[..., -1:]
    point = ops.expand_dims(random.uniform(key, (*x.shape[:-1], count)), x.ndim) * whole
    # A category without probability is never chosen, also not by rounding.
    return ops.sum(ops.logical_and(ops.less_equal(total, point), ops.less(total, whole)).astype("int64"), -1)


@_random("rrelu_with_noise_functional.default", "rrelu_with_noise.default")
def _(key, x, noise, lower=1 / 8, upper=1 / 3, training=False, **_):
    slope = random.uniform(key, x.shape, lower, upper).astype(x.dtype) if training else (lower + upper) / 2
    return ops.where(ops.less_equal(x, 0), x * slope, x), ops.where(ops.less_equal(x, 0), slope, ops.ones_like(x))


@_random("scaled_dot_product_attention.default")
def _(key, q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    return attention(q, k, v, attn_mask, is_causal, scale, enable_gqa, lambda weights: _dropout(key, weights, dropout_p))


@_random("_scaled_dot_product_flash_attention_for_cpu.default")
def _(key, q, k, v, dropout_p=0.0, is_causal=False, attn_mask=None, scale=None):
    return attention(q, k, v, attn_mask, is_causal, scale, False, lambda weights: _dropout(key, weights, dropout_p)), None
