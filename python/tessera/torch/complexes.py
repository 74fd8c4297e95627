# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex tensors of PyTorch as pairs of real ones, and Fourier transforms as products of matrices.

Programs are real: a complex value exists between the operations that make it (`view_as_complex`, `polar`, a transform)
and those that read it (`view_as_real`, `abs`), as in rotary embeddings written with complex numbers.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from .. import ops
from ..errors import ArgumentError
from ..source import refuse
from ..tensor import Tensor, asarray
from .registry import RULES, rule

_DIRECT = 64  # transforms up to this length are one product


@dataclasses.dataclass(frozen=True)
class Complex:
    """real + i imag, tensors of one shape and type."""
    real: Tensor
    imag: Tensor


COMPLEX: dict = {}


def _complex(*names):
    """Decorator: the rule of operations with a complex operand or result."""
    def register(function):
        for name in names:
            COMPLEX[name] = function
        return function
    return register


# Operations that move or add elements act on both parts alike.
_BY_PARTS = ["alias", "cat", "clone", "constant_pad_nd", "diagonal", "expand", "flip", "gather", "index.Tensor", "index_select", "mean.dim", "permute",
             "repeat", "reshape", "roll", "select.int", "slice.Tensor", "split.Tensor", "split_with_sizes", "squeeze.dim", "squeeze.dims",
             "stack", "sum.default", "sum.dim_IntList", "t", "transpose.int", "unsqueeze", "view", "_unsafe_view"]


def _parts(name):
    def apply(*args, **kwargs):
        def take(value, part):
            if isinstance(value, Complex):
                return getattr(value, part)
            return [take(v, part) for v in value] if isinstance(value, (list, tuple)) else value
        real, imag = (RULES[name](*[take(a, part) for a in args], **kwargs) for part in ("real", "imag"))
        return [Complex(*each) for each in zip(real, imag)] if isinstance(real, (list, tuple)) else Complex(real, imag)
    return apply


def register_parts():
    """Adds the rules by parts, after those of real tensors are known."""
    for name in _BY_PARTS:
        name = name if "." in name else f"{name}.default"
        if name in RULES:
            COMPLEX[name] = _parts(name)


def pair(value) -> Complex:
    """A real tensor with a last axis of 2, or a number, as a complex value."""
    if isinstance(value, Complex):
        return value
    if isinstance(value, complex):
        return Complex(value.real, value.imag)
    return Complex(value, 0.0)


def of_last_axis(x) -> Complex:
    return Complex(x[..., 0], x[..., 1])


@_complex("view_as_complex.default")
def _(x):
    return of_last_axis(x)


@_complex("view_as_real.default")
def _(z):
    return ops.stack([z.real, z.imag], z.real.ndim)


@_complex("complex.default")
def _(real, imag):
    return Complex(real, imag)


@_complex("polar.default")
def _(length, angle):
    return Complex(length * ops.cos(angle), length * ops.sin(angle))


@_complex("_to_copy.default")
def _(z, **kwargs):
    return z if isinstance(z, Complex) else Complex(z.astype("float32"), ops.zeros_like(z).astype("float32"))


@_complex("abs.default")
def _(z):
    return ops.sqrt(z.real * z.real + z.imag * z.imag)


@_complex("angle.default")
def _(z):
    return ops.atan2(z.imag, z.real)


@_complex("real.default")
def _(z):
    return z.real


@_complex("imag.default")
def _(z):
    return z.imag


@_complex("_conj.default", "conj.default", "conj_physical.default", "_conj_physical.default")
def _(z):
    return Complex(z.real, -z.imag)


@_complex("resolve_conj.default", "lift_fresh_copy.default", "detach.default")
def _(z):
    return z


@_complex("_assert_tensor_metadata.default")
def _(*_, **__):
    return None


@_complex("neg.default")
def _(z):
    return Complex(-z.real, -z.imag)


@_complex("add.Tensor", "add.Scalar")
def _(x, y, alpha=1):
    x, y = pair(x), pair(y)
    return Complex(x.real + y.real * alpha, _total(x.imag, y.imag, alpha, x.real + y.real))


@_complex("sub.Tensor", "sub.Scalar")
def _(x, y, alpha=1):
    x, y = pair(x), pair(y)
    return Complex(x.real - y.real * alpha, _total(x.imag, y.imag, -alpha, x.real + y.real))


def _total(x, y, alpha, like):
    """x + y alpha, in the shape of `like`: the imaginary part of a real operand is a number."""
    total = x + y * alpha
    return ops.broadcast_to(total, like.shape) if isinstance(total, Tensor) and total.shape != like.shape else total


@_complex("mul.Tensor", "mul.Scalar")
def _(x, y):
    if not isinstance(x, Complex):
        x, y = y, x
    if not isinstance(y, (Complex, complex)):
        return Complex(x.real * y, x.imag * y)
    y = pair(y)
    return Complex(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)


@_complex("div.Tensor", "div.Scalar")
def _(x, y):
    if not isinstance(y, (Complex, complex)):
        return Complex(x.real / y, x.imag / y)
    x, y = pair(x), pair(y)
    square = y.real * y.real + y.imag * y.imag
    return Complex((x.real * y.real + x.imag * y.imag) / square, (x.imag * y.real - x.real * y.imag) / square)


