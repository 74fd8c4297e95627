# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products, normalisation, attention."""

from __future__ import annotations

import math

from .. import ops
from ..errors import ArgumentError
from ..nn import functional as F
from ..nn.attention import attention
from ..ops.base import tensor_of
from ..source import refuse
from .registry import rule


@rule("mm.default", "bmm.default", "matmul.default", "mv.default")
def _(x, y):
    return x @ y


@rule("addmm.default")
def _(bias, x, y, beta=1, alpha=1):
    product = x @ y if alpha == 1 else (x @ y) * alpha
    return product + (bias if beta == 1 else bias * beta)


@rule("linear.default")
def _(x, weight, bias=None):
    return F.linear(x, tensor_of(weight, "linear").T, bias)


@rule("native_layer_norm.default")
def _(x, shape, weight, bias, eps):
    return F.layer_norm(x, weight, bias, tuple(range(-len(shape), 0)), eps), None, None


@rule("native_group_norm.default")
def _(x, weight, bias, n, c, size, groups, eps):
    y = F.layer_norm(ops.reshape(x, (n, groups, -1)), None, None, -1, eps).reshape(x.shape)
    along = (-1,) + (1,) * (x.ndim - 2)
    y = y if weight is None else y * tensor_of(weight, "group_norm").reshape(along)
    return y if bias is None else y + tensor_of(bias, "group_norm").reshape(along), None, None


def _normalised(x, weight, bias, mean, var, eps):
    along = lambda t: tensor_of(t, "batch_norm").reshape((-1,) + (1,) * (x.ndim - 2))
    y = (x - along(mean)) * along(ops.rsqrt(tensor_of(var, "batch_norm") + eps))
    y = y if weight is None else y * along(weight)
    return y if bias is None else y + along(bias)


@rule("_native_batch_norm_legit_no_training.default")
def _(x, weight, bias, mean, var, momentum, eps):
    return _normalised(x, weight, bias, mean, var, eps), None, None


def _of_batch(x):
    axes = (0, *range(2, x.ndim))
    return ops.mean(x, axes), ops.var(x, axes)


@rule("_native_batch_norm_legit.no_stats")
def _(x, weight, bias, training, momentum, eps):
    return _normalised(x, weight, bias, *_of_batch(x), eps), None, None


@rule("_native_batch_norm_legit_functional.default")
def _(x, weight, bias, mean, var, training, momentum, eps):
    """Over the batch; the running statistics are new buffers."""
    if not training:
        return _normalised(x, weight, bias, mean, var, eps), None, None, mean, var
    here, spread = _of_batch(x)
    count = x.size // x.shape[1]
    mean = tensor_of(mean, "batch_norm") * (1 - momentum) + ops.stop_gradient(here) * momentum
    var = tensor_of(var, "batch_norm") * (1 - momentum) + ops.stop_gradient(spread) * (momentum * count / max(1, count - 1))
    return _normalised(x, weight, bias, here, spread, eps), None, None, mean, var


@rule("scaled_dot_product_attention.default", "_scaled_dot_product_flash_attention_for_cpu.default")
def _(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if isinstance(attn_mask, float):  # the kernel's form has no mask here
        attn_mask, dropout_p, is_causal = None, attn_mask, dropout_p
    if dropout_p:
        raise refuse(ArgumentError, "attention with dropout is not supported; export it in evaluation mode")
    heads_last = lambda t: ops.swapaxes(t, -2, -3)
    if scale is not None:
        q = q * (scale * math.sqrt(q.shape[-1]))
    return heads_last(attention(heads_last(q), heads_last(k), heads_last(v), bool(is_causal), attn_mask)), None
