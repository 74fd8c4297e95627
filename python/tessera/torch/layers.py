# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products, normalization, attention."""

from __future__ import annotations

import math

import numpy as np

from .. import ops
from ..errors import ArgumentError
from ..nn import functional as F
from ..nn.grouped import grouped_matmul
from ..ops.base import tensor_of
from ..source import refuse
from .registry import RULES, LazyResults, dtype_of, rule


@rule("mm.default", "bmm.default", "matmul.default", "mv.default")
def _(x, y):
    return x @ y


@rule("_grouped_mm.default", "transformers.grouped_mm_fallback.default")
def _(x, y, offs=None, bias=None, out_dtype=None):
    """Products of groups of rows that end at `offs`, or of batches."""
    if offs is None:
        product = x @ y
    elif x.ndim == 2 and y.ndim == 3:
        product = grouped_matmul(x, y, offs)
    else:
        raise refuse(ArgumentError, f"'grouped_mm' of shapes {x.shape} and {y.shape}: groups are of rows of the first operand, with a "
                                    "matrix each; write other groups with slices")
    product = product if bias is None else product + bias
    return product if out_dtype is None else product.astype(dtype_of(out_dtype))


@rule("addmm.default")
def _(bias, x, y, beta=1, alpha=1):
    product = x @ y if alpha == 1 else (x @ y) * alpha
    return product + (bias if beta == 1 else bias * beta)


@rule("addmv.default")
def _(bias, x, y, beta=1, alpha=1):
    return RULES["addmm.default"](bias, x, y, beta, alpha)


@rule("addbmm.default")
def _(bias, x, y, beta=1, alpha=1):
    product = ops.einsum("bik,bkj->ij", x, y)
    return (product if alpha == 1 else product * alpha) + (bias if beta == 1 else bias * beta)


@rule("linear.default")
def _(x, weight, bias=None):
    return F.linear(x, tensor_of(weight, "linear").T, bias)


@rule("native_layer_norm.default")
def _(x, shape, weight, bias, eps):
    axes, fixed = tuple(range(-len(shape), 0)), ops.stop_gradient(x)  # PyTorch's statistics of lines have no derivative
    return LazyResults(lambda: F.layer_norm(x, weight, bias, axes, eps), lambda: ops.mean(fixed, axes, True),
                       lambda: ops.rsqrt(ops.var(fixed, axes, 0, True) + eps))


@rule("native_group_norm.default")
def _(x, weight, bias, n, c, size, groups, eps):
    lines = ops.reshape(x, (n, groups, c // groups * size))

    def normalised():
        y = F.layer_norm(lines, None, None, -1, eps).reshape(x.shape)
        along = (-1,) + (1,) * (x.ndim - 2)
        y = y if weight is None else y * tensor_of(weight, "group_norm").reshape(along)
        return y if bias is None else y + tensor_of(bias, "group_norm").reshape(along)
    return LazyResults(normalised, lambda: ops.mean(lines, -1), lambda: ops.rsqrt(ops.var(lines, -1) + eps))


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
    """Normalizes over the batch; the running statistics are returned as new buffers."""
    if not training:
        return _normalised(x, weight, bias, mean, var, eps), None, None, mean, var
    here, spread = _of_batch(x)
    count = x.size // x.shape[1]
    mean = tensor_of(mean, "batch_norm") * (1 - momentum) + ops.stop_gradient(here) * momentum
    var = tensor_of(var, "batch_norm") * (1 - momentum) + ops.stop_gradient(spread) * (momentum * count / max(1, count - 1))
    return _normalised(x, weight, bias, here, spread, eps), None, None, mean, var


def attention(q, k, v, mask=None, causal=False, scale=None, grouped=False, dropped=lambda weights: weights):
    """softmax(q k^T * scale) v for (..., heads, length, size).

    Queries whose mask excludes all keys give 0, as in PyTorch. Their softmax is discarded, but must be finite: the score
    of the key at their own position is 0. So if masks leave a window of keys, no others are sent. dropped: applied to the
    softmax.
    """
    if grouped and k.shape[-3] != q.shape[-3]:
        k, v = [ops.repeat(t, q.shape[-3] // k.shape[-3], t.ndim - 3) for t in (k, v)]
    lead = np.broadcast_shapes(*(t.shape[:-2] for t in (q, k, v)))
    if len(lead) != 2:  # no batch axis, or several
        wide = lambda t: ops.reshape(ops.broadcast_to(t, (*lead, *t.shape[-2:])), (-1, *(lead[-1:] or (1,)), *t.shape[-2:]))
        mask = mask if mask is None or not any(n != 1 for n in mask.shape[:-2]) else wide(mask)
        q, k, v = map(wide, (q, k, v))
        mask = mask if mask is None or mask.ndim == 4 else ops.reshape(mask, mask.shape[-2:])
    else:
        q, k, v = [t if t.shape[:-2] == lead else ops.broadcast_to(t, (*lead, *t.shape[-2:])) for t in (q, k, v)]
    scores = ops.einsum("bhqd,bhkd->bhqk", q, k) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    shape = (q.shape[-2], k.shape[-2])
    if causal:  # aligned at the first key, also if there are more keys than queries
        scores = ops.where(ops.greater_equal(ops.iota(shape, 0), ops.iota(shape, 1)), scores, -math.inf)
    if mask is None:
        return ops.reshape(ops.einsum("bhqk,bhkd->bhqd", dropped(ops.softmax(scores, -1)), v), (*lead, shape[0], v.shape[-1]))
    looks = mask if mask.dtype.kind == "bool" else ops.greater(mask, -math.inf)
    some = ops.any(looks, -1, keepdims=True)
    if mask.dtype.kind == "bool":
        scores = ops.where(mask, scores, -math.inf)
    else:  # the least f16 less a score has no f16
        scores = scores.astype("float32") if scores.dtype.name == "float16" else scores
        scores = scores + mask.astype(scores.dtype)
    scored = some
    if mask.ndim > 1 and 1 < mask.shape[-2] == shape[0] <= shape[1]:
        scored = ops.logical_or(some, ops.not_equal(ops.iota(shape, 0), ops.iota(shape, 1)))
    weights = dropped(ops.softmax(ops.where(scored, scores, 0.0), -1)).astype(v.dtype)
    seen = ops.where(some, ops.einsum("bhqk,bhkd->bhqd", weights, v), 0.0)
    return ops.reshape(seen, (*lead, shape[0], v.shape[-1]))


@rule("scaled_dot_product_attention.default")
def _(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    return attention(q, k, v, attn_mask, is_causal, scale, enable_gqa)


@rule("_scaled_dot_product_flash_attention_for_cpu.default")
def _(q, k, v, dropout_p=0.0, is_causal=False, attn_mask=None, scale=None):
    return attention(q, k, v, attn_mask, is_causal, scale), None
