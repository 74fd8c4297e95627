# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions with PyTorch's derivatives at kinks, ties and bounds, and smooth functions whose usual forms have kinks.

A smooth function is written as `where` of two smooth ones that agree with all derivatives where they meet; the one that
is not chosen gets operands for which it is finite, because a cotangent of 0 times an infinite slope is not a number.
"""

from __future__ import annotations

import math

from .. import ops
from ..control import custom_gradient
from ..nn import functional as F
from ..ops.base import broadcast_shapes, tensor_of
from .registry import RULES, promoted, promoting, rule


@rule("log_sigmoid.default")
def _(x):
    return -F.softplus(-x)


@rule("log_sigmoid_forward.default")
def _(x):
    return RULES["log_sigmoid.default"](x), None


@rule("softplus.default")
def _(x, beta=1, threshold=20):
    """Linear where beta * x > threshold, as in PyTorch."""
    scaled = x if beta == 1 else x * beta
    smooth = F.softplus(scaled)
    return ops.where(ops.greater(scaled, threshold), x, smooth if beta == 1 else smooth / beta)


@rule("mish.default")
def _(x):
    return x * ops.tanh(F.softplus(x))


@rule("elu.default")
def _(x, alpha=1, scale=1, input_scale=1):
    above = ops.greater(x, 0)
    return ops.where(above, x * scale, ops.expm1(ops.where(above, 0, x) * input_scale) * (alpha * scale))


@rule("celu.default")
def _(x, alpha=1.0):
    return RULES["elu.default"](x, alpha, 1, 1 / alpha)


@rule("selu.default")
def _(x):
    return RULES["elu.default"](x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


def _log_add(base):
    """log(base ** x + base ** y) with the derivatives of softmax; equal infinities give themselves and no derivative."""
    def function(x, y):
        scale = math.log(base)
        same = ops.logical_and(ops.equal(x, y), ops.isinf(x))
        difference = ops.where(same, 0, y - x) * scale
        found = ops.where(same, 0, x) + F.softplus(difference) / scale
        below = ops.equal(x, -math.inf)  # x + inf otherwise
        return ops.where(same, x, ops.where(below, y, found))
    return promoting(function)


@rule("fmod.Tensor", "fmod.Scalar")
@promoting
def _(x, y):
    below = ops.less(x, 0)
    rest = ops.remainder(ops.where(below, -x, x), ops.abs(y))
    return ops.where(below, -rest, rest)


@rule("atan2.default")
@promoting
def _(y, x):
    """The derivative at the origin is 0."""
    none = ops.logical_and(ops.equal(x, 0), ops.equal(y, 0))
    return ops.where(none, ops.stop_gradient(ops.atan2(y, x)), ops.atan2(y, ops.where(none, 1, x)))


@rule("copysign.Tensor", "copysign.Scalar")
@promoting
def _(x, y):
    """The derivative at 0 is 0."""
    found = ops.copysign(x, y)
    return ops.where(ops.equal(x, 0), ops.stop_gradient(found), found)


def _together(value, backward):
    """value(*operands) of their common type and shape, with a derivative of its own for floats."""
    def call(*operands):
        operands = [tensor_of(z, value.__name__) for z in promoted(*operands)]
        if operands[0].dtype.kind != "float":
            return value(*operands)
        shape = broadcast_shapes(value.__name__, [z.shape for z in operands])
        return custom_gradient(value, backward)(*[ops.broadcast_to(z, shape) for z in operands])
    return call


def _shared(value, loses):
    """value(x, y), whose cotangent goes to those that do not lose to the other; equal ones get half of it.

    loses(x, y, result): whether x gets nothing.
    """
    def backward(arguments, results, cotangents):
        (x, y), (result,), (g,) = arguments, results, cotangents
        g = ops.where(ops.equal(x, y), g * 0.5, g)
        return ops.where(loses(x, y, result), 0.0, g), ops.where(loses(y, x, result), 0.0, g)

    return _together(value, backward)


def _clamped(x, low, high):
    return ops.minimum(ops.maximum(x, low), high)


def _of_clamped(arguments, results, cotangents):
    """An element shares the cotangent with the one bound that it equals."""
    (x, low, high), (g,) = arguments, cotangents
    least, greatest, crossed = ops.equal(x, low), ops.equal(x, high), ops.greater(low, high)
    below, above = ops.less(x, low), ops.logical_or(crossed, ops.greater(x, high))
    half = lambda condition: ops.where(condition, g * 0.5, 0.0)
    return (ops.where(ops.logical_or(below, above), 0.0, ops.where(ops.logical_xor(least, greatest), g * 0.5, g)),
            ops.where(crossed, 0.0, ops.where(below, g, half(ops.logical_and(least, ops.logical_not(greatest))))),
            ops.where(above, g, half(ops.logical_and(greatest, ops.logical_not(least)))))


@rule("clamp.Tensor")
def _(x, low=None, high=None):
    if low is None or high is None:
        return RULES["minimum.default"](x, high) if low is None else RULES["maximum.default"](x, low)
    return _together(_clamped, _of_clamped)(x, low, high)


def _of_numbers(value):
    """value(x, y), or the one that is a number."""
    def function(x, y):
        return value(x, y) if x.dtype.kind != "float" else ops.where(ops.isnan(x), y, ops.where(ops.isnan(y), x, value(x, y)))
    function.__name__ = value.__name__
    return function


RULES["maximum.default"] = _shared(ops.maximum, lambda x, y, result: ops.less(x, y))  # not a number: both get all, as in PyTorch
RULES["minimum.default"] = _shared(ops.minimum, lambda x, y, result: ops.greater(x, y))
for _name, _function in dict(fmax=ops.maximum, fmin=ops.minimum).items():
    RULES[f"{_name}.default"] = _shared(_of_numbers(_function), lambda x, y, result: ops.not_equal(x, result))
for _name, _base in (("logaddexp", math.e), ("logaddexp2", 2)):
    RULES[f"{_name}.default"] = _log_add(_base)


def shared(function, x, axes=None, keepdims=False):
    """A reduction to one of the elements, among which all equal ones share the cotangent evenly."""
    def backward(arguments, results, cotangents):
        (x,), (result,), (g,) = arguments, results, cotangents
        chosen = ops.logical_or(ops.equal(x, result), ops.logical_and(ops.isnan(x), ops.isnan(result)))
        count = ops.sum(chosen, axes, True).astype(x.dtype)
        return ops.where(chosen, ops.broadcast_to(g / count, x.shape), 0.0)
    x = tensor_of(x, function.__name__)
    if x.dtype.kind != "float":
        return function(x, axes, keepdims)
    found = custom_gradient(lambda x: function(x, axes, True), backward)(x)
    if keepdims:
        return found
    return ops.reshape(found, ()) if axes is None else ops.squeeze(found, axes)
