# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that read and write at computed indices.

PyTorch raises an error for indices out of range; tessera.ops.indexing defines what happens here. `x[i]` accepts
negative indices ("poison"), all other operations do not ("refuse").
"""

from __future__ import annotations

from .. import ops
from ..errors import ArgumentError, DTypeError
from ..ops.base import tensor_of
from ..source import refuse
from .registry import rule


@rule("embedding.default")
def _(weight, indices, padding_idx=-1, *_):
    weight = tensor_of(weight, "embedding")
    if padding_idx >= 0:  # that row gets no gradient
        padding = ops.equal(ops.iota((weight.shape[0], 1), 0), padding_idx)
        weight = ops.where(padding, ops.stop_gradient(weight), weight)
    return ops.take(weight, indices, 0, "refuse")


@rule("_embedding_bag.default", "_embedding_bag_forward_only.default")
def _(weight, indices, offsets, scale_grad=False, mode=0, sparse=False, weights=None, include_last=False, padding_idx=-1):
    if mode == 2 or padding_idx >= 0:
        raise refuse(ArgumentError, "'embedding_bag' with mode 'max' or padding_idx is not supported")
    rows, count = ops.take(weight, indices, 0, "refuse"), offsets.shape[0] - bool(include_last)
    rows = rows if weights is None else rows * ops.expand_dims(weights, 1)
    bag = ops.sum(ops.less_equal(ops.expand_dims(offsets[:count], 0), ops.expand_dims(ops.iota(indices.shape, 0), 1)), 1) - 1
    inside = ops.equal(ops.expand_dims(ops.iota((count,), 0), 1), ops.expand_dims(bag, 0)).astype(rows.dtype)
    total = inside @ rows
    if mode == 1:
        total = total / ops.maximum(ops.sum(inside, 1, keepdims=True), 1)
    return total, None, None, None


@rule("index_select.default")
def _(x, axis, indices):
    return ops.take(x, indices, axis, "refuse")


@rule("gather.default")
def _(x, axis, indices, sparse_grad=False):
    return ops.take_along_axis(_whole(x, axis, indices.shape), indices, axis, "refuse")


def _whole(x, axis, shape):
    """The part of x that indices of `shape` can reach."""
    return x[tuple(slice(None) if d == axis % x.ndim else slice(0, n) for d, n in enumerate(shape))]


def _checked(indices):
    for i in indices:
        if i is not None and i.dtype.kind != "integer":
            raise refuse(DTypeError, "a bool index selects a number of elements known only at run time; use torch.where")
    return indices


@rule("index.Tensor", "_unsafe_index.Tensor")
def _(x, indices):
    """As in NumPy, adjacent indexed axes are replaced in place; else the indexed axes come first."""
    at = [d for d, i in enumerate(_checked(indices)) if i is not None]
    if at != list(range(at[0], at[0] + len(at))):
        x, first = ops.permute_dims(x, [*at, *[d for d in range(x.ndim) if d not in at]]), 0
    else:
        first = at[0]
    if len(at) == 1:
        return ops.take(x, indices[at[0]], first, "poison")
    return ops.take_at(x, [indices[d] for d in at], first, "poison")


@rule("index_put.default", "_unsafe_index_put.default")
def _(x, indices, values, accumulate=False):
    at = [d for d, i in enumerate(_checked(indices)) if i is not None]
    mode = "add" if accumulate else "set"
    if at == list(range(at[0], at[0] + len(at))):
        return ops.put_at(x, [indices[d] for d in at], values.astype(x.dtype), at[0], mode, "poison")
    order = [*at, *[d for d in range(x.ndim) if d not in at]]
    moved = ops.put_at(ops.permute_dims(x, order), [indices[d] for d in at], values.astype(x.dtype), 0, mode, "poison")
    return ops.permute_dims(moved, [order.index(d) for d in range(x.ndim)])


def _scattered(x, axis, indices, values, mode):
    axis %= x.ndim
    if any(d != axis and n != m for d, (n, m) in enumerate(zip(x.shape, indices.shape))):
        raise refuse(ArgumentError, f"'scatter' of indices {indices.shape} into {x.shape}: extents must be equal "
                                    f"except along axis {axis}")
    values = values if not hasattr(values, "shape") or not values.shape else _part(values, indices.shape)
    return ops.put_along_axis(x, indices, tensor_of(values, "scatter").astype(x.dtype), axis, mode, "refuse")


def _part(values, shape):
    return values[tuple(slice(0, n) for n in shape)]


@rule("scatter.src", "scatter.value")
def _(x, axis, indices, values):
    return _scattered(x, axis, indices, values, "set")


@rule("scatter_add.default")
def _(x, axis, indices, values):
    return _scattered(x, axis, indices, values, "add")
