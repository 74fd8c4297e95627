# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gather and scatter with computed indices, as sums over the indexed dimension:

    out[i, j] = sum over v of select(indices[i] == v, x[v, j], 0)

If v is sharded, each device looks up the elements that it holds and the results are added; the derivative swaps the
roles. Nothing is multiplied, so that infinities and NaN are preserved.

A scatter swaps the roles: each element is combined with the updates whose index it has, by `mode`:

    "set"         the last of several updates of an element wins
    "add", "mul"  in float32 for 16-bit floats
    "max", "min"  NaN wins; of equal ones the element, then the first update gets the whole derivative

All operations take `outside`, the treatment of indices out of range:

    "zero"    reads give 0, writes are dropped; -1 is the last element (NumPy)
    "drop"    as "zero", with negative indices out of range
    "clip"    the nearest index in range; 0 for negative ones
    "poison"  as in PyTorch, with -1 as the last element
    "refuse"  as in PyTorch, with negative indices out of range

PyTorch raises an error for indices out of range. So do the last two modes if the indices are known before the program
runs: constants, and arguments of the compiled function. Otherwise elements read are NaN (the least integer, True for
bool), and a write sets the whole result to that value.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from .. import dtypes
from ..errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from ..ir import AffineMap, Location, TensorType, constants
from ..ir.scalars import combine, convert, wide, widened
from ..ir.sorting import add
from ..ir.types import FLOATS, is_unsigned
from ..source import location, refuse, standing_name
from ..tensor import Tensor
from ..trace import check_meshes
from .base import axis_of, broadcast_shapes, cast, common_type, listed, op, operand, tensor_of, whole
from .creation import full
from .shapes import broadcast_to, reshape


def _indices(name, indices) -> Tensor:
    indices = tensor_of(indices, name)
    if indices.dtype.kind != "integer":
        raise refuse(DTypeError, f"indices of '{name}' are {indices.dtype}, not integers; convert with astype")
    return indices


def _signed(indices: Tensor) -> Tensor:
    """Indices in a signed type that holds every extent and -1."""
    return indices.astype("int64") if indices.dtype.element.startswith("u") or indices.dtype.itemsize < 4 else indices


OUTSIDE = ("zero", "drop", "clip", "poison", "refuse")
MODES = ("set", "add", "mul", "max", "min")
_CHECKED = ("poison", "refuse")  # PyTorch's errors
_WRAPS = ("zero", "poison")  # -1 is the last element


def _check(trace, name, indices, n, outside) -> None:
    """Raises OutOfRangeError for indices out of range of an axis of extent n, now or when the program is called."""
    if outside not in OUTSIDE:
        raise refuse(ArgumentError, f"outside '{outside}' of '{name}' is not one of {', '.join(OUTSIDE)}")
    if outside not in _CHECKED:
        return
    trace.checked(indices, IndexCheck(standing_name() or name, 0 if outside == "refuse" else -n, n, location()))


@dataclasses.dataclass(frozen=True)
class IndexCheck:
    """Checks that indices of operation `name` are in [low, high)."""

    name: str
    low: int
    high: int
    at: Location | None

    def __call__(self, indices: np.ndarray, here: bool = False) -> None:
        """Raises OutOfRangeError. `here`: report the current line, in place of that where the operation was recorded.
        """
        if indices.size:
            found = next((int(i) for i in (indices.min(), indices.max()) if not self.low <= i < self.high), None)
            if found is not None:
                name, at = (standing_name() or self.name, None) if here else (self.name, self.at)
                raise refuse(OutOfRangeError, f"index {found} of '{name}' is out of range: the axis has extent {self.high}, "
                                              f"indices are {self.low} to {self.high - 1}", at)


def _inside(b, indices, extents, outside):
    """Whether all indices (tensors of equal shape, before wrapping) are in range of their axes."""
    def body(*found):
        return _all(b, [b.apply("arith.andi", b.compare("sge", i, b.constant(-n if outside in _WRAPS else 0, i.type)),
                                b.compare("slt", i, b.constant(n, i.type))) for i, n in zip(found, extents)])
    return b.pointwise(indices, indices[0].type.shape, body)


def _poison(element):
    """The value of elements read out of range."""
    return math.nan if element in FLOATS else True if element == "i1" else 0 if is_unsigned(element) else constants.least(element)


