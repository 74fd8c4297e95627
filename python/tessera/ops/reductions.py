# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that combine elements along axes."""

from __future__ import annotations

import math

from .. import dtypes
from ..errors import ArgumentError, ShapeError
from ..ir import AffineMap, TensorType, constants
from ..source import refuse
from .base import axes_of, axis_of, cast, need, op, operand, tensor_of
from .distributed import stop_gradient
from .elementwise import add, divide, exp, extremum, log, sqrt, square, subtract


def wide(element: str) -> str:
    """What sums of an element type are kept in."""
    return "f32" if element in ("f16", "bf16") else element


def _keep(trace, value, shape, axes, keepdims):
    return trace.builder.reshape(value, [1 if d in axes else n for d, n in enumerate(shape)]) if keepdims else value


def fold(trace, name, x, axis, keepdims, what, identity, to=None, prepare=None):
    """A reduction by arith ops (floats, integers), kept in `to` and rounded once."""
    b, axes = trace.builder, axes_of(name, axis, x.ndim)
    value = operand(trace, x)
    element = value.type.element
    to = to or wide(element)
    combine = what if callable(what) else (lambda acc, x: b.apply(what[0] if to[0] in "fb" else what[1], acc, x))
    ready = (lambda x: x) if to == element else (lambda x: b.cast("arith.extf", x, to))
    result = b.reduce(value, axes, combine, identity, to, (lambda x: prepare(ready(x))) if prepare else ready)
    return trace.tensor(_keep(trace, cast(trace, result, element), x.shape, axes, keepdims))


def _countable(x, name):
    """bool and narrow integers are counted in 64 bits."""
    x = tensor_of(x, name)
    if x.dtype.kind == "float" or x.dtype.itemsize == 8:
        return x
    return x.astype("uint64" if x.dtype.element.startswith("u") else "int64")


@op
def sum(trace, x, axis=None, keepdims=False):
    """Sums over `axis` (a number, several, None: all). Sums of 16-bit floats are kept in float32."""
    return fold(trace, "sum", _countable(x, "sum"), axis, keepdims, ("arith.addf", "arith.addi"), 0)


@op
def prod(trace, x, axis=None, keepdims=False):
    """Products over `axis`."""
    return fold(trace, "prod", _countable(x, "prod"), axis, keepdims, ("arith.mulf", "arith.muli"), 1)


@op
def mean(trace, x, axis=None, keepdims=False):
    """Means over `axis`; of integers as float32."""
    x = tensor_of(x, "mean")
    x = x if x.dtype.kind == "float" else x.astype("float32")
    count = math.prod(x.shape[d] for d in axes_of("mean", axis, x.ndim))
    if count == 0:
        raise refuse(ShapeError, f"'mean' over no elements: the shape is {x.shape}")
    narrow = x.dtype
    if narrow.itemsize == 2:  # the division, too, in float32
        return divide(sum(x.astype("float32"), axis, keepdims), count).astype(narrow)
    return divide(sum(x, axis, keepdims), count)


def _extreme(trace, name, x, axis, keepdims, largest):
    x = tensor_of(x, name)
    axes = axes_of(name, axis, x.ndim)
    if 0 in [x.shape[d] for d in axes]:
        raise refuse(ShapeError, f"'{name}' over no elements: the shape is {x.shape}")
    identity = (constants.least if largest else constants.greatest)(x.dtype.element)
    return fold(trace, name, x, axis, keepdims, extremum(trace.builder, largest), identity, x.dtype.element)


@op
def max(trace, x, axis=None, keepdims=False):
    """The greatest elements over `axis`; NaN wins."""
    return _extreme(trace, "max", x, axis, keepdims, True)


@op
def min(trace, x, axis=None, keepdims=False):
    """The least elements over `axis`; NaN wins."""
    return _extreme(trace, "min", x, axis, keepdims, False)


@op
def any(trace, x, axis=None, keepdims=False):
    """Whether an element over `axis` is not 0."""
    return fold(trace, "any", tensor_of(x, "any").astype("bool"), axis, keepdims, extremum(trace.builder, True), 0, "i1")


@op
def all(trace, x, axis=None, keepdims=False):
    """Whether no element over `axis` is 0."""
    return fold(trace, "all", tensor_of(x, "all").astype("bool"), axis, keepdims, extremum(trace.builder, False), 1, "i1")


@op
def var(trace, x, axis=None, correction=0, keepdims=False):
    """Variances over `axis`: the sum of squared distances from the mean, over the count less `correction`."""
    x = tensor_of(x, "var")
    if isinstance(correction, bool) or not isinstance(correction, (int, float)):
        raise refuse(ArgumentError, f"correction {correction!r} of 'var' is no number")
    x = x if x.dtype.kind == "float" else x.astype("float32")
    count = math.prod(x.shape[d] for d in axes_of("var", axis, x.ndim))
    if count <= correction:
        raise refuse(ShapeError, f"'var' of {count} elements with correction {correction}; the shape is {x.shape}")
    distance = subtract(x, mean(x, axis, True))
    return divide(sum(square(distance), axis, keepdims), count - correction)


