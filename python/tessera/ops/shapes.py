# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that move elements: reshape, transpose, broadcast, concat, split, pad and relatives."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir import AffineMap, TensorType
from ..source import refuse
from ..trace import check_meshes
from .base import axes_of, axis_of, broadcast_shapes, common_type, listed, op, operand, tensor_of, whole


def _extents(name, shape) -> tuple[int, ...]:
    if not isinstance(shape, (int, np.integer)) and not hasattr(shape, "__iter__"):
        raise refuse(ShapeError, f"extents {shape!r} of '{name}' are not an integer or a list of integers")
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    for n in shape:
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
            raise refuse(ShapeError, f"extent {n!r} of '{name}' is not an integer")
    return tuple(map(int, shape))


@op
def reshape(trace, x, shape):
    """The same elements in row-major order; one extent may be -1. Raises ShapeError if the number of elements differs.
    """
    x, wanted = tensor_of(x, "reshape"), _extents("reshape", shape)
    known = math.prod(n for n in wanted if n != -1)
    if any(n < -1 for n in wanted) or wanted.count(-1) > 1:
        raise refuse(ShapeError, f"'reshape' to {wanted}: extents are non-negative, one may be -1")
    if -1 in wanted and (known == 0 or x.size % known) or -1 not in wanted and known != x.size:
        raise refuse(ShapeError, f"'reshape' of {x.shape} ({x.size} elements) to {wanted}: the number of elements must not change")
    wanted = tuple(x.size // known if n == -1 else n for n in wanted)
    return trace.tensor(trace.builder.reshape(operand(trace, x), wanted), weak=x._weak)


def flatten(x, start_axis: int = 0):
    """Joins the axes from `start_axis` on into one."""
    x = tensor_of(x, "flatten")
    start = axis_of("flatten", start_axis, x.ndim)
    return reshape(x, (*x.shape[:start], math.prod(x.shape[start:])))


@op
def permute_dims(trace, x, axes):
    """Axis i of the result is axis axes[i] of x."""
    x = tensor_of(x, "permute_dims")
    order = [axis_of("permute_dims", a, x.ndim) for a in listed("permute_dims", "axes", axes, ShapeError)]
    if sorted(order) != list(range(x.ndim)):
        raise refuse(ShapeError, f"axes {tuple(axes)} of 'permute_dims' are not a permutation of the {x.ndim} axes of {x.shape}")
    return trace.tensor(trace.builder.transpose(operand(trace, x), order))


def matrix_transpose(x):
    """Swaps the last two axes."""
    x = tensor_of(x, "matrix_transpose")
    if x.ndim < 2:
        raise refuse(ShapeError, f"'matrix_transpose' of shape {x.shape}: it takes at least two axes")
    return permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def swapaxes(x, axis1, axis2):
    """Swaps two axes."""
    x = tensor_of(x, "swapaxes")
    a, c = axis_of("swapaxes", axis1, x.ndim), axis_of("swapaxes", axis2, x.ndim)
    order = list(range(x.ndim))
    order[a], order[c] = c, a
    return permute_dims(x, order)


def moveaxis(x, source, destination):
    """Moves axis `source` to position `destination`."""
    x = tensor_of(x, "moveaxis")
    order = list(range(x.ndim))
    order.insert(axis_of("moveaxis", destination, x.ndim), order.pop(axis_of("moveaxis", source, x.ndim)))
    return permute_dims(x, order)


def expand_dims(x, axis=0):
    """Inserts an axis of extent 1 at position `axis`."""
    x = tensor_of(x, "expand_dims")
    at = axis_of("expand_dims", axis, x.ndim + 1)
    return reshape(x, (*x.shape[:at], 1, *x.shape[at:]))


def squeeze(x, axis=None):
    """Removes axes of extent 1: all, or those in `axis`. Raises ShapeError for other extents."""
    x = tensor_of(x, "squeeze")
    axes = [d for d, n in enumerate(x.shape) if n == 1] if axis is None else axes_of("squeeze", axis, x.ndim)
    for d in axes:
        if x.shape[d] != 1:
            raise refuse(ShapeError, f"'squeeze' of axis {d} of shape {x.shape}: its extent is {x.shape[d]}, not 1")
    return reshape(x, [n for d, n in enumerate(x.shape) if d not in axes])


@op
def broadcast_to(trace, x, shape):
    """x repeated along axes of extent 1 and along new leading axes. Raises ShapeError if the shapes do not broadcast.
    """
    x, wanted = tensor_of(x, "broadcast_to"), _extents("broadcast_to", shape)
    if broadcast_shapes("broadcast_to", [x.shape, wanted]) != wanted:
        raise refuse(ShapeError, f"'broadcast_to' of {x.shape} to {wanted}: only extents of 1 are repeated")
    return trace.tensor(trace.builder.broadcast(operand(trace, x), wanted, range(len(wanted) - x.ndim, len(wanted))))


def _listed(name, tensors) -> list:
    if not isinstance(tensors, (list, tuple)):
        raise refuse(ShapeError, f"'{name}' takes a list of tensors, not {type(tensors).__name__}")
    return [tensor_of(x, name) for x in tensors]


def _together(name, tensors, axis):
    if not tensors:
        raise refuse(ShapeError, f"'{name}' of no tensors")
    check_meshes(name, tensors)
    for i, x in enumerate(tensors):
        if x.ndim != tensors[0].ndim or any(n != m for d, (n, m) in enumerate(zip(x.shape, tensors[0].shape)) if d != axis):
            raise refuse(ShapeError, f"shapes {tensors[0].shape} and {x.shape} (operands 0 and {i}) of '{name}' must "
                                     f"be equal except along axis {axis}")
    return tensors, common_type(name, tensors).element


@op
def concat(trace, tensors, axis=0):
    """Concatenates tensors along `axis`. Raises ShapeError if other extents differ."""
    tensors = _listed("concat", tensors)
    dim = axis_of("concat", axis, tensors[0].ndim) if tensors else 0
    tensors, element = _together("concat", tensors, dim)
    return trace.tensor(trace.builder.concat([operand(trace, x, element) for x in tensors], dim))


@op
def stack(trace, tensors, axis=0):
    """Stacks tensors of equal shape along a new axis."""
    tensors, element = _together("stack", _listed("stack", tensors), None)
    dim = axis_of("stack", axis, tensors[0].ndim + 1)
    b, shape = trace.builder, tensors[0].shape
    return trace.tensor(b.concat([b.reshape(operand(trace, x, element), (*shape[:dim], 1, *shape[dim:])) for x in tensors], dim))


def split(x, parts: int | Sequence[int], axis=0):
    """Splits x along `axis` into `parts` equal parts, or into parts of the given extents; returns a list."""
    x = tensor_of(x, "split")
    dim = axis_of("split", axis, x.ndim)
    n = x.shape[dim]
    if isinstance(parts, int):
        if parts < 1 or n % parts:
            raise refuse(ShapeError, f"'split' of axis {dim}, extent {n}, into {parts} parts: parts must be equal; give their extents")
        parts = [n // parts] * parts
    if sum(parts) != n or any(p < 0 for p in parts):
        raise refuse(ShapeError, f"'split' of axis {dim}, extent {n}, into {list(parts)}: the extents add up to {sum(parts)}")
    starts = [sum(parts[:i]) for i in range(len(parts))]
    return [x[(slice(None),) * dim + (slice(s, s + p),)] for s, p in zip(starts, parts)]


@op
def tile(trace, x, repetitions):
    """Repeats x `repetitions` times along each axis."""
    x, b = tensor_of(x, "tile"), trace.builder
    repetitions = _extents("tile", repetitions)
    if any(n < 0 for n in repetitions):
        raise refuse(ShapeError, f"repetitions {repetitions} of 'tile' must be non-negative")
    rank = max(x.ndim, len(repetitions))
    shape, repetitions = (1,) * (rank - x.ndim) + x.shape, (1,) * (rank - len(repetitions)) + repetitions
    value = b.reshape(operand(trace, x), shape)
    wide = [n for pair in zip(repetitions, shape) for n in pair]
    return trace.tensor(b.reshape(b.broadcast(value, wide, range(1, 2 * rank, 2)), [r * n for r, n in zip(repetitions, shape)]))


def roll(x, shift, axis=None):
    """Rotates elements along axes: out[i] = x[(i - shift) % extent]. axis None: of the flattened tensor."""
    x = tensor_of(x, "roll")
    if axis is None:
        return reshape(roll(flatten(x), shift, 0), x.shape)
    shifts = [shift] if isinstance(shift, int) else list(shift)
    axes = [axis] if isinstance(axis, int) else list(axis)
    if len(shifts) != len(axes):
        raise refuse(ShapeError, f"shifts {shift} of 'roll' for axes {axis}: give one per axis")
    for by, a in zip(shifts, axes):
        d = axis_of("roll", a, x.ndim)
        n = x.shape[d]
        if n and by % n:
            x = concat(split(x, [n - by % n, by % n], d)[::-1], d)
    return x


@op
def repeat(trace, x, repeats, axis=None):
    """Repeats each element `repeats` times along `axis`; None: of the flattened tensor."""
    x, b = tensor_of(x, "repeat"), trace.builder
    if axis is None:
        x, axis = flatten(x), 0
    d = axis_of("repeat", axis, x.ndim)
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 0:
        raise refuse(ShapeError, f"repeats {repeats!r} of 'repeat' is not a non-negative integer")
    shape = (*x.shape[:d + 1], repeats, *x.shape[d + 1:])
    value = b.broadcast(operand(trace, x), shape, [i for i in range(len(shape)) if i != d + 1])
    return trace.tensor(b.reshape(value, (*x.shape[:d], x.shape[d] * repeats, *x.shape[d + 1:])))


@op
def diagonal(trace, x, offset=0, axis1=0, axis2=1):
    """The elements x[.., i, .., i + offset, ..] of axes axis1 and axis2, along a new last axis."""
    x, b = tensor_of(x, "diagonal"), trace.builder
    first, second = axis_of("diagonal", axis1, x.ndim), axis_of("diagonal", axis2, x.ndim)
    if first == second:
        raise refuse(ShapeError, f"axes {axis1} and {axis2} of 'diagonal' are the same")
    offset = whole("diagonal", "offset", offset)
    row, column = max(0, -offset), max(0, offset)
    count = max(0, min(x.shape[first] - row, x.shape[second] - column))
    begin, sizes = [0] * x.ndim, list(x.shape)
    begin[first], begin[second], sizes[first], sizes[second] = row, column, count, count
    others = [n for d, n in enumerate(sizes) if d not in (first, second)]
    type = TensorType((*others, count), x.dtype.element)
    if not type.size:
        return trace.tensor(b.constant(0, type))
    free = iter(range(len(others)))
    read = tuple(len(others) if d in (first, second) else next(free) for d in range(x.ndim))
    result, = b.generic([(b.slice(operand(trace, x), begin, sizes), AffineMap(len(others) + 1, read))],
                        [(b.empty(type), AffineMap.identity(len(others) + 1))], ["parallel"] * (len(others) + 1), lambda e, _: e)
    return trace.tensor(result)


@op
def flip(trace, x, axis=None):
    """Reverses the order of elements along `axis`; None: along all axes."""
    x, b = tensor_of(x, "flip"), trace.builder
    axes, value = axes_of("flip", axis, x.ndim), operand(trace, x)
    places = tuple(f"-d{d} + {n - 1}" if d in axes and n > 1 else d for d, n in enumerate(x.shape))
    result, = b.generic([(value, AffineMap(x.ndim, places))], [(b.empty(value.type), AffineMap.identity(x.ndim))],
                        ["parallel"] * x.ndim, lambda element, _: element)
    return trace.tensor(result)


@op
def pad(trace, x, widths, value=0):
    """Pads each axis by (before, after) elements equal to the number `value`. widths: one pair per axis."""
    x = tensor_of(x, "pad")
    try:
        widths = [tuple(map(int, w)) for w in widths]
    except (TypeError, ValueError):
        raise refuse(ShapeError, f"'pad' of shape {x.shape} by {widths!r}: give a pair of non-negative numbers per axis") from None
    if len(widths) != x.ndim or any(len(w) != 2 or min(w) < 0 for w in widths):
        raise refuse(ShapeError, f"'pad' of shape {x.shape} by {widths}: give a pair of non-negative numbers per axis")
    return trace.tensor(trace.builder.pad(operand(trace, x), [w[0] for w in widths], [w[1] for w in widths], value))


def _triangle(trace, x, k, name, lower):
    x, b, k = tensor_of(x, name), trace.builder, whole(name, "k", k)
    if x.ndim < 2:
        raise refuse(ShapeError, f"'{name}' of shape {x.shape}: it takes at least two axes")
    value, rank = operand(trace, x), x.ndim
    if not x.size:
        return x

    def body(x, _):
        row, column = b.index(rank - 2), b.index(rank - 1)
        diagonal = b.apply("arith.addi", row, b.constant(k, "index")) if k else row
        return b.select(b.compare("sle" if lower else "sge", column, diagonal), x, b.constant(0, x.type))
    every = AffineMap.identity(rank)
    result, = b.generic([(value, every)], [(b.empty(value.type), every)], ["parallel"] * rank, body)
    return trace.tensor(result)


@op
def tril(trace, x, k=0):
    """The lower triangle of the last two axes, up to and including diagonal k; 0 elsewhere."""
    return _triangle(trace, x, k, "tril", True)


@op
def triu(trace, x, k=0):
    """The upper triangle of the last two axes, from diagonal k on; 0 elsewhere."""
    return _triangle(trace, x, k, "triu", False)