def _poisoned(trace, result, indices, extents, outside):
    """`result` if all indices are in range, else a tensor filled with poison."""
    if outside not in _CHECKED:
        return result
    b, value = trace.builder, trace.value(result)
    inside = _inside(b, [operand(trace, i) for i in indices], extents, outside)
    dims = range(inside.type.rank)
    every = b.reduce(inside, dims, lambda x, y: b.apply("arith.andi", x, y), 1) if dims else inside
    return trace.tensor(b.pointwise([every, value], value.type.shape, lambda ok, x: b.select(ok, x, b.constant(_poison(x.type), x.type))))


def _numbers(trace, indices, n, outside):
    """The values of indices into an axis of extent n, none of them for an element that `outside` excludes."""
    b = trace.builder

    def wrap(i):
        return b.select(b.compare("slt", i, b.constant(0, i.type)), b.apply("arith.addi", i, b.constant(n, i.type)), i)

    def clip(i):
        return b.apply("arith.minsi", b.apply("arith.maxsi", i, b.constant(0, i.type)), b.constant(n - 1, i.type))
    if outside not in ("clip", *_WRAPS):
        return operand(trace, indices)
    return b.pointwise([operand(trace, indices)], indices.shape, clip if outside == "clip" else wrap)


def _is(b, index, loop):
    """Inside a body: whether an index equals the induction variable of a loop."""
    return b.compare("eq", index, b.cast("arith.index_cast", b.index(loop), index.type))


def _all(b, conditions):
    return functools.reduce(lambda a, c: b.apply("arith.andi", a, c), conditions)


def _lookup(trace, name, x, indices, places, index_places, loops, kept, looked_up=None, outside="zero"):
    """The gather as a loop nest.

    places, index_places: the loops of the dimensions of x and of the indices (one tensor, or several of equal shape);
    kept: those of the result; looked_up: the loops over the indexed axes, by default the last one.
    """
    b = trace.builder
    indices = indices if isinstance(indices, list) else [indices]
    looked_up = looked_up or [loops - 1]
    sizes = {place: extent for place, extent in zip((*places, *index_places), (*x.shape, *indices[0].shape))}
    for i, v in zip(indices, looked_up):
        _check(trace, name, i, sizes[v], outside)
    indices = [_signed(i) for i in indices]
    numbers = [_numbers(trace, i, sizes[v], outside) for i, v in zip(indices, looked_up)]

    def body(x, *rest):
        *found, acc = rest
        same = _all(b, [_is(b, i, v) for i, v in zip(found, looked_up)])
        return add(b, x.type, acc, b.select(same, x, b.constant(0, x.type)))
    shape, element = tuple(sizes[d] for d in kept), x.dtype.element
    init = b.constant(0, TensorType(shape, element))
    if outside in _CHECKED:  # an index out of range matches no element: start its sum from the poison
        inside = _inside(b, [operand(trace, i) for i in indices], [sizes[v] for v in looked_up], outside)
        start = b.pointwise([inside], inside.type.shape, lambda ok: b.select(ok, b.constant(0, element), b.constant(_poison(element), element)))
        init = b.broadcast(start, shape, [kept.index(d) for d in index_places])
    at = AffineMap(loops, tuple(index_places))
    result, = b.generic([(operand(trace, x), AffineMap(loops, tuple(places))), *[(n, at) for n in numbers]],
                        [(init, AffineMap(loops, tuple(kept)))], ["reduction" if d in looked_up else "parallel" for d in range(loops)], body)
    return trace.tensor(result)


@op
def take(trace, x, indices, axis=0, outside="zero"):
    """Slices of x at `indices` along `axis`: shape x.shape[:axis] + indices.shape + x.shape[axis + 1:].

    Negative indices count from the end. Indices out of range give 0 unless `outside` says otherwise.
    """
    x, indices = tensor_of(x, "take"), _indices("take", indices)
    check_meshes("take", [x, indices])
    dim = axis_of("take", axis, x.ndim)
    if not x.size or not indices.size:
        return trace.tensor(trace.builder.constant(0, TensorType((*x.shape[:dim], *indices.shape, *x.shape[dim + 1:]), x.dtype.element)))
    loops = x.ndim + indices.ndim
    index_places = list(range(dim, dim + indices.ndim))
    places = [*range(dim), loops - 1, *range(dim + indices.ndim, loops - 1)]
    return _lookup(trace, "take", x, indices, places, index_places, loops, list(range(loops - 1)), outside=outside)