@op
def std(trace, x, axis=None, correction=0, keepdims=False):
    """Square roots of var."""
    return sqrt(var(x, axis, correction, keepdims))


def _arg(trace, name, x, axis, keepdims, largest):
    """First the extreme value, then the least index that has it: both can be cut along the axis. NaN is extreme."""
    b, x = trace.builder, tensor_of(x, name)
    if axis is None:
        x, axis = x.reshape((x.size,)), 0
    dim = axis_of(name, axis, x.ndim)
    if x.shape[dim] == 0:
        raise refuse(ShapeError, f"'{name}' over no elements: the shape is {x.shape}")
    best = operand(trace, _extreme(trace, name, x, dim, False, largest))
    value, rank, last = operand(trace, x), x.ndim, x.shape[dim] - 1
    kept = tuple(d for d in range(rank) if d != dim)

    def body(x, best, acc):
        floats = x.type[0] in "fb"
        same = b.compare("oeq" if floats else "eq", x, best)
        same = b.apply("arith.ori", same, b.compare("une", x, x)) if floats else same
        here = b.cast("arith.index_cast", b.index(dim), "i64")
        return b.apply("arith.minsi", acc, b.select(same, here, b.constant(last, "i64")))
    init = b.constant(last, TensorType(tuple(x.shape[d] for d in kept), "i64"))
    result, = b.generic([(value, AffineMap.identity(rank)), (best, AffineMap(rank, kept))], [(init, AffineMap(rank, kept))],
                        ["reduction" if d == dim else "parallel" for d in range(rank)], body)
    return trace.tensor(_keep(trace, result, x.shape, [dim], keepdims))


@op
def argmax(trace, x, axis=None, keepdims=False):
    """The first index (int64) of the greatest element along `axis`; None: of the flattened tensor."""
    return _arg(trace, "argmax", x, axis, keepdims, True)


@op
def argmin(trace, x, axis=None, keepdims=False):
    """The first index (int64) of the least element along `axis`; None: of the flattened tensor."""
    return _arg(trace, "argmin", x, axis, keepdims, False)


def _cumulative(trace, name, x, axis, what, identity):
    """A reduction over what lies at each place or before, along `axis`; what lies beyond is left out."""
    b, x = trace.builder, _countable(x, name)
    dim, rank = axis_of(name, axis, x.ndim), x.ndim
    value = operand(trace, x)
    element, to = x.dtype.element, wide(x.dtype.element)

    def body(x, acc):
        x = x if x.type == to else b.cast("arith.extf", x, to)
        x = b.select(b.compare("sle", b.index(rank), b.index(dim)), x, b.constant(identity, to))
        return b.apply(what + ("f" if to[0] in "fb" else "i"), acc, x)
    read = AffineMap(rank + 1, tuple(rank if d == dim else d for d in range(rank)))
    write = AffineMap(rank + 1, tuple(range(rank)))
    result, = b.generic([(value, read)], [(b.constant(identity, TensorType(x.shape, to)), write)], ["parallel"] * rank + ["reduction"], body)
    return trace.tensor(cast(trace, result, element))


@op
def cumulative_sum(trace, x, axis=0):
    """Sums of the elements up to each place along `axis`."""
    return _cumulative(trace, "cumulative_sum", x, axis, "arith.add", 0)


@op
def cumulative_prod(trace, x, axis=0):
    """Products of the elements up to each place along `axis`."""
    return _cumulative(trace, "cumulative_prod", x, axis, "arith.mul", 1)


def _exponents(x, axis, name):
    """exp(x - max) and the maximum, through which nothing is differentiated."""
    need(name, x, "float")
    greatest = stop_gradient(max(x, axis, True))
    return exp(subtract(x, greatest)), greatest


@op
def softmax(trace, x, axis=-1):
    """exp(x) over its sum along `axis`; 16-bit floats are computed in float32."""
    x = tensor_of(x, "softmax")
    if x.dtype.kind == "float" and x.dtype.itemsize == 2:
        return softmax(x.astype("float32"), axis).astype(x.dtype)
    powers, _ = _exponents(x, axis, "softmax")
    return divide(powers, sum(powers, axis, True))


@op
def logsumexp(trace, x, axis=-1, keepdims=False):
    """The logarithm of the sum of exp(x) along `axis`."""
    x = tensor_of(x, "logsumexp")
    powers, greatest = _exponents(x, axis, "logsumexp")
    result = add(log(sum(powers, axis, True)), greatest)
    return result if keepdims else result.reshape([n for d, n in enumerate(x.shape) if d not in axes_of("logsumexp", axis, x.ndim)])


@op
def log_softmax(trace, x, axis=-1):
    """log(softmax(x)), without overflow."""
    x = tensor_of(x, "log_softmax")
    if x.dtype.kind == "float" and x.dtype.itemsize == 2:
        return log_softmax(x.astype("float32"), axis).astype(x.dtype)
    powers, greatest = _exponents(x, axis, "log_softmax")
    return subtract(subtract(x, greatest), log(sum(powers, axis, True)))
