# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions over axes, prefix sums, softmax.

`axis` is an integer, a sequence of them, or None for all axes; keepdims keeps reduced axes with extent 1.
"""

from __future__ import annotations

import math

from ..errors import ArgumentError, ShapeError
from ..ir import TensorType, constants
from ..ir.reductions import accumulate, first_of
from ..ir.scalars import combine, compare, convert, is_infinite, is_nan, wide, widened
from ..ir.types import is_float
from ..source import refuse
from .base import axes_of, axis_of, cast, need, op, operand, tensor_of
from .distributed import stop_gradient
from .elementwise import add, divide, exp, log, sqrt, square, subtract
from .indexing import take_along_axis


def _keep(trace, value, shape, axes, keepdims):
    return trace.builder.reshape(value, [1 if d in axes else n for d, n in enumerate(shape)]) if keepdims else value


def fold(trace, name, x, axis, keepdims, what, identity, to=None):
    """A reduction by a scalar operation (tessera.ir.scalars), accumulated in `to` and rounded once."""
    b, axes = trace.builder, axes_of(name, axis, x.ndim)
    value = operand(trace, x)
    element = value.type.element
    to = to or wide(element)
    widen = None if to == value.type.element else lambda x: widened(b, x, to)
    result = b.reduce(value, axes, combine(b, what, to), identity, to, widen)
    return trace.tensor(_keep(trace, cast(trace, result, element), x.shape, axes, keepdims))


def _countable(x, name):
    """bool and integers below 64 bits converted to 64 bits."""
    x = tensor_of(x, name)
    if x.dtype.kind == "float" or x.dtype.itemsize == 8:
        return x
    return x.astype("uint64" if x.dtype.element.startswith("u") else "int64")


@op
def sum(trace, x, axis=None, keepdims=False):
    """Sum over `axis`. 16-bit floats are accumulated in float32; narrow integers and bool give 64-bit integers."""
    return fold(trace, "sum", _countable(x, "sum"), axis, keepdims, "add", 0)


@op
def prod(trace, x, axis=None, keepdims=False):
    """Product over `axis`, in the types of sum."""
    return fold(trace, "prod", _countable(x, "prod"), axis, keepdims, "mul", 1)


@op
def mean(trace, x, axis=None, keepdims=False):
    """Mean over `axis`; integers are converted to float32. Raises ShapeError if there are no elements."""
    x = tensor_of(x, "mean")
    x = x if x.dtype.kind == "float" else x.astype("float32")
    count = math.prod(x.shape[d] for d in axes_of("mean", axis, x.ndim))
    if count == 0:
        raise refuse(ShapeError, f"'mean' of shape {x.shape} has no elements to reduce")
    narrow = x.dtype
    if narrow.itemsize == 2:  # divide in float32 too
        return divide(sum(x.astype("float32"), axis, keepdims), count).astype(narrow)
    return divide(sum(x, axis, keepdims), count)


def _extreme(trace, name, x, axis, keepdims, largest):
    x = tensor_of(x, name)
    axes = axes_of(name, axis, x.ndim)
    if 0 in [x.shape[d] for d in axes]:
        raise refuse(ShapeError, f"'{name}' of shape {x.shape} has no elements to reduce")
    identity = (constants.least if largest else constants.greatest)(x.dtype.element)
    return fold(trace, name, x, axis, keepdims, "max" if largest else "min", identity, x.dtype.element)


@op
def max(trace, x, axis=None, keepdims=False):
    """Maximum over `axis`; propagates NaN. Raises ShapeError if there are no elements."""
    return _extreme(trace, "max", x, axis, keepdims, True)


@op
def min(trace, x, axis=None, keepdims=False):
    """Minimum over `axis`; propagates NaN. Raises ShapeError if there are no elements."""
    return _extreme(trace, "min", x, axis, keepdims, False)


@op
def any(trace, x, axis=None, keepdims=False):
    """Whether any element over `axis` is not 0."""
    return fold(trace, "any", tensor_of(x, "any").astype("bool"), axis, keepdims, "max", 0, "i1")


@op
def all(trace, x, axis=None, keepdims=False):
    """Whether all elements over `axis` are not 0."""
    return fold(trace, "all", tensor_of(x, "all").astype("bool"), axis, keepdims, "min", 1, "i1")


@op
def var(trace, x, axis=None, correction=0, keepdims=False):
    """Variance over `axis`: the sum of squared deviations from the mean, divided by (count - correction).

    Integers are converted to float32. Raises ShapeError if count <= correction.
    """
    x = tensor_of(x, "var")
    if isinstance(correction, bool) or not isinstance(correction, (int, float)):
        raise refuse(ArgumentError, f"correction {correction!r} of 'var' is not a number")
    x = x if x.dtype.kind == "float" else x.astype("float32")
    count = math.prod(x.shape[d] for d in axes_of("var", axis, x.ndim))
    if count <= correction:
        raise refuse(ShapeError, f"'var' of {count} elements with correction {correction}; the shape is {x.shape}")
    distance = subtract(x, mean(x, axis, True))
    return divide(sum(square(distance), axis, keepdims), count - correction)


@op
def std(trace, x, axis=None, correction=0, keepdims=False):
    """Standard deviation over `axis`: sqrt(var)."""
    return sqrt(var(x, axis, correction, keepdims))


def _arg(trace, name, x, axis, keepdims, largest):
    """The extreme value, then the first index that has it: two reductions, so that `axis` can be sharded.

    NaN counts as extreme.
    """
    b, x = trace.builder, tensor_of(x, name)
    if axis is None:
        x, axis = x.reshape((x.size,)), 0
    dim = axis_of(name, axis, x.ndim)
    if x.shape[dim] == 0:
        raise refuse(ShapeError, f"'{name}' of shape {x.shape} has no elements to reduce")
    best = operand(trace, _extreme(trace, name, x, dim, False, largest))
    result = first_of(b, operand(trace, x), best, dim, x.dtype.element, "i64")
    return trace.tensor(_keep(trace, result, x.shape, [dim], keepdims))


@op
def argmax(trace, x, axis=None, keepdims=False):
    """Index (int64) of the first maximum along `axis`; None: in the flattened tensor. NaN counts as the maximum."""
    return _arg(trace, "argmax", x, axis, keepdims, True)


@op
def argmin(trace, x, axis=None, keepdims=False):
    """Index (int64) of the first minimum along `axis`; None: in the flattened tensor. NaN counts as the minimum."""
    return _arg(trace, "argmin", x, axis, keepdims, False)


def _cumulative(trace, name, x, axis, what, identity):
    """Inclusive prefix reduction along `axis`."""
    b, x = trace.builder, _countable(x, name)
    element, to = x.dtype.element, wide(x.dtype.element)
    result = accumulate(b, operand(trace, x), axis_of(name, axis, x.ndim), combine(b, what, to), identity, to)
    return trace.tensor(cast(trace, result, element))


@op
def cumulative_sum(trace, x, axis=0):
    """Inclusive prefix sums along `axis`, in the types of sum."""
    return _cumulative(trace, "cumulative_sum", x, axis, "add", 0)


@op
def cumulative_prod(trace, x, axis=0):
    """Inclusive prefix products along `axis`, in the types of sum."""
    return _cumulative(trace, "cumulative_prod", x, axis, "mul", 1)


def _exponents(x, axis, name):
    """exp(x - max) and the maximum, which is treated as a constant by derivatives."""
    need(name, x, "float")
    greatest = stop_gradient(max(x, axis, True))
    return exp(subtract(x, greatest)), greatest


@op
def softmax(trace, x, axis=-1):
    """exp(x) / sum(exp(x)) along `axis`, without overflow; 16-bit floats are computed in float32.

    Raises DTypeError for integers.
    """
    x = tensor_of(x, "softmax")
    if x.dtype.kind == "float" and x.dtype.itemsize == 2:
        return softmax(x.astype("float32"), axis).astype(x.dtype)
    powers, _ = _exponents(x, axis, "softmax")
    return divide(powers, sum(powers, axis, True))


@op
def logsumexp(trace, x, axis=-1, keepdims=False):
    """log(sum(exp(x))) along `axis`, without overflow. Raises DTypeError for integers."""
    x = tensor_of(x, "logsumexp")
    powers, greatest = _exponents(x, axis, "logsumexp")
    result = add(log(sum(powers, axis, True)), greatest)
    return result if keepdims else result.reshape([n for d, n in enumerate(x.shape) if d not in axes_of("logsumexp", axis, x.ndim)])


@op
def log_softmax(trace, x, axis=-1):
    """log(softmax(x)) along `axis`, without overflow; 16-bit floats are computed in float32."""
    x = tensor_of(x, "log_softmax")
    if x.dtype.kind == "float" and x.dtype.itemsize == 2:
        return log_softmax(x.astype("float32"), axis).astype(x.dtype)
    powers, greatest = _exponents(x, axis, "log_softmax")
    return subtract(subtract(x, greatest), log(sum(powers, axis, True)))


def _running(trace, name, x, axis, largest):
    b, x = trace.builder, tensor_of(x, name)
    dim, element = axis_of(name, axis, x.ndim), x.dtype.element
    if not x.size:
        return x, trace.tensor(b.constant(0, TensorType(x.shape, "i64")))

    def later(before, behind):
        (x, i), (y, k) = before, behind
        wins = compare(b, "ge" if largest else "le", element, y, x)
        if is_float(element):
            wins = b.apply("arith.ori", wins, is_nan(b, y))
        return [b.select(wins, y, x), b.select(wins, k, i)]
    _, indices = b.scan([operand(trace, x), b.iota(x.shape, dim)], dim, later)
    indices = trace.tensor(b.pointwise([indices], x.shape, lambda i: convert(b, i, i.type, "i64")))
    return take_along_axis(x, indices, dim), indices


@op
def cumulative_max(trace, x, axis=0):
    """(values, int64 indices) of the greatest element so far along `axis`, the last of equal ones; NaN is the greatest.
    """
    return _running(trace, "cumulative_max", x, axis, True)


@op
def cumulative_min(trace, x, axis=0):
    """(values, int64 indices) of the least element so far along `axis`, the last of equal ones; NaN is the least."""
    return _running(trace, "cumulative_min", x, axis, False)


@op
def cumulative_logsumexp(trace, x, axis=0):
    """log(cumulative_sum(exp(x))) along `axis`, without overflow; 16-bit floats are computed in float32.

    Raises DTypeError for integers.
    """
    b, x = trace.builder, tensor_of(x, "cumulative_logsumexp")
    need("cumulative_logsumexp", x, "float")
    element, to = x.dtype.element, wide(x.dtype.element)

    def both(x, y):  # one comparison chooses greater and lesser, so that equal ones share the derivative
        first = compare(b, "ge", to, x, y)
        greater, lesser = b.select(first, x, y), b.select(first, y, x)
        distance = b.select(is_infinite(b, greater), b.constant(0, to), b.apply("arith.subf", lesser, greater))
        return b.apply("arith.addf", greater, b.apply("math.log1p", b.apply("math.exp", distance)))
    result = accumulate(b, operand(trace, x), axis_of("cumulative_logsumexp", axis, x.ndim), both, -math.inf, to)
    return trace.tensor(cast(trace, result, element))
