# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions, sorting and softmax."""

from __future__ import annotations

import functools
import math

from .. import ops
from ..ops.base import tensor_of
from .kinks import shared
from .registry import RULES, dtype_of, rule


def _kind(x, dtype):
    """x converted to a PyTorch dtype, if given."""
    return x if dtype is None else tensor_of(x, "sum").astype(dtype_of(dtype))


def _of_axes(*names):
    """Decorator: the rule of operations along axes. PyTorch treats scalars as tensors of one axis."""
    def register(function):
        @functools.wraps(function)
        def call(x, *args, **kwargs):
            x = tensor_of(x, names[0].split(".")[0])
            if x.ndim:
                return function(x, *args, **kwargs)
            results = function(ops.reshape(x, (1,)), *args, **kwargs)
            return tuple(ops.reshape(r, ()) for r in results) if isinstance(results, tuple) else ops.reshape(results, ())
        return rule(*names)(call)
    return register


@_of_axes("sum.dim_IntList", "sum.default")
def _(x, axes=None, keepdim=False, dtype=None):
    return ops.sum(_kind(x, dtype), axes or None, keepdim)


@_of_axes("mean.dim", "mean.default")
def _(x, axes=None, keepdim=False, dtype=None):
    x = _kind(x, dtype)
    if not x.size:  # the mean of nothing is not a number
        return ops.sum(x, axes or None, keepdim) / _count(x, axes)
    return ops.mean(x, axes or None, keepdim)


@_of_axes("prod.default", "prod.dim_int")
def _(x, axis=None, keepdim=False, dtype=None):
    return ops.prod(_kind(x, dtype), axis, keepdim)


@_of_axes("max.default")
def _(x):
    return shared(ops.max, x)


@_of_axes("min.default")
def _(x):
    return shared(ops.min, x)


@_of_axes("max.dim")
def _(x, axis, keepdim=False):
    return ops.max(x, axis, keepdim), ops.argmax(x, axis, keepdim)


@_of_axes("min.dim")
def _(x, axis, keepdim=False):
    return ops.min(x, axis, keepdim), ops.argmin(x, axis, keepdim)


@_of_axes("amax.default")
def _(x, axes=None, keepdim=False):
    return shared(ops.max, x, axes or None, keepdim)


@_of_axes("amin.default")
def _(x, axes=None, keepdim=False):
    return shared(ops.min, x, axes or None, keepdim)


def _count(x, axes):
    return math.prod(x.shape[d] for d in (axes or range(x.ndim)))


@_of_axes("var.correction")
def _(x, axes=None, correction=1, keepdim=False):
    correction, count = 1 if correction is None else correction, _count(x, axes)
    if 0 < count <= correction:  # of too few elements: not a number
        return ops.sum(ops.square(x - ops.mean(x, axes or None, True)), axes or None, keepdim) / 0.0
    return ops.var(x, axes or None, correction, keepdim)


@_of_axes("var_mean.correction")
def _(x, axes=None, correction=1, keepdim=False):
    return RULES["var.correction"](x, axes, correction, keepdim), ops.mean(x, axes or None, keepdim)


@_of_axes("std.correction")
def _(x, axes=None, correction=1, keepdim=False):
    return _root(RULES["var.correction"](x, axes, correction, keepdim))


@_of_axes("std_mean.correction")
def _(x, axes=None, correction=1, keepdim=False):
    return RULES["std.correction"](x, axes, correction, keepdim), ops.mean(x, axes or None, keepdim)


@_of_axes("linalg_vector_norm.default", "norm.ScalarOpt_dim", "norm.Scalar")
def _(x, order=2, axes=None, keepdim=False, dtype=None):
    x = ops.abs(_kind(x, dtype))
    axes = axes or None
    if order == math.inf or order == -math.inf:
        return shared(ops.max if order > 0 else ops.min, x, axes, keepdim)
    if order == 0:
        return ops.sum(ops.not_equal(x, 0).astype(x.dtype), axes, keepdim)
    if order == 1:
        return ops.sum(x, axes, keepdim)
    return _root(ops.sum(ops.square(x) if order == 2 else x ** order, axes, keepdim), order)


def _root(x, order=2):
    """x ** (1 / order) with the derivative 0 at 0, which PyTorch gives norms and deviations."""
    none = ops.equal(x, 0)
    x = ops.where(none, 1.0, x)
    return ops.where(none, 0.0, ops.sqrt(x) if order == 2 else x ** (1 / order))


@rule("dist.default")
def _(x, y, p=2.0):
    return RULES["linalg_vector_norm.default"](x - y, p)


@_of_axes("argmin.default")
def _(x, axis=None, keepdim=False):
    return ops.argmin(x, axis, keepdim)


