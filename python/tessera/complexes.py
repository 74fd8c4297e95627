# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex values as pairs of real ones, and Fourier transforms as products of matrices, for all importers.

Programs are real. `xp` is the library of the parts: tessera.ops, or jax.numpy for programs that JAX traces.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

_DIRECT = 64  # transforms up to this length are one product


@dataclasses.dataclass(frozen=True)
class Complex:
    """real + i imag, tensors of one shape and type."""
    real: Any
    imag: Any

    def each(self, function) -> Complex:
        """A function of real tensors on both parts."""
        return Complex(function(self.real), function(self.imag))


def multiply(x: Complex, y: Complex, product=lambda x, y: x * y) -> Complex:
    """x times y in a product of real tensors that distributes over sums."""
    return Complex(product(x.real, y.real) - product(x.imag, y.imag), product(x.real, y.imag) + product(x.imag, y.real))


def divide(x: Complex, y: Complex) -> Complex:
    """x / y, by the squared length of y: overflows where that does."""
    square = y.real * y.real + y.imag * y.imag
    return Complex((x.real * y.real + x.imag * y.imag) / square, (x.imag * y.real - x.real * y.imag) / square)


def absolute(xp, z: Complex):
    """The length; its derivative at 0 is 0."""
    square = z.real * z.real + z.imag * z.imag
    none = square == 0
    return xp.where(none, 0.0, xp.sqrt(xp.where(none, 1.0, square)))


def polar(xp, length, angle) -> Complex:
    """length * exp(i angle); the angle is in radians."""
    return Complex(length * xp.cos(angle), length * xp.sin(angle))


def negative(z: Complex) -> Complex:
    return Complex(-z.real, -z.imag)


def add(x: Complex, y: Complex) -> Complex:
    return Complex(x.real + y.real, x.imag + y.imag)


def shifted(z: Complex, number) -> Complex:
    """z plus a real number."""
    return Complex(z.real + number, z.imag)


def turned(z: Complex) -> Complex:
    """i z."""
    return Complex(-z.imag, z.real)


def turned_back(z: Complex) -> Complex:
    """-i z."""
    return Complex(z.imag, -z.real)


def reciprocal(xp, z: Complex) -> Complex:
    """1 / z; overflows where the squared length does."""
    return divide(Complex(xp.ones_like(z.real), xp.zeros_like(z.real)), z)


def exponential(xp, z: Complex) -> Complex:
    """e^z."""
    return polar(xp, xp.exp(z.real), z.imag)


def expm1(xp, z: Complex) -> Complex:
    """e^z - 1, accurate near 0."""
    sine = xp.sin(z.imag / 2)
    return Complex(xp.expm1(z.real) * xp.cos(z.imag) - 2 * sine * sine, xp.exp(z.real) * xp.sin(z.imag))


def log(xp, z: Complex) -> Complex:
    """The principal branch: the imaginary part is the angle, in (-pi, pi]."""
    return Complex(xp.log(absolute(xp, z)), xp.atan2(z.imag, z.real))


def log1p(xp, z: Complex) -> Complex:
    """log(1 + z), accurate near 0; the principal branch."""
    return Complex(xp.log1p(z.real * (2 + z.real) + z.imag * z.imag) / 2, xp.atan2(z.imag, 1 + z.real))


def sqrt(xp, z: Complex) -> Complex:
    """The root with a real part that is not negative. Nothing cancels, so that derivatives are finite where the root's are."""
    left = z.real < 0
    length = absolute(xp, z) + xp.where(left, -z.real, z.real)
    none = length == 0
    half = xp.sqrt(xp.where(none, 1.0, length) / 2)
    other, sign = z.imag / (2 * half), xp.copysign(xp.ones_like(z.imag), z.imag)
    real, imag = xp.where(left, other * sign, half), xp.where(left, half * sign, other)
    return Complex(xp.where(none, 0.0, real), xp.where(none, z.imag, imag))


def power(xp, z: Complex, n: int) -> Complex:
    """z to an integer, by repeated squaring."""
    result, square, k = None, z, abs(n)
    while k:
        if k & 1:
            result = square if result is None else multiply(result, square)
        k >>= 1
        square = multiply(square, square) if k else square
    result = Complex(xp.ones_like(z.real), xp.zeros_like(z.real)) if result is None else result
    return reciprocal(xp, result) if n < 0 else result