@op
def take_at(trace, x, indices, axis=0, outside="zero"):
    """x indexed by several integer tensors, for the axes from `axis` on.

    out[.., s.., ..] = x[.., indices[0][s..], indices[1][s..], .., ..], where indices is a list of tensors, broadcast to
    one shape. Indices out of range give 0 unless `outside` says otherwise.
    """
    x, indices = tensor_of(x, "take_at"), [_indices("take_at", i) for i in listed("take_at", "indices", indices)]
    check_meshes("take_at", [x, *indices])
    dim, count = axis_of("take_at", axis, x.ndim), len(indices)
    if not 0 < count <= x.ndim - dim:
        raise refuse(ShapeError, f"'take_at' of shape {x.shape} with {count} indices from axis {dim} on; give 1 to {x.ndim - dim}")
    shape = broadcast_shapes("take_at", [i.shape for i in indices])
    indices = [i if i.shape == shape else broadcast_to(i, shape) for i in indices]
    rest = x.ndim - dim - count
    kept = dim + len(shape) + rest
    if not x.size or 0 in shape:
        return trace.tensor(trace.builder.constant(0, TensorType((*x.shape[:dim], *shape, *x.shape[dim + count:]), x.dtype.element)))
    places = [*range(dim), *range(kept, kept + count), *range(dim + len(shape), kept)]
    return _lookup(trace, "take_at", x, indices, places, list(range(dim, dim + len(shape))), kept + count, list(range(kept)),
                   list(range(kept, kept + count)), outside)


def _known_mode(name, mode):
    if mode not in MODES:
        raise refuse(ArgumentError, f"mode '{mode}' of '{name}' is not one of {', '.join(MODES)}")


def identity(mode, element):
    """The number that `mode` combines with any other to that."""
    return {"max": constants.least, "min": constants.greatest}[mode](element) if mode in ("max", "min") else int(mode == "mul")


def _scatter(trace, name, x, updates, numbers, loops, read, match, mode):
    """x combined with `updates` where `match` holds. The loops are those of x, then further ones of the updates.

    numbers: (tensor, map) read next to the updates (map `read`); match(elements of numbers) is i1. If several updates
    set one element the last one wins.
    """
    b, rank, element = trace.builder, x.ndim, common_type(name, [x, updates]).element
    x_value, value = operand(trace, x, element), operand(trace, updates, element)
    here, iterators = AffineMap(loops, tuple(range(rank))), ["parallel"] * rank + ["reduction"] * (loops - rank)
    inputs = [(n, at) for n, at in numbers]
    if mode != "set":
        to = wide(element) if mode in ("add", "mul") else element
        combined = (lambda x, y: add(b, to, x, y)) if mode == "add" else combine(b, mode, to)

        def body(u, *rest):
            *found, acc = rest
            return combined(acc, b.select(match(found), widened(b, u, to), b.constant(identity(mode, to), to)))
        result, = b.generic([(value, read), *inputs], [(cast(trace, x_value, to), here)], iterators, body)
        return trace.tensor(cast(trace, result, element))
    result, = b.generic([(value, read), *inputs], [(x_value, here)], iterators,
                        lambda u, *rest: b.select(match(rest[:-1]), u, rest[-1]))
    return trace.tensor(result)


@op
def put_at(trace, x, indices, updates, axis=0, mode="set", outside="zero"):
    """x with out[.., indices[0][s..], indices[1][s..], .., ..] = updates[.., s.., ..]: the inverse of take_at.

    mode: "set", or how updates are combined with the elements: "add", "mul", "max", "min". Indices out of range are
    dropped unless `outside` says otherwise.
    """
    _known_mode("put_at", mode)
    x, updates, indices = tensor_of(x, "put_at"), tensor_of(updates, "put_at"), [_indices("put_at", i) for i in listed("put_at", "indices", indices)]
    check_meshes("put_at", [x, updates, *indices])
    dim, count = axis_of("put_at", axis, x.ndim), len(indices)
    if not 0 < count <= x.ndim - dim:
        raise refuse(ShapeError, f"'put_at' of shape {x.shape} with {count} indices from axis {dim} on; give 1 to {x.ndim - dim}")
    shape = broadcast_shapes("put_at", [i.shape for i in indices])
    updates = broadcast_to(updates, (*x.shape[:dim], *shape, *x.shape[dim + count:]))
    if not updates.size or not x.size:
        return x
    extents = x.shape[dim:dim + count]
    for i, n in zip(indices, extents):
        _check(trace, "put_at", i, n, outside)
    indices = [broadcast_to(_signed(i), shape) for i in indices]
    numbers = [_numbers(trace, i, n, outside) for i, n in zip(indices, extents)]
    b, loops = trace.builder, x.ndim + len(shape)
    at = AffineMap(loops, tuple(range(x.ndim, loops)))
    read = AffineMap(loops, (*range(dim), *range(x.ndim, loops), *range(dim + count, x.ndim)))
    result = _scatter(trace, "put_at", x, updates, [(n, at) for n in numbers], loops, read,
                      lambda found: _all(b, [_is(b, i, dim + k) for k, i in enumerate(found)]), mode)
    return _poisoned(trace, result, indices, extents, outside)


