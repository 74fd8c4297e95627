# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that move elements."""

from __future__ import annotations

import math

import numpy as np

from .. import ops
from ..errors import Error
from ..ops.base import tensor_of
from ..source import refuse
from .registry import rule


@rule("view.default", "reshape.default", "_unsafe_view.default", "view_copy.default")
def _(x, shape):
    return ops.reshape(x, shape)


@rule("as_strided.default", "as_strided_copy.default")
def _(x, shape, strides, offset=None, *, layout):
    """A view of the elements of x in memory order. `layout`: strides and offset of x in PyTorch."""
    held, begin = layout
    order = _outermost_first(x.shape, held)
    flat = ops.reshape(ops.permute_dims(x, order), (math.prod(x.shape),))
    if not _dense([x.shape[d] for d in order], [held[d] for d in order]):
        raise refuse(Error, "operation 'aten.as_strided' of a view with gaps is not supported; call contiguous() first")
    offset = (begin if offset is None else offset) - begin
    order = _outermost_first(shape, strides)
    outer, steps = [shape[d] for d in order], [strides[d] for d in order]
    if offset == 0 and math.prod(shape) == flat.shape[0] and _dense(outer, steps):
        return ops.permute_dims(ops.reshape(flat, outer), [order.index(d) for d in range(len(shape))])
    places = sum((np.arange(n).reshape([-1 if e == d else 1 for e in range(len(shape))]) * s
                  for d, (n, s) in enumerate(zip(shape, strides))), np.full([1] * len(shape), offset))
    return ops.take(flat, np.broadcast_to(places, shape).astype(np.int64), 0, "refuse")


def _outermost_first(shape, strides):
    """Dimensions by descending stride; those of extent 1, whose strides are arbitrary, come first."""
    return sorted(range(len(shape)), key=lambda d: (shape[d] > 1, -strides[d] if shape[d] > 1 else 0))


def _dense(shape, strides):
    """Whether dimensions, outermost first, form one block without gaps."""
    return all(n == 1 or s == math.prod(shape[d + 1:]) for d, (n, s) in enumerate(zip(shape, strides)))


@rule("permute.default", "permute_copy.default")
def _(x, order):
    return ops.permute_dims(x, order)


@rule("transpose.int", "transpose_copy.int")
def _(x, a, b):
    return ops.swapaxes(x, a, b)


@rule("t.default", "t_copy.default")
def _(x):
    return x.T


@rule("unsqueeze.default", "unsqueeze_copy.default")
def _(x, axis):
    return ops.expand_dims(x, axis)


@rule("squeeze.dims", "squeeze.dim", "squeeze_copy.dims", "squeeze_copy.dim")
def _(x, axes):
    axes = [axes] if isinstance(axes, int) else list(axes)
    return ops.squeeze(x, [a for a in axes if x.ndim and x.shape[a] == 1])


@rule("expand.default", "expand_copy.default")
def _(x, shape, implicit=False):
    shape = list(shape)
    kept = len(shape) - x.ndim
    return ops.broadcast_to(x, [x.shape[i - kept] if n == -1 else n for i, n in enumerate(shape)])


@rule("cat.default")
def _(tensors, axis=0):
    # PyTorch leaves out tensors of shape (0,), whatever the rank of the others: caches of keys begin so.
    return ops.concat([t for t in tensors if t.shape != (0,)] or tensors[:1], axis)


@rule("stack.default")
def _(tensors, axis=0):
    return ops.stack(tensors, axis)


@rule("slice.Tensor", "slice_copy.Tensor")
def _(x, axis=0, start=None, end=None, step=1):
    return x[(slice(None),) * (axis % x.ndim) + (slice(start, end, step),)]


@rule("narrow_copy.default")
def _(x, axis, start, length):
    start %= max(1, x.shape[axis])
    return x[(slice(None),) * (axis % x.ndim) + (slice(start, start + length),)]


@rule("select.int", "select_copy.int")
def _(x, axis, index):
    return x[(slice(None),) * (axis % x.ndim) + (index,)]


@rule("unbind.int", "unbind_copy.int")
def _(x, axis=0):
    return [x[(slice(None),) * (axis % x.ndim) + (i,)] for i in range(x.shape[axis])]


