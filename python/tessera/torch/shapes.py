# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that move elements."""

from __future__ import annotations

from .. import ops
from ..errors import ArgumentError
from ..source import refuse
from .registry import rule


@rule("view.default", "reshape.default", "_unsafe_view.default")
def _(x, shape):
    return ops.reshape(x, shape)


@rule("permute.default")
def _(x, order):
    return ops.permute_dims(x, order)


@rule("transpose.int")
def _(x, a, b):
    return ops.swapaxes(x, a, b)


@rule("t.default")
def _(x):
    return x.T


@rule("unsqueeze.default")
def _(x, axis):
    return ops.expand_dims(x, axis)


@rule("squeeze.dims", "squeeze.dim")
def _(x, axes):
    axes = [axes] if isinstance(axes, int) else list(axes)
    return ops.squeeze(x, [a for a in axes if x.shape[a] == 1])


@rule("expand.default")
def _(x, shape, implicit=False):
    shape = list(shape)
    kept = len(shape) - x.ndim
    return ops.broadcast_to(x, [x.shape[i - kept] if n == -1 else n for i, n in enumerate(shape)])


@rule("cat.default")
def _(tensors, axis=0):
    return ops.concat(tensors, axis)


@rule("stack.default")
def _(tensors, axis=0):
    return ops.stack(tensors, axis)


@rule("slice.Tensor")
def _(x, axis=0, start=None, end=None, step=1):
    return x[(slice(None),) * (axis % x.ndim) + (slice(start, end, step),)]


@rule("select.int")
def _(x, axis, index):
    return x[(slice(None),) * (axis % x.ndim) + (index,)]


@rule("split_with_sizes.default", "split.Tensor", "split.sizes")
def _(x, sizes, axis=0):
    n = x.shape[axis]
    if isinstance(sizes, int):
        sizes = [min(sizes, n - i) for i in range(0, n, sizes)]
    return ops.split(x, sizes, axis)


@rule("constant_pad_nd.default")
def _(x, pad, value=0.0):
    if min(pad) < 0:
        raise refuse(ArgumentError, f"'constant_pad_nd' by {pad}: negative numbers cut, which is not supported")
    widths = [(0, 0)] * (x.ndim - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    return ops.pad(x, widths, value)


@rule("tril.default")
def _(x, k=0):
    return ops.tril(x, k)


@rule("triu.default")
def _(x, k=0):
    return ops.triu(x, k)


@rule("flip.default")
def _(x, axes):
    return ops.flip(x, axes)


@rule("repeat.default")
def _(x, times):
    return ops.tile(x, times)