@op
def put_along_axis(trace, x, indices, values, axis=-1, mode="set", outside="zero"):
    """x with out[.., indices[.., i, ..], ..] = values[.., i, ..] along `axis`: the inverse of take_along_axis.

    mode: that of put_at. values are broadcast to the shape of the indices.
    """
    _known_mode("put_along_axis", mode)
    x, values, indices = tensor_of(x, "put_along_axis"), tensor_of(values, "put_along_axis"), _indices("put_along_axis", indices)
    check_meshes("put_along_axis", [x, values, indices])
    dim = axis_of("put_along_axis", axis, x.ndim)
    if x.ndim != indices.ndim or any(n != m for d, (n, m) in enumerate(zip(x.shape, indices.shape)) if d != dim):
        raise refuse(ShapeError, f"shapes {x.shape} and {indices.shape} of 'put_along_axis' must be equal except along axis {dim}")
    values = broadcast_to(values, indices.shape)
    if not indices.size:
        return x
    b, loops = trace.builder, x.ndim + 1
    read = AffineMap(loops, tuple(x.ndim if d == dim else d for d in range(x.ndim)))
    _check(trace, "put_along_axis", indices, x.shape[dim], outside)
    indices = _signed(indices)
    result = _scatter(trace, "put_along_axis", x, values, [(_numbers(trace, indices, x.shape[dim], outside), read)], loops, read,
                      lambda found: _is(b, found[0], dim), mode)
    return _poisoned(trace, result, [indices], [x.shape[dim]], outside)


@op
def take_along_axis(trace, x, indices, axis=-1, outside="zero"):
    """out[.., i, ..] = x[.., indices[.., i, ..], ..] along `axis`; other axes are broadcast."""
    x, indices = tensor_of(x, "take_along_axis"), _indices("take_along_axis", indices)
    check_meshes("take_along_axis", [x, indices])
    dim = axis_of("take_along_axis", axis, x.ndim)
    if x.ndim != indices.ndim or any(n != m and 1 not in (n, m) for d, (n, m) in enumerate(zip(x.shape, indices.shape)) if d != dim):
        raise refuse(ShapeError, f"shapes {x.shape} and {indices.shape} of 'take_along_axis' do not broadcast except for axis {dim}")
    x = broadcast_to(x, [n if d == dim or m == 1 else m for d, (n, m) in enumerate(zip(x.shape, indices.shape))])
    shape = tuple(m if d == dim else n for d, (n, m) in enumerate(zip(x.shape, indices.shape)))
    if 0 in shape or not x.size:
        return trace.tensor(trace.builder.constant(0, TensorType(shape, x.dtype.element)))
    index_places = [d for d, n in enumerate(shape) if n == indices.shape[d]]  # the others have one index for all lines
    indices = indices if len(index_places) == x.ndim else reshape(indices, [shape[d] for d in index_places])
    places = [x.ndim if d == dim else d for d in range(x.ndim)]
    return _lookup(trace, "take_along_axis", x, indices, places, index_places, x.ndim + 1, list(range(x.ndim)), outside=outside)


@op
def one_hot(trace, indices, num_classes, dtype="float32"):
    """A new last axis of num_classes elements: 1 at the index, 0 elsewhere (everywhere, for an index out of range)."""
    b, indices = trace.builder, _signed(_indices("one_hot", indices))
    value, rank, element = operand(trace, indices), indices.ndim, dtypes.dtype(dtype).element
    classes = whole("one_hot", "num_classes", num_classes)
    if classes < 0:
        raise refuse(ShapeError, f"num_classes {classes} of 'one_hot' is negative")
    type = TensorType((*indices.shape, classes), element)
    if not type.size:
        return trace.tensor(b.constant(0, type))
    result, = b.generic([(value, AffineMap(rank + 1, tuple(range(rank))))], [(b.empty(type), AffineMap.identity(rank + 1))],
                        ["parallel"] * (rank + 1),
                        lambda i, _: convert(b, b.compare("eq", i, b.cast("arith.index_cast", b.index(rank), i.type)), "i1", element))
    return trace.tensor(result)




def apply_at(x, function, indices, axis=0, outside="zero"):
    """x with out[.., indices[0][s..], ..] = function of these elements, for the axes from `axis` on.

    function: of a tensor shaped as take_at's result; it may use the position in it. Elements that several indices name
    are replaced once. Indices out of range are dropped unless `outside` says otherwise.
    """
    x = tensor_of(x, "apply_at")
    return put_at(x, indices, function(take_at(x, indices, axis, outside)), axis, "set", outside)


