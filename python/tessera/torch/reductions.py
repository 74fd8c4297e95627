# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations along axes."""

from __future__ import annotations

from .. import ops
from ..ops.base import tensor_of
from .registry import dtype_of, rule


def _kind(x, dtype):
    return x if dtype is None else tensor_of(x, "sum").astype(dtype_of(dtype))


@rule("sum.dim_IntList", "sum.default")
def _(x, axes=None, keepdim=False, dtype=None):
    return ops.sum(_kind(x, dtype), axes or None, keepdim)


@rule("mean.dim", "mean.default")
def _(x, axes=None, keepdim=False, dtype=None):
    return ops.mean(_kind(x, dtype), axes or None, keepdim)


@rule("amax.default")
def _(x, axes=None, keepdim=False):
    return ops.max(x, axes or None, keepdim)


@rule("amin.default")
def _(x, axes=None, keepdim=False):
    return ops.min(x, axes or None, keepdim)


@rule("var.correction")
def _(x, axes=None, correction=1, keepdim=False):
    return ops.var(x, axes, correction, keepdim)


@rule("argmax.default")
def _(x, axis=None, keepdim=False):
    return ops.argmax(x, axis, keepdim)


@rule("cumsum.default")
def _(x, axis, dtype=None):
    return ops.cumulative_sum(_kind(x, dtype), axis)


@rule("any.dim", "any.default")
def _(x, axis=None, keepdim=False):
    return ops.any(x, axis, keepdim)


@rule("_softmax.default", "softmax.int")
def _(x, axis, half=False):
    return ops.softmax(x, axis)


@rule("_log_softmax.default", "log_softmax.int")
def _(x, axis, half=False):
    return ops.log_softmax(x, axis)