@rule("split_with_sizes.default", "split.Tensor", "split.sizes", "split_with_sizes_copy.default", "split_copy.Tensor")
def _(x, sizes, axis=0):
    n = x.shape[axis]
    if isinstance(sizes, int):
        sizes = [min(sizes, n - i) for i in range(0, n, sizes)]
    return ops.split(x, sizes, axis)


@rule("constant_pad_nd.default")
def _(x, pad, value=0.0):
    widths = [(0, 0)] * (x.ndim - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    x = x[tuple(slice(max(0, -low), n - max(0, -high)) for n, (low, high) in zip(x.shape, widths))]  # negative widths crop
    return ops.pad(x, [(max(0, low), max(0, high)) for low, high in widths], value)


@rule("diagonal.default", "diagonal_copy.default")
def _(x, offset=0, axis1=0, axis2=1):
    return ops.diagonal(x, offset, axis1, axis2)


@rule("unfold.default", "unfold_copy.default")
def _(x, axis, size, step):
    """Sliding windows over an axis, along a new last axis. A scalar is one element of an axis."""
    axis %= max(1, x.ndim)
    if x.ndim == 0:
        return ops.reshape(x, (1,))[:size]
    count = (x.shape[axis] - size) // step + 1
    places = ops.expand_dims(ops.arange(count) * step, 1) + ops.arange(size)
    return ops.moveaxis(ops.take(x, places, axis), axis + 1, -1)


@rule("slice_scatter.default")
def _(x, source, axis=0, start=None, end=None, step=1):
    places = range(*slice(start, end, step).indices(x.shape[axis]))
    return _put(x, source, axis % x.ndim, places)


@rule("select_scatter.default")
def _(x, source, axis, index):
    axis %= x.ndim
    return _put(x, ops.expand_dims(source, axis), axis, range(index % x.shape[axis], index % x.shape[axis] + 1))


@rule("diagonal_scatter.default")
def _(x, source, offset=0, axis1=0, axis2=1):
    first, second = axis1 % x.ndim, axis2 % x.ndim
    order = [first, second, *[d for d in range(x.ndim) if d not in (first, second)]]
    rows = np.arange(source.shape[-1]) + max(0, -offset)
    put = ops.put_at(ops.permute_dims(x, order), [rows, rows + offset], ops.moveaxis(source, -1, 0), 0, "set", "drop")
    return ops.permute_dims(put, [order.index(d) for d in range(x.ndim)])


@rule("repeat_interleave.Tensor")
def _(repeats, output_size=None):
    """The index of the element that each of the output_size results repeats."""
    return ops.searchsorted(ops.cumulative_sum(repeats, 0), ops.arange(output_size), "right")


def _put(x, source, axis, places):
    """x with `source` at the positions `places` of an axis, a range."""
    source = source.astype(x.dtype)
    if places.step == 1:
        before, after = [(slice(None),) * axis + (s,) for s in (slice(0, places.start), slice(places.start + len(places), None))]
        return ops.concat([x[before], source, x[after]], axis) if len(places) else x
    return ops.put_at(x, [ops.arange(places.start, places.stop, places.step, "int64")], source, axis)


@rule("roll.default")
def _(x, shifts, axes=()):
    return ops.roll(x, list(shifts), list(axes)) if axes else ops.roll(x, shifts[0])


@rule("pixel_shuffle.default")
def _(x, factor):
    *batch, c, h, w = x.shape
    parts, n = x.reshape((*batch, c // factor ** 2, factor, factor, h, w)), len(batch)
    return ops.permute_dims(parts, [*range(n + 1), n + 3, n + 1, n + 4, n + 2]).reshape((*batch, c // factor ** 2, h * factor, w * factor))


@rule("tril.default")
def _(x, k=0):
    return ops.tril(x, k)


@rule("triu.default")
def _(x, k=0):
    return ops.triu(x, k)


for _name, _indices in (("tril", np.tril_indices), ("triu", np.triu_indices)):
    rule(f"{_name}_indices.default")(lambda rows, columns, offset=0, *_, _indices=_indices, **__: tensor_of(
        np.stack(_indices(rows, offset, columns)), "indices"))


@rule("flip.default")
def _(x, axes):
    return ops.flip(x, axes)


@rule("repeat.default")
def _(x, times):
    return ops.tile(x, times)
