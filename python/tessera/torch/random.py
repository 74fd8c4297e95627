# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random operations: dropout, and draws as in stochastic depth. Their rules take a key of tessera.random first.

The bits differ from PyTorch's; they depend on the seed of `torch.manual_seed` at the import, a counter (a buffer of the
module), the operation and the index of an element alone, for any placement.
"""

from __future__ import annotations

from .. import ops, random
from ..nn import functional as F
from .layers import attention
from .registry import RULES, dtype_of

RANDOM: dict = {}
_DROPOUT_OF_ATTENTION = {"scaled_dot_product_attention.default": 4, "_scaled_dot_product_flash_attention_for_cpu.default": 3}


def draws(node, name: str) -> bool:
    """Whether a node of a graph draws random bits."""
    at = _DROPOUT_OF_ATTENTION.get(name)
    return name in RANDOM if at is None else bool(node.kwargs.get("dropout_p") or (len(node.args) > at and node.args[at]))


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


@_random("scaled_dot_product_attention.default")
def _(key, q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    return attention(q, k, v, attn_mask, is_causal, scale, enable_gqa, lambda weights: _dropout(key, weights, dropout_p))


@_random("_scaled_dot_product_flash_attention_for_cpu.default")
def _(key, q, k, v, dropout_p=0.0, is_causal=False, attn_mask=None, scale=None):
    return attention(q, k, v, attn_mask, is_causal, scale, False, lambda weights: _dropout(key, weights, dropout_p)), None
