# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special functions (tessera.special) with their derivatives, which are not those of the series."""

from __future__ import annotations

import math

import numpy as np

from .. import dtypes, ops, special
from ..control import custom_gradient
from ..ir import scalars
from ..ops.base import broadcast_shapes, elementwise, op, tensor_of
from .registry import promoted, rule


def _wide(x, name):
    """x as a float of at least 32 bits, and the type of the result."""
    x = tensor_of(x, name)
    kept = x.dtype if x.dtype.kind == "float" else dtypes.float32
    return x.astype(kept if kept in (dtypes.float32, dtypes.float64) else dtypes.float32), kept


def _special(*names):
    """Decorator: a function of x that returns (value, slope, a function without operands) is the rule of operations of one tensor.

    Numbers may follow the tensor. The value is computed in f32 for narrower types.
    """
    def register(function):
        def call(x, *numbers):
            x, kept = _wide(x, function.__name__)
            value = custom_gradient(lambda x: function(x, *numbers)[0],
                                    lambda arguments, results, cotangents: cotangents[0] * function(arguments[0], *numbers)[1]())
            return value(x).astype(kept)
        return rule(*names)(call)
    return register


@op
def _erfc(trace, x):
    return elementwise(trace, "erfc", [x], lambda b, x: scalars.apply(b, "erfc", x.type, x))


@op
def _erf_inv(trace, x):
    return elementwise(trace, "erfinv", [x], scalars.erf_inv)


@_special("erfc.default")
def _(x):
    return _erfc(x), lambda: ops.exp(-ops.square(x)) * (-2 / math.sqrt(math.pi))


@_special("erfinv.default")
def _(x):
    value = _erf_inv(x) if x.dtype is dtypes.float32 else special.erf_inv(ops, x, _erf_inv, ops.erf, _erfc)
    return value, lambda: ops.exp(ops.square(value)) * (math.sqrt(math.pi) / 2)


@_special("lgamma.default")
def _(x):
    return special.lgamma(ops, x), lambda: _digamma(x)


def _digamma(x):
    """Infinite at 0, unlike the one of XLA."""
    return ops.where(ops.equal(x, 0), ops.copysign(math.inf, -x), special.digamma(ops, x))


@_special("digamma.default")
def _(x):
    return _digamma(x), lambda: _polygamma(x, 1)


def _zeta(s, x):
    return special.zeta(ops, ops.full(x.shape, float(s), x.dtype), x)


def _cotangent(n):
    """The n-th derivative of the cotangent as a polynomial of the cotangent: coefficients, that of the highest power first."""
    found = np.polynomial.Polynomial([0, 1])
    for _ in range(n):
        found = found.deriv() * np.polynomial.Polynomial([-1, 0, -1])
    return [float(c) for c in found.coef[::-1]]


def _polygamma(x, n):
    """The n-th derivative of digamma, n > 0; below 1/2 by reflection, because the series of zeta needs a positive argument."""
    reflected = ops.less(x, 0.5)
    above = _zeta(n + 1, ops.where(reflected, 1 - x, x)) * (math.factorial(n) * (-1) ** (n + 1))
    angle = math.pi * ops.where(reflected, x - ops.floor(x), 0.5)
    cotangent, (total, *rest) = ops.cos(angle) / ops.sin(angle), _cotangent(n)
    for c in rest:
        total = total * cotangent + c
    return ops.where(reflected, (-1) ** n * above - math.pi ** (n + 1) * total, above)


@_special()
def _nth(x, n):
    return _digamma(x) if n == 0 else _polygamma(x, n), lambda: _polygamma(x, n + 1)


@rule("polygamma.default")
def _(n, x):
    return _nth(x, n)


def _hurwitz(s, x):
    """Infinite at all poles, unlike the one of XLA."""
    pole = ops.logical_and(ops.greater(s, 1), ops.logical_and(ops.less_equal(x, 0), ops.equal(x, ops.floor(x))))
    return ops.where(pole, math.inf, special.zeta(ops, s, x))