def sine(xp, z: Complex) -> Complex:
    return Complex(xp.sin(z.real) * xp.cosh(z.imag), xp.cos(z.real) * xp.sinh(z.imag))


def cosine(xp, z: Complex) -> Complex:
    return Complex(xp.cos(z.real) * xp.cosh(z.imag), -xp.sin(z.real) * xp.sinh(z.imag))


def tanh(xp, z: Complex) -> Complex:
    """(t + i n) / (1 + i t n), of t = tanh(real) and n = tan(imag), which does not overflow."""
    t, n = xp.tanh(z.real), xp.tan(z.imag)
    below = 1 + t * t * n * n
    return Complex(t * (1 + n * n) / below, n * (1 - t * t) / below)


def sinh(xp, z: Complex) -> Complex:
    return Complex(xp.sinh(z.real) * xp.cos(z.imag), xp.cosh(z.real) * xp.sin(z.imag))


def cosh(xp, z: Complex) -> Complex:
    return Complex(xp.cosh(z.real) * xp.cos(z.imag), xp.sinh(z.real) * xp.sin(z.imag))


def tan(xp, z: Complex) -> Complex:
    """-i tanh(i z), which does not overflow."""
    return turned_back(tanh(xp, turned(z)))


def logistic(xp, z: Complex) -> Complex:
    """1 / (1 + e^-z), as (tanh(z / 2) + 1) / 2."""
    return shifted(tanh(xp, z.each(lambda x: x / 2)), 1).each(lambda x: x / 2)


def asinh(xp, z: Complex) -> Complex:
    """-i asin(i z)."""
    return turned_back(asin(xp, turned(z)))


def asin(xp, z: Complex) -> Complex:
    """atan2(re z, re(sqrt(1 - z) sqrt(1 + z))) and asinh(im(conj(sqrt(1 - z)) sqrt(1 + z))) (Kahan, 1987)."""
    first, second = sqrt(xp, shifted(negative(z), 1)), sqrt(xp, shifted(z, 1))
    return Complex(xp.atan2(z.real, first.real * second.real - first.imag * second.imag),
                   xp.asinh(first.real * second.imag - first.imag * second.real))


def acos(xp, z: Complex) -> Complex:
    """2 atan2(re sqrt(1 - z), re sqrt(1 + z)) and asinh(im(conj(sqrt(1 + z)) sqrt(1 - z))) (Kahan, 1987)."""
    first, second = sqrt(xp, shifted(negative(z), 1)), sqrt(xp, shifted(z, 1))
    return Complex(2 * xp.atan2(first.real, second.real), xp.asinh(second.real * first.imag - second.imag * first.real))


def acosh(xp, z: Complex) -> Complex:
    """asinh(re(conj(sqrt(z - 1)) sqrt(z + 1))) and 2 atan2(im sqrt(z - 1), re sqrt(z + 1)) (Kahan, 1987)."""
    first, second = sqrt(xp, shifted(z, -1)), sqrt(xp, shifted(z, 1))
    return Complex(xp.asinh(first.real * second.real + first.imag * second.imag), 2 * xp.atan2(first.imag, second.real))


def atanh(xp, z: Complex) -> Complex:
    """(log(1 + z) - log(1 - z)) / 2, with the branches of log1p."""
    plus, minus = log1p(xp, z), log1p(xp, negative(z))
    return Complex((plus.real - minus.real) / 2, (plus.imag - minus.imag) / 2)


def atan(xp, z: Complex) -> Complex:
    """-i atanh(i z)."""
    return turned_back(atanh(xp, turned(z)))


def rsqrt(xp, z: Complex) -> Complex:
    """1 / sqrt(z), of the root with a real part that is not negative."""
    return reciprocal(xp, sqrt(xp, z))


def product(xp, z: Complex, axes) -> Complex:
    """The product over non-negative axes: halves are multiplied until one element is left."""
    rest = [d for d in range(z.real.ndim) if d not in axes]
    z = z.each(lambda x: xp.permute_dims(x, [*axes, *rest]).reshape((math.prod(x.shape[d] for d in axes), *(x.shape[d] for d in rest))))
    one = Complex(xp.ones((1, *z.real.shape[1:]), str(z.real.dtype)), xp.zeros((1, *z.real.shape[1:]), str(z.real.dtype)))
    while z.real.shape[0] != 1:
        if z.real.shape[0] % 2 or not z.real.shape[0]:
            z = Complex(xp.concat([z.real, one.real]), xp.concat([z.imag, one.imag]))
            continue
        half = z.real.shape[0] // 2
        z = multiply(z.each(lambda x: x[:half]), z.each(lambda x: x[half:]))
    return z.each(lambda x: x[0])


