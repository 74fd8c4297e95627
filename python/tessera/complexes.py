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
    square = y.real * y.real + y.imag * y.imag
    return Complex((x.real * y.real + x.imag * y.imag) / square, (x.imag * y.real - x.real * y.imag) / square)


def absolute(xp, z: Complex):
    return xp.sqrt(z.real * z.real + z.imag * z.imag)


def polar(xp, length, angle) -> Complex:
    return Complex(length * xp.cos(angle), length * xp.sin(angle))


def exponential(xp, z: Complex) -> Complex:
    return polar(xp, xp.exp(z.real), z.imag)


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
    """The discrete Fourier transform along non-negative axes, of exp(sign 2 pi i j k / n), without a factor."""
    for axis in axes:
        z = _transformed(xp, z, axis, sign)
    return z


def of_real(xp, x, axes, onesided=True) -> Complex:
    """The transform of a real tensor; onesided: only frequencies 0 to n / 2 of the last of `axes`."""
    z = transform(xp, Complex(x, xp.zeros_like(x)), axes, -1)
    return z.each(lambda part: part[_line(axes[-1], 0, x.shape[axes[-1]] // 2 + 1)]) if onesided else z


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