@_of_axes("argmax.default")
def _(x, axis=None, keepdim=False):
    return ops.argmax(x, axis, keepdim)


@_of_axes("cumsum.default")
def _(x, axis, dtype=None):
    return ops.cumulative_sum(_kind(x, dtype), axis)


@_of_axes("cumprod.default")
def _(x, axis, dtype=None):
    return ops.cumulative_prod(_kind(x, dtype), axis)


@_of_axes("cummax.default")
def _(x, axis):
    return ops.cumulative_max(x, axis)


@_of_axes("cummin.default")
def _(x, axis):
    return ops.cumulative_min(x, axis)


@_of_axes("logcumsumexp.default")
def _(x, axis):
    return ops.cumulative_logsumexp(x, axis)


@_of_axes("sort.default", "sort.stable")
def _(x, axis=-1, descending=False, stable=None):
    indices = ops.argsort(x, axis, descending)
    return ops.take_along_axis(x, indices, axis), indices


@_of_axes("argsort.default", "argsort.stable")
def _(x, axis=-1, descending=False, stable=None):
    return ops.argsort(x, axis, descending)


@_of_axes("topk.default")
def _(x, k, axis=-1, largest=True, sorted=True):
    return ops.top_k(x, k, axis, largest)


def _picked(x, index, axis, keepdim):
    """(elements of x, index) for one index a line, along an axis of extent 1."""
    values = ops.take_along_axis(x, index, axis)
    return (values, index) if keepdim else (ops.squeeze(values, axis), ops.squeeze(index, axis))


def _line(x, axis, at):
    return x[(slice(None),) * (axis % x.ndim) + (slice(at, at + 1),)]


@_of_axes("kthvalue.default")
def _(x, k, axis=-1, keepdim=False):
    return _picked(x, _line(ops.argsort(x, axis), axis, k - 1), axis, keepdim)


def _median(x, axis, keepdim, skips_nan):
    """The lower one of two middle elements. The first NaN is the median, or, with skips_nan, none is counted."""
    order, last = ops.argsort(x, axis), x.shape[axis] - 1
    if x.dtype.kind != "float":
        return _picked(x, _line(order, axis, last // 2), axis, keepdim)
    unknown = ops.isnan(x)
    if skips_nan:
        middle = ops.maximum(last - ops.sum(unknown, axis, True), 0) // 2
        return _picked(x, ops.take_along_axis(order, middle, axis), axis, keepdim)
    index = ops.where(ops.any(unknown, axis, True), ops.argmax(unknown, axis, True), _line(order, axis, last // 2))
    return _picked(x, index, axis, keepdim)


for _name, _skips in (("median", False), ("nanmedian", True)):
    _of_axes(f"{_name}.dim")(lambda x, axis, keepdim=False, _skips=_skips: _median(x, axis, keepdim, _skips))
    _of_axes(f"{_name}.default")(lambda x, _skips=_skips: shared(
        lambda x, axes, keepdims: ops.reshape(_median(ops.reshape(x, (-1,)), 0, False, _skips)[0], (1,) * x.ndim if keepdims else ()), x))


@_of_axes("mode.default")
def _(x, axis=-1, keepdim=False):
    """The least of the most frequent elements: where the longest run of the sorted elements ends."""
    axis, order = axis % x.ndim, ops.argsort(x, axis)
    ordered, places = ops.take_along_axis(x, order, axis), ops.iota(x.shape, axis)
    begins = ops.not_equal(ordered, ops.roll(ordered, 1, axis))
    length = places - ops.cumulative_max(ops.where(begins, places, 0), axis)[0]
    return _picked(x, ops.take_along_axis(order, ops.argmax(length, axis, True), axis), axis, keepdim)


@_of_axes("logsumexp.default")
def _(x, axes, keepdim=False):
    return ops.logsumexp(x, axes, keepdim)


@_of_axes("all.dim", "all.default", "all.dims", "_is_all_true.default")
def _(x, axis=None, keepdim=False):
    return ops.all(x, axis, keepdim)


@_of_axes("any.dim", "any.default", "any.dims", "_is_any_true.default")
def _(x, axis=None, keepdim=False):
    return ops.any(x, axis, keepdim)


@_of_axes("_softmax.default", "softmax.int")
def _(x, axis, half=False):
    return ops.softmax(x, axis)


@_of_axes("_safe_softmax.default")
def _(x, axis, dtype=None):
    """Lines of -inf alone give 0."""
    x = _kind(x, dtype)
    some = ops.any(ops.greater(x, -math.inf), axis, True)
    return ops.where(some, ops.softmax(ops.where(some, x, 0.0), axis), 0.0)


@_of_axes("_log_softmax.default", "log_softmax.int")
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