# Functions of (xp, z) by their usual names.
FUNCTIONS = {"exp": exponential, "expm1": expm1, "log": log, "log1p": log1p, "sqrt": sqrt, "rsqrt": rsqrt, "sin": sine, "cos": cosine, "tan": tan,
             "sinh": sinh, "cosh": cosh, "tanh": tanh, "asin": asin, "acos": acos, "atan": atan, "asinh": asinh, "acosh": acosh, "atanh": atanh}


def _transformed(xp, z: Complex, axis: int, sign: int) -> Complex:
    """sum over j of z[j] exp(sign 2 pi i j k / n) along `axis`, without a factor.

    A length n = a b is transformed in a, multiplied by the roots of unity in between, and transformed in b (Cooley and
    Tukey, 1965); a length without divisors is one product with an n x n matrix.
    """
    last = z.real.ndim - 1
    order = [d for d in range(last + 1) if d != axis] + [axis]
    back = [order.index(d) for d in range(last + 1)]
    return _along_last(xp, z.each(lambda x: xp.permute_dims(x, order)), sign).each(lambda x: xp.permute_dims(x, back))


def _roots(rows, columns, n, sign, dtype) -> Complex:
    angles = 2 * np.pi * (np.outer(np.arange(rows, dtype=np.int64), np.arange(columns, dtype=np.int64)) % n) / n
    return Complex(np.cos(angles), sign * np.sin(angles)).each(lambda part: part.astype(str(dtype)))


def _along_last(xp, z, sign):
    *batch, n = z.real.shape
    divisors = [d for d in range(2, math.isqrt(n) + 1) if n % d == 0] if n > _DIRECT else []
    if not divisors:
        return multiply(z, _roots(n, n, n, sign, z.real.dtype), lambda x, y: x @ y)
    a = divisors[-1]
    b = n // a
    z = z.each(lambda x: xp.swapaxes(x.reshape((*batch, a, b)), -1, -2))     # [j2, j1] of j = j1 b + j2
    z = _along_last(xp, z, sign)                                             # [j2, k1]
    z = multiply(z, _roots(b, a, n, sign, z.real.dtype))
    z = _along_last(xp, z.each(lambda x: xp.swapaxes(x, -1, -2)), sign)      # [k1, k2] of k = k1 + a k2
    return z.each(lambda x: xp.swapaxes(x, -1, -2).reshape((*batch, n)))


def _line(axis, start, end):
    return (slice(None),) * axis + (slice(start, end),)


def transform(xp, z: Complex, axes, sign: int) -> Complex:
    """The discrete Fourier transform along non-negative axes, of exp(sign 2 pi i j k / n), without a factor.

    Last axis first: rows that devices share are sent once, where columns are transformed already. Back in the other order,
    so that the axis whose lines devices hold whole after the one transform is the first of the other.
    """
    for axis in reversed(axes) if sign < 0 else axes:
        z = _transformed(xp, z, axis, sign)
    return z


def of_real(xp, x, axes, onesided=True) -> Complex:
    """The transform of a real tensor; onesided: only frequencies 0 to n / 2 of the last of `axes`."""
    *others, axis = axes
    z = transform(xp, Complex(x, xp.zeros_like(x)), [axis], -1)
    if onesided:
        z = z.each(lambda part: part[_line(axis, 0, x.shape[axis] // 2 + 1)])
    return transform(xp, z, others, -1)


def to_real(xp, z: Complex, axes, size: int):
    """The real tensor of extent `size` along the last of `axes` whose onesided transform is z, times its elements."""
    *others, axis = axes
    half = transform(xp, z, others, 1).each(lambda part: part[_line(axis, 0, size // 2 + 1)])
    count = size - (size // 2 + 1)
    if count:  # the other half are the conjugates
        rest = half.each(lambda part: xp.flip(part[_line(axis, 1, count + 1)], axis))
        half = Complex(xp.concat([half.real, rest.real], axis=axis), xp.concat([half.imag, -rest.imag], axis=axis))
    # The first element of a real signal's transform is real, and so is the middle one of an even length.
    return transform(xp, half, [axis], 1).real
