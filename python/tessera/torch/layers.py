# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products, windows, lookups, normalisation, attention."""

from __future__ import annotations

import math

from .. import dtypes, ops
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


@rule("convolution.default")
def _(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    if transposed:
        raise refuse(ArgumentError, "'convolution' transposed is not supported")
    return ops.conv(x, weight, bias, stride, padding, dilation, groups)


@rule("max_pool2d_with_indices.default", "max_pool2d.default")
def _(x, window, stride=(), padding=0, dilation=1, ceil_mode=False):
    if ceil_mode or dilation not in (1, [1, 1]):
        raise refuse(ArgumentError, "'max_pool2d' with dilation or ceil_mode is not supported")
    return ops.max_pool(x, window, list(stride) or None, padding), None


@rule("avg_pool2d.default")
def _(x, window, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    if ceil_mode or divisor_override is not None or not count_include_pad and padding not in (0, [0, 0]):
        raise refuse(ArgumentError, "'avg_pool2d' with ceil_mode, divisor_override or without count_include_pad is not supported")
    return ops.avg_pool(x, window, list(stride) or None, padding)


@rule("_adaptive_avg_pool2d.default", "adaptive_avg_pool2d.default")
def _(x, size):
    if any(n % s for n, s in zip(x.shape[2:], size)):
        raise refuse(ArgumentError, f"'adaptive_avg_pool2d' of {x.shape} to {size}: extents that do not divide are not supported")
    return ops.avg_pool(x, [n // s for n, s in zip(x.shape[2:], size)])


@rule("embedding.default")
def _(weight, indices, padding_idx=-1, *_):
    return ops.take(weight, indices, 0)


@rule("index_select.default")
def _(x, axis, indices):
    return ops.take(x, indices, axis)


@rule("gather.default")
def _(x, axis, indices, sparse_grad=False):
    return ops.take_along_axis(x, indices, axis)


@rule("native_layer_norm.default")
def _(x, shape, weight, bias, eps):
    return F.layer_norm(x, weight, bias, tuple(range(-len(shape), 0)), eps), None, None


@rule("native_group_norm.default")
def _(x, weight, bias, n, c, size, groups, eps):
    y = F.layer_norm(ops.reshape(x, (n, groups, -1)), None, None, -1, eps).reshape(x.shape)
    along = (-1,) + (1,) * (x.ndim - 2)
    y = y if weight is None else y * tensor_of(weight, "group_norm").reshape(along)
    return y if bias is None else y + tensor_of(bias, "group_norm").reshape(along), None, None


@rule("_native_batch_norm_legit_no_training.default")
def _(x, weight, bias, mean, var, momentum, eps):
    along = lambda t: tensor_of(t, "batch_norm").reshape((-1,) + (1,) * (x.ndim - 2))
    y = (x - along(mean)) * along(ops.rsqrt(tensor_of(var, "batch_norm") + eps))
    y = y if weight is None else y * along(weight)
    return y if bias is None else y + along(bias), None, None


@rule("scaled_dot_product_attention.default", "_scaled_dot_product_flash_attention_for_cpu.default")
def _(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if isinstance(attn_mask, float):  # the kernel's form has no mask here
        attn_mask, dropout_p, is_causal = None, attn_mask, dropout_p
    if dropout_p:
        raise refuse(ArgumentError, "attention with dropout is not supported; export it in evaluation mode")
    heads_last = lambda t: ops.swapaxes(t, -2, -3)
    if scale is not None:
        q = q * (scale * math.sqrt(q.shape[-1]))
    scores_mask = attn_mask if attn_mask is None or tensor_of(attn_mask, "mask").dtype is dtypes.bool_ else None
    if attn_mask is not None and scores_mask is None:
        raise refuse(ArgumentError, "attention with a mask of floats is not supported; use bool")
    return heads_last(attention(heads_last(q), heads_last(k), heads_last(v), bool(is_causal), scores_mask)), None
