# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions, sorting and softmax."""

from __future__ import annotations

import math

from .. import ops
from ..ops.base import tensor_of
from .registry import dtype_of, rule


def _kind(x, dtype):
    """x converted to a PyTorch dtype, if given."""
    return x if dtype is None else tensor_of(x, "sum").astype(dtype_of(dtype))


def _along(function, x, *options):
    """A function along an axis, whose results have the shape of x; PyTorch treats scalars as tensors of one axis."""
    if x.ndim:
        return function(x, *options)
    results = function(ops.reshape(x, (1,)), *options)
    return tuple(ops.reshape(r, ()) for r in results) if isinstance(results, tuple) else ops.reshape(results, ())


@rule("sum.dim_IntList", "sum.default")
def _(x, axes=None, keepdim=False, dtype=None):
    return ops.sum(_kind(x, dtype), axes or None, keepdim)


@rule("mean.dim", "mean.default")
def _(x, axes=None, keepdim=False, dtype=None):
    return ops.mean(_kind(x, dtype), axes or None, keepdim)


@rule("prod.default", "prod.dim_int")
def _(x, axis=None, keepdim=False, dtype=None):
    return ops.prod(_kind(x, dtype), axis, keepdim)


@rule("max.default")
def _(x):
    return ops.max(x)


@rule("min.default")
def _(x):
    return ops.min(x)


@rule("max.dim")
def _(x, axis, keepdim=False):
    return ops.max(x, axis, keepdim), ops.argmax(x, axis, keepdim)


@rule("min.dim")
def _(x, axis, keepdim=False):
    return ops.min(x, axis, keepdim), ops.argmin(x, axis, keepdim)


@rule("amax.default")
def _(x, axes=None, keepdim=False):
    return ops.max(x, axes or None, keepdim)


@rule("amin.default")
def _(x, axes=None, keepdim=False):
    return ops.min(x, axes or None, keepdim)


@rule("var.correction")
def _(x, axes=None, correction=1, keepdim=False):
    return ops.var(x, axes, 1 if correction is None else correction, keepdim)


@rule("var_mean.correction")
def _(x, axes=None, correction=1, keepdim=False):
    return ops.var(x, axes, 1 if correction is None else correction, keepdim), ops.mean(x, axes, keepdim)


@rule("linalg_vector_norm.default", "norm.ScalarOpt_dim", "norm.Scalar")
def _(x, order=2, axes=None, keepdim=False, dtype=None):
    x = ops.abs(_kind(x, dtype))
    axes = axes or None
    if order == math.inf or order == -math.inf:
        return (ops.max if order > 0 else ops.min)(x, axes, keepdim)
    if order == 0:
        return ops.sum(ops.not_equal(x, 0).astype(x.dtype), axes, keepdim)
    if order == 1:
        return ops.sum(x, axes, keepdim)
    total = ops.sum(ops.square(x) if order == 2 else x ** order, axes, keepdim)
    none = ops.equal(total, 0)  # the gradient of the norm of zeros is 0, as in PyTorch
    root = ops.where(none, 1.0, total)
    return ops.where(none, 0.0, ops.sqrt(root) if order == 2 else root ** (1 / order))


@rule("argmin.default")
def _(x, axis=None, keepdim=False):
    return ops.argmin(x, axis, keepdim)


@rule("argmax.default")
def _(x, axis=None, keepdim=False):
    return ops.argmax(x, axis, keepdim)


@rule("cumsum.default")
def _(x, axis, dtype=None):
    return _along(ops.cumulative_sum, _kind(x, dtype), axis)


@rule("cumprod.default")
def _(x, axis, dtype=None):
    return _along(ops.cumulative_prod, _kind(x, dtype), axis)


@rule("cummax.default")
def _(x, axis):
    return _along(ops.cumulative_max, x, axis)


@rule("cummin.default")
def _(x, axis):
    return _along(ops.cumulative_min, x, axis)


@rule("logcumsumexp.default")
def _(x, axis):
    return _along(ops.cumulative_logsumexp, x, axis)


@rule("sort.default", "sort.stable")
def _(x, axis=-1, descending=False, stable=None):
    indices = ops.argsort(x, axis, descending)
    return ops.take_along_axis(x, indices, axis), indices


@rule("argsort.default", "argsort.stable")
def _(x, axis=-1, descending=False, stable=None):
    return ops.argsort(x, axis, descending)


@rule("topk.default")
def _(x, k, axis=-1, largest=True, sorted=True):
    return ops.top_k(x, k, axis, largest)


@rule("logsumexp.default")
def _(x, axes, keepdim=False):
    return ops.logsumexp(x, axes, keepdim)


@rule("all.dim", "all.default", "all.dims")
def _(x, axis=None, keepdim=False):
    return ops.all(x, axis, keepdim)


@rule("any.dim", "any.default", "any.dims")
def _(x, axis=None, keepdim=False):
    return ops.any(x, axis, keepdim)


@rule("_softmax.default", "softmax.int")
def _(x, axis, half=False):
    return ops.softmax(x, axis)


@rule("_log_softmax.default", "log_softmax.int")
def _(x, axis, half=False):
    return ops.log_softmax(x, axis)


@rule("histc.default")
def _(x, bins=100, low=0, high=0):
    """Counts in `bins` equal parts from low to high, both included; an empty range stands for that of the values."""
    x = x.reshape((-1,))
    if low == high:
        low, high = ops.min(x), ops.max(x)
        low, high = ops.where(low == high, low - 1, low), ops.where(low == high, high + 1, high)
    part = ops.minimum(ops.floor((x - low) * bins / (high - low)), bins - 1)
    part = ops.where((x >= low) & (x <= high), part, -1.0).astype("int32")
    return ops.segment_sum(ops.ones(part.shape, "int32"), part, bins).astype(x.dtype)