def _segments(name, x, segments, count, mode):
    x, segments = tensor_of(x, name), _indices(name, segments)
    if not 0 < segments.ndim <= x.ndim or x.shape[:segments.ndim] != segments.shape:
        raise refuse(ShapeError, f"segments {segments.shape} of '{name}' are not the first axes of shape {x.shape}")
    count = whole(name, "num_segments", count)
    if count < 0:
        raise refuse(ShapeError, f"num_segments {count} of '{name}' is negative")
    start = full((count, *x.shape[segments.ndim:]), identity(mode, x.dtype.element), x.dtype)
    return put_at(start, [segments], x, 0, mode, "drop")


def segment_sum(x, segments, num_segments):
    """out[s, ..] = sum of the x[i.., ..] with segments[i..] == s: shape (num_segments, *x.shape[segments.ndim:]).

    segments: integers in any order; those outside of 0 to num_segments - 1 are dropped. 0 for empty segments.
    """
    return _segments("segment_sum", x, segments, num_segments, "add")


def segment_prod(x, segments, num_segments):
    """As segment_sum, with products; 1 for empty segments."""
    return _segments("segment_prod", x, segments, num_segments, "mul")


def segment_max(x, segments, num_segments):
    """As segment_sum, with maxima; -inf, or the least integer, for empty segments."""
    return _segments("segment_max", x, segments, num_segments, "max")


def segment_min(x, segments, num_segments):
    """As segment_sum, with minima; inf, or the greatest integer, for empty segments."""
    return _segments("segment_min", x, segments, num_segments, "min")


def _offsets(trace, name, x, starts, sizes):
    """Slice offsets, clamped such that the slice is inside of x: integers, or values of type index."""
    if isinstance(starts, Tensor) and starts.ndim == 1:
        starts = [starts[k] for k in range(starts.shape[0])]
    starts = listed(name, "starts", starts)
    if len(starts) != x.ndim or len(sizes) != x.ndim:
        raise refuse(ShapeError, f"{len(starts)} starts and {len(sizes)} sizes of '{name}' for shape {x.shape}: give one per axis")
    if any(not 0 <= size <= n for size, n in zip(sizes, x.shape)):
        raise refuse(ShapeError, f"a part of shape {tuple(sizes)} of '{name}' is not inside of shape {x.shape}")
    b, offsets = trace.builder, []
    for start, size, n in zip(starts, sizes, x.shape):
        if isinstance(start, (int, np.integer)) and not isinstance(start, bool):
            offsets.append(min(max(int(start), 0), n - size))
            continue
        start = _indices(name, start)
        if start.ndim:
            raise refuse(ShapeError, f"a start of '{name}' has shape {start.shape}; starts are integers")
        value = operand(trace, start, "i64")
        scalar = b.op("tensor.extract", [value], ["i64"]).result
        inside = b.apply("arith.minsi", b.apply("arith.maxsi", scalar, b.constant(0, "i64")), b.constant(n - size, "i64"))
        offsets.append(b.cast("arith.index_cast", inside, "index"))
    return offsets


@op
def dynamic_slice(trace, x, starts, sizes):
    """The part of x of shape `sizes` that begins at `starts`: a list with an integer, or a tensor of rank 0, per axis.

    Starts are clamped such that the part is inside of x.
    """
    x, sizes = tensor_of(x, "dynamic_slice"), [whole("dynamic_slice", "size", n) for n in listed("dynamic_slice", "sizes", sizes)]
    return trace.tensor(trace.builder.slice(operand(trace, x), _offsets(trace, "dynamic_slice", x, starts, sizes), sizes))


@op
def dynamic_update_slice(trace, x, part, starts):
    """x with `part`, of the same rank, in place of the elements from `starts` on: the inverse of dynamic_slice."""
    x, part = tensor_of(x, "dynamic_update_slice"), tensor_of(part, "dynamic_update_slice")
    check_meshes("dynamic_update_slice", [x, part])
    if part.ndim != x.ndim:
        raise refuse(ShapeError, f"a part of shape {part.shape} of 'dynamic_update_slice' for shape {x.shape}: their ranks must be equal")
    offsets = _offsets(trace, "dynamic_update_slice", x, starts, part.shape)
    if not part.size:
        return x
    element = common_type("dynamic_update_slice", [x, part]).element
    return trace.tensor(trace.builder.update(operand(trace, x, element), operand(trace, part, element), offsets))
