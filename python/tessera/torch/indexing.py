# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that read and write at computed indices.

PyTorch raises an error for indices out of range; tessera.ops.indexing defines what happens here. `x[i]`, `take` and `put`
accept negative indices ("poison"), all other operations do not ("refuse").
"""

from __future__ import annotations

import math

from .. import ops
from ..control import custom_gradient
from ..errors import ArgumentError, DTypeError
from ..ops.base import tensor_of
from ..source import refuse
from .registry import RULES, rule


def _flat(x):
    return ops.reshape(x, (math.prod(x.shape),))


def _with_gradient(value, backward, *sources):
    """`value` as a function of `sources`: backward(its cotangent, value, *sources) are the cotangents of the float ones."""
    def derivative(arguments, results, cotangents):
        return ops.zeros_like(arguments[0]), *backward(cotangents[0], *arguments)
    return custom_gradient(lambda value, *_: value, derivative)(ops.stop_gradient(value), *sources)


@rule("embedding.default")
def _(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    weight, indices = tensor_of(weight, "embedding"), tensor_of(indices, "embedding")
    rows = ops.take(weight, indices, 0, "refuse")
    at = ops.expand_dims(indices, indices.ndim)
    if padding_idx >= 0:  # that row gets no gradient
        rows = ops.where(ops.equal(at, padding_idx), ops.stop_gradient(rows), rows)
    if scale_grad_by_freq:
        times = ops.take(ops.segment_sum(ops.ones(indices.shape, rows.dtype), indices, weight.shape[0]), at, 0, "clip")
        rows = _with_gradient(rows, lambda g, _, rows, times: (g / times, ops.zeros_like(times)), rows, times)
    return rows


@rule("_embedding_bag.default", "_embedding_bag_forward_only.default")
def _(weight, indices, offsets, scale_grad=False, mode=0, sparse=False, weights=None, include_last=False, padding_idx=-1):
    """Sums, means (mode 1) or maxima (mode 2) of the rows of each bag; offsets are where bags begin, or their number if all have one length.

    The bag of an index is the number of bags that begin up to it. With include_last the last offset is the end.
    """
    weight, indices = [tensor_of(t, "embedding_bag") for t in (weight, indices)]
    rows = RULES["embedding.default"](weight, indices, -1, scale_grad)
    rows = rows if weights is None else rows * ops.expand_dims(tensor_of(weights, "embedding_bag"), 1)
    if isinstance(offsets, int):
        return _equal_bags(rows, indices, offsets, mode, padding_idx), None, None, None
    offsets = tensor_of(offsets, "embedding_bag")
    count = offsets.shape[0] - bool(include_last)
    begins = ops.put_at(ops.zeros(indices.shape, "int64"), [offsets], 1, mode="add", outside="drop")
    bag = ops.cumulative_sum(begins, 0) - 1
    if padding_idx >= 0:
        bag = ops.where(ops.equal(indices, padding_idx), -1, bag)
    if mode == 0:
        return ops.segment_sum(rows, bag, count), None, None, None
    held = ops.expand_dims(ops.segment_sum(ops.ones(bag.shape, "int64"), bag, count), 1)
    if mode == 1:
        total = ops.segment_sum(rows, bag, count) / ops.maximum(held, 1).astype(rows.dtype)
    else:
        total = ops.where(ops.greater(held, 0), ops.segment_max(rows, bag, count), 0)
    return total, None, None, None


def _equal_bags(rows, indices, count, mode, padding_idx):
    """The rows of each of `count` bags, which follow each other, without those of the padding index."""
    rows = ops.reshape(rows, (count, -1, rows.shape[1]))
    counts = ops.expand_dims(ops.not_equal(ops.reshape(indices, rows.shape[:2]), padding_idx), 2) if padding_idx >= 0 else None
    if mode < 2:
        total = ops.sum(rows if counts is None else ops.where(counts, rows, 0), 1)
        if mode == 0:
            return total
        held = rows.shape[1] if counts is None else ops.maximum(ops.sum(counts.astype("int64"), 1), 1).astype(rows.dtype)
        return total / held
    if counts is None:
        return ops.max(rows, 1)
    return ops.where(ops.any(counts, 1), ops.max(ops.where(counts, rows, -math.inf), 1), 0)


@rule("index_select.default")
def _(x, axis, indices):
    if x.ndim == 0:
        return x
    return ops.take(x, ops.reshape(indices, (-1,)), axis, "refuse")


@rule("gather.default")
def _(x, axis, indices, sparse_grad=False):
    x = tensor_of(x, "gather")
    if x.ndim == 0:
        return ops.reshape(ops.take(ops.reshape(x, (1,)), indices, 0, "refuse"), indices.shape)
    if indices.ndim == 0:
        return ops.reshape(ops.take(x, ops.reshape(indices, (1,)), 0, "refuse"), ())
    return ops.take_along_axis(_part(x, indices.shape, axis), indices, axis, "refuse")


def _part(x, shape, axis=None):
    """The leading part of x of a shape, with all of `axis` if given."""
    return x[tuple(slice(None) if axis is not None and d == axis % x.ndim else slice(0, n) for d, n in enumerate(shape))]


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


@rule("take.default")
def _(x, indices):
    return ops.take(_flat(x), indices, 0, "poison")


@rule("put.default")
def _(x, indices, values, accumulate=False):
    values = ops.reshape(values, indices.shape).astype(x.dtype)
    return ops.reshape(ops.put_at(_flat(x), [indices], values, 0, "add" if accumulate else "set", "poison"), x.shape)


@rule("masked_scatter.default")
def _(x, mask, source):
    """The elements of source in order, where mask is true."""
    shape = ops.base.broadcast_shapes("masked_scatter", [x.shape, mask.shape])
    x, mask = ops.broadcast_to(x, shape), ops.broadcast_to(mask, shape)
    if not x.size or not source.size:
        return x
    chosen = _flat(mask)
    number = ops.where(chosen, ops.cumulative_sum(chosen.astype("int64"), 0) - 1, 0)
    return ops.where(mask, ops.reshape(ops.take(_flat(source), number, 0, "refuse"), shape).astype(x.dtype), x)


@rule("nonzero_static.default")
def _(x, size, fill_value=-1):
    """The indices, (size, axes), of the first elements that are not 0; after the last of them fill_value."""
    if x.ndim == 0:
        return ops.zeros((size, 0), "int64")
    chosen = ops.not_equal(_flat(x), 0)
    place = ops.where(chosen, ops.cumulative_sum(chosen.astype("int64"), 0) - 1, -1)
    number = ops.put_at(ops.full((size,), -1, "int64"), [place], ops.arange(x.size), 0, "max", "drop")
    columns, stride = [], 1
    for n in reversed(x.shape):
        columns.insert(0, ops.where(ops.less(number, 0), fill_value, number // stride % n))
        stride *= n
    return ops.stack(columns, 1)


class _Places:
    """The elements of a tensor of `shape` that a scatter along `axis` writes.

    PyTorch treats scalars as tensors of one axis. Indices may have fewer lines than the tensor: they reach a part of it.
    """

    def __init__(self, shape, axis, indices):
        self.shape, self.axis = shape or (1,), axis % max(1, len(shape))
        self.indices = ops.reshape(indices, indices.shape or (1,))

    def of(self, indices):
        """The same of equal indices."""
        return type(self)(self.shape, self.axis, indices)

    def write(self, x, values, mode):
        """x combined with `values`, shaped as the indices or a number, at these places."""
        if not self.indices.size:
            return x
        whole, values = ops.reshape(x, self.shape), tensor_of(values, "scatter").astype(x.dtype)
        part = _part(whole, self.indices.shape, self.axis)
        written = ops.put_along_axis(part, self.indices, values, self.axis, mode, "refuse")
        return ops.reshape(written if part.shape == whole.shape else ops.dynamic_update_slice(whole, written, [0] * whole.ndim), x.shape)

    def read(self, x):
        """The elements of x at these places."""
        return ops.take_along_axis(_part(ops.reshape(x, self.shape), self.indices.shape, self.axis), self.indices, self.axis, "clip")


class _Lines:
    """As _Places, of whole lines at indices along an axis."""

    def __init__(self, shape, axis, indices):
        self.shape, self.axis, self.indices = shape or (1,), axis % max(1, len(shape)), ops.reshape(indices, (-1,))
        self.lines = (*self.shape[:self.axis], *self.indices.shape, *self.shape[self.axis + 1:])

    def of(self, indices):
        return type(self)(self.shape, self.axis, indices)

    def write(self, x, values, mode):
        values = tensor_of(values, "index_reduce").astype(x.dtype)
        return ops.reshape(ops.put_at(ops.reshape(x, self.shape), [self.indices], values, self.axis, mode, "refuse"), x.shape)

    def read(self, x):
        return ops.take(ops.reshape(x, self.shape), self.indices, self.axis, "clip")


def _scattered(x, axis, indices, values, mode):
    x, values = tensor_of(x, "scatter"), tensor_of(values, "scatter")
    return _Places(x.shape, axis, indices).write(x, _part(values, indices.shape) if values.ndim else values, mode)


@rule("scatter.src", "scatter.value")
def _(x, axis, indices, values):
    return _scattered(x, axis, indices, values, "set")


@rule("scatter_add.default")
def _(x, axis, indices, values):
    return _scattered(x, axis, indices, values, "add")


@rule("scatter.reduce", "scatter.value_reduce")
def _(x, axis, indices, values, reduce):
    return _scattered(x, axis, indices, values, {"add": "add", "multiply": "mul"}[reduce])


def _shared(g, y, start, values, places):
    """The cotangents of an extreme `y` of elements and of values: those that equal it get equal parts."""
    own, theirs = ops.equal(start, y), ops.equal(values, places.read(y))
    each = g / places.write(own.astype(g.dtype), theirs.astype(g.dtype), "add")
    return ops.where(own, each, 0), ops.where(theirs, places.read(each), 0)


_MODES = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"}


def _reduced(x, values, kind, include_self, places):
    """x with its elements at `places` reduced with the values that arrive there; without themselves unless include_self."""
    mode, count = _MODES[kind], None
    if kind == "mean" or not include_self:
        count = places.write(ops.zeros(x.shape, "int64"), 1, "add")
    start = x if include_self else ops.where(ops.greater(count, 0), ops.indexing.identity(mode, x.dtype.element), x)
    if kind in ("amax", "amin") and x.dtype.kind == "float":
        reduced = places.write(ops.stop_gradient(start), ops.stop_gradient(values), mode)
        return _with_gradient(reduced, lambda g, y, start, values, indices: _shared(g, y, start, values, places.of(indices)), start, values,
                              places.indices)
    reduced = places.write(start, values, mode)
    if kind != "mean":
        return reduced
    count = ops.maximum(count + 1 if include_self else count, 1).astype(x.dtype)
    return reduced / count if x.dtype.kind == "float" else ops.floor_divide(reduced, count)


@rule("scatter_reduce.two")
def _(x, axis, indices, values, reduce, include_self=True):
    x, values = tensor_of(x, "scatter_reduce"), tensor_of(values, "scatter_reduce")
    if not indices.size:
        return x
    places = _Places(x.shape, axis, indices)
    return _reduced(x, ops.reshape(_part(values, indices.shape), places.indices.shape), reduce, include_self, places)


@rule("index_reduce.default")
def _(x, axis, indices, values, reduce, include_self=True):
    x, values = tensor_of(x, "index_reduce"), tensor_of(values, "index_reduce")
    if not indices.size:
        return x
    places = _Lines(x.shape, axis, indices)
    return _reduced(x, ops.reshape(values, places.lines), reduce, include_self, places)


@rule("segment_reduce.default")
def _(x, reduce, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    """Reductions of consecutive rows: of so many each, or from each offset to the next."""
    given = lengths if lengths is not None else offsets
    if axis != 0 or given.ndim != 1:
        raise refuse(ArgumentError, f"'segment_reduce' along axis {axis} with lengths of shape {given.shape} is not supported; reduce along axis 0")
    ends = ops.cumulative_sum(lengths, 0) if lengths is not None else offsets[1:]
    count, segments = ends.shape[0], ops.searchsorted(ends, ops.arange(x.shape[0]), "right")
    kind = {"mean": "sum"}.get(reduce, reduce)
    result = getattr(ops, f"segment_{kind}")(x, segments, count)
    if initial is not None:
        result = {"sum": ops.add, "prod": ops.multiply, "max": ops.maximum, "min": ops.minimum}[kind](result, initial)
    if reduce != "mean":
        return result
    held = ops.segment_sum(ops.ones(segments.shape, x.dtype), segments, count)
    return result / ops.reshape(held, (count, *[1] * (x.ndim - 1)))


@rule("searchsorted.Tensor", "searchsorted.Scalar")
def _(boundaries, values, out_int32=False, right=False, side=None, sorter=None):
    boundaries = boundaries if sorter is None else ops.take_along_axis(boundaries, sorter, -1, "refuse")
    return ops.searchsorted(boundaries, values, side or ("right" if right else "left"))


@rule("bucketize.Tensor", "bucketize.Scalar")
def _(values, boundaries, out_int32=False, right=False):
    return ops.searchsorted(boundaries, values, "right" if right else "left")