@_complex("exp.default")
def _(z):
    length = ops.exp(z.real)
    return Complex(length * ops.cos(z.imag), length * ops.sin(z.imag))


@_complex("mm.default", "bmm.default", "matmul.default")
def _(x, y):
    if not isinstance(x, Complex):
        return Complex(x @ y.real, x @ y.imag)
    if not isinstance(y, Complex):
        return Complex(x.real @ y, x.imag @ y)
    return Complex(x.real @ y.real - x.imag @ y.imag, x.real @ y.imag + x.imag @ y.real)


def _transformed(z: Complex, axis: int, sign: int) -> Complex:
    """sum over j of z[j] exp(sign 2 pi i j k / n) along `axis`, without a factor.

    A length n = a b is transformed in a, multiplied by the roots of unity in between, and transformed in b (Cooley and
    Tukey, 1965); a length without divisors is one product with an n x n matrix.
    """
    last = z.real.ndim - 1
    order = [d for d in range(last + 1) if d != axis] + [axis]
    back = [order.index(d) for d in range(last + 1)]
    z = _along_last(Complex(ops.permute_dims(z.real, order), ops.permute_dims(z.imag, order)), sign)
    return Complex(ops.permute_dims(z.real, back), ops.permute_dims(z.imag, back))


def _roots(rows, columns, n, sign, dtype):
    angles = 2 * np.pi * (np.outer(np.arange(rows, dtype=np.int64), np.arange(columns, dtype=np.int64)) % n) / n
    return [asarray(part.astype(str(dtype))) for part in (np.cos(angles), sign * np.sin(angles))]


def _times(z, real, imag, product):
    return Complex(product(z.real, real) - product(z.imag, imag), product(z.real, imag) + product(z.imag, real))


def _along_last(z, sign):
    *batch, n = z.real.shape
    divisors = [d for d in range(2, math.isqrt(n) + 1) if n % d == 0] if n > _DIRECT else []
    if not divisors:
        return _times(z, *_roots(n, n, n, sign, z.real.dtype), lambda x, y: x @ y)
    a = divisors[-1]
    b = n // a
    each = lambda z, function: Complex(function(z.real), function(z.imag))
    z = each(z, lambda x: ops.swapaxes(x.reshape((*batch, a, b)), -1, -2))  # [j2, j1] of j = j1 b + j2
    z = _along_last(z, sign)                                                # [j2, k1]
    z = _times(z, *_roots(b, a, n, sign, z.real.dtype), lambda x, y: x * y)
    z = _along_last(each(z, lambda x: ops.swapaxes(x, -1, -2)), sign)       # [k1, k2] of k = k1 + a k2
    return each(z, lambda x: ops.swapaxes(x, -1, -2).reshape((*batch, n)))


def _scaled(z, n, norm):
    """norm of PyTorch's transforms: 0 none, 1 divides by the root of the number of elements, 2 by that number."""
    if norm == 0:
        return z
    factor = 1 / math.sqrt(n) if norm == 1 else 1 / n
    return Complex(z.real * factor, z.imag * factor)


@_complex("_fft_c2c.default")
def _(z, axes, norm, forward):
    n = 1
    for axis in axes:
        axis %= z.real.ndim
        n *= z.real.shape[axis]
        z = _transformed(z, axis, -1 if forward else 1)
    return _scaled(z, n, norm)


@_complex("_fft_r2c.default")
def _(x, axes, norm, onesided):
    z, n = Complex(x, ops.zeros_like(x)), 1
    for axis in axes:
        n *= x.shape[axis]
        z = _transformed(z, axis % x.ndim, -1)
    if onesided:
        kept = (slice(None),) * (axes[-1] % x.ndim) + (slice(0, x.shape[axes[-1]] // 2 + 1),)
        z = Complex(z.real[kept], z.imag[kept])
    return _scaled(z, n, norm)


@_complex("_fft_c2r.default")
def _(z, axes, norm, size):
    *others, axis = [axis % z.real.ndim for axis in axes]
    n = size
    for other in others:
        n *= z.real.shape[other]
        z = _transformed(z, other, 1)
    # The other half are the conjugates.
    at = lambda start, end: (slice(None),) * axis + (slice(start, end),)
    half = Complex(z.real[at(0, size // 2 + 1)], z.imag[at(0, size // 2 + 1)])
    count = size - (size // 2 + 1)
    rest = [ops.flip(part[at(1, count + 1)], axis) for part in (half.real, half.imag)]
    if count:
        half = Complex(ops.concat([half.real, rest[0]], axis), ops.concat([half.imag, -rest[1]], axis))
    # The first element of a real signal's transform is real, and so is the middle one of an even length.
    return _scaled(_transformed(half, axis, 1), n, norm).real


def is_complex(node) -> bool:
    """Whether a node of a graph makes or reads a complex tensor."""
    def has(value):
        if isinstance(value, (list, tuple)):
            return any(map(has, value))
        return hasattr(getattr(value, "dtype", None), "is_complex") and value.dtype.is_complex
    return has(node.meta.get("val")) or any(has(each.meta.get("val")) for each in node.all_input_nodes)


def refuse_result(value):
    """Raises ArgumentError for a complex result of a module."""
    if isinstance(value, Complex):
        raise refuse(ArgumentError, "a result is complex; return torch.view_as_real of it")
    return value