@rule("special_zeta.default", "special_zeta.other_scalar", "special_zeta.self_scalar")
def _(s, x):
    """The derivative is by x alone, as in PyTorch."""
    (s, kept), (x, other) = _wide(s, "zeta"), _wide(x, "zeta")
    s, x = promoted(s, x)
    shape = broadcast_shapes("zeta", [s.shape, x.shape])
    s, x = ops.broadcast_to(s, shape), ops.broadcast_to(x, shape)
    value = custom_gradient(_hurwitz,
                            lambda arguments, results, cotangents: (ops.zeros_like(s), -arguments[0] * cotangents[0] * special.zeta(
                                ops, arguments[0] + 1, arguments[1])))
    return value(s, x).astype(kept if kept is other else s.dtype)


def _i0(x):
    return ops.exp(ops.abs(x)) * special.bessel_i0e(ops, x)


def _i1(x):
    return ops.exp(ops.abs(x)) * special.bessel_i1e(ops, x)


def _over(value, x):
    """value / x, and 1/2 at 0: the limit of the Bessel function of order 1, with its scale of 1 there, over x."""
    none = ops.equal(x, 0)
    return ops.where(none, 0.5, value / ops.where(none, 1.0, x))


@_special("i0.default")
def _(x):
    return _i0(x), lambda: _i1(x)


@_special("special_i0e.default")
def _(x):
    value = special.bessel_i0e(ops, x)
    return value, lambda: special.bessel_i1e(ops, x) - ops.sign(x) * value


@_special("special_i1.default")
def _(x):
    value = _i1(x)
    return value, lambda: _i0(x) - _over(value, x)


@_special("special_i1e.default")
def _(x):
    value = special.bessel_i1e(ops, x)
    return value, lambda: special.bessel_i0e(ops, x) - value * ops.sign(x) - _over(value, x)


@_special("special_ndtri.default")
def _(x):
    value = special.ndtri(ops, x)
    return value, lambda: ops.exp(ops.square(value) / 2) * math.sqrt(2 * math.pi)


@_special("special_erfcx.default")
def _(x):
    value = special.erfcx(ops, x)
    return value, lambda: 2 * x * value - 2 / math.sqrt(math.pi)


@_special("special_log_ndtr.default")
def _(x):
    """log(erfc(-x / sqrt(2)) / 2), below 1 scaled so that it neither underflows nor cancels."""
    low = ops.less(x, 1)
    scaled = special.erfcx(ops, ops.where(low, x, 0.0) * -math.sqrt(0.5))
    value = ops.where(low, ops.log(scaled / 2) - ops.square(x) / 2, ops.log1p(_erfc(x * math.sqrt(0.5)) / -2))
    return value, lambda: ops.where(low, math.sqrt(2 / math.pi) / scaled, ops.exp(-ops.square(x) / 2 - value) / math.sqrt(2 * math.pi))


@_special("sinc.default")
def _(x):
    angle, none = math.pi * x, ops.equal(x, 0)
    sine = ops.where(none, 1.0, ops.sin(angle) / ops.where(none, 1.0, angle))
    return sine, lambda: ops.where(none, 0.0, (ops.cos(angle) - sine) / ops.where(none, 1.0, x))


@_special("special_entr.default")
def _(x):
    return (ops.where(ops.isnan(x), x, ops.where(ops.greater(x, 0), -x * ops.log(x), ops.where(ops.equal(x, 0), 0.0, -math.inf))),
            lambda: ops.where(ops.isnan(x), x, -ops.log(x) - 1))


def _times_log(name, log, slope):
    """The rule of x log(y), 0 where x is 0 even if the logarithm is infinite."""
    def value(x, y):
        return ops.where(ops.isnan(y), y, ops.where(ops.equal(x, 0), 0.0, x * log(y)))

    def backward(arguments, results, cotangents):
        (x, y), (g,) = arguments, cotangents
        return ops.where(ops.logical_and(ops.equal(x, 0), ops.less_equal(log(y), -math.inf)), 0.0, g * log(y)), g * slope(x, y)

    def call(x, y):
        (x, a), (y, b) = _wide(x, name), _wide(y, name)
        x, y = promoted(x, y)
        shape = broadcast_shapes(name, [x.shape, y.shape])
        return custom_gradient(value, backward)(ops.broadcast_to(x, shape), ops.broadcast_to(y, shape)).astype(a if a is b else x.dtype)
    for kind in ("Tensor", "default", "Scalar_Other", "Scalar_Self", "other_scalar", "self_scalar"):
        rule(f"{name}.{kind}")(call)


_times_log("xlogy", ops.log, lambda x, y: x / y)
_times_log("special_xlog1py", ops.log1p, lambda x, y: x / (y + 1))
