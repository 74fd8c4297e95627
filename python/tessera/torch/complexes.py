# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex tensors of PyTorch as pairs of real ones.

Programs are real: a complex value exists between the operations that make it (`view_as_complex`, `polar`, a transform)
and those that read it (`view_as_real`, `abs`), as in rotary embeddings written with complex numbers.
"""

from __future__ import annotations

import math

from .. import complexes, ops
from ..complexes import Complex
from ..errors import ArgumentError
from ..source import refuse
from ..tensor import Tensor
from .registry import RULES, rule

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
    return complexes.polar(ops, length, angle)


@_complex("_to_copy.default")
def _(z, **kwargs):
    return z if isinstance(z, Complex) else Complex(z.astype("float32"), ops.zeros_like(z).astype("float32"))


@_complex("abs.default")
def _(z):
    return complexes.absolute(ops, z)


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
    return complexes.multiply(x, pair(y))


@_complex("div.Tensor", "div.Scalar")
def _(x, y):
    if not isinstance(y, (Complex, complex)):
        return Complex(x.real / y, x.imag / y)
    return complexes.divide(pair(x), pair(y))


@_complex("exp.default")
def _(z):
    return complexes.exponential(ops, z)


@_complex("mm.default", "bmm.default", "matmul.default")
def _(x, y):
    if not isinstance(x, Complex):
        return Complex(x @ y.real, x @ y.imag)
    if not isinstance(y, Complex):
        return Complex(x.real @ y, x.imag @ y)
    return complexes.multiply(x, y, lambda x, y: x @ y)


def _scaled(value, count, norm):
    """norm of PyTorch's transforms: 0 none, 1 divides by the root of the number of elements, 2 by that number."""
    if norm == 0:
        return value
    factor = 1 / math.sqrt(count) if norm == 1 else 1 / count
    return value.each(lambda part: part * factor) if isinstance(value, Complex) else value * factor


def _axes(x, axes):
    return [axis % x.ndim for axis in axes]


@_complex("_fft_c2c.default")
def _(z, axes, norm, forward):
    axes = _axes(z.real, axes)
    return _scaled(complexes.transform(ops, z, axes, -1 if forward else 1), math.prod(z.real.shape[d] for d in axes), norm)


@_complex("_fft_r2c.default")
def _(x, axes, norm, onesided):
    axes = _axes(x, axes)
    return _scaled(complexes.of_real(ops, x, axes, onesided), math.prod(x.shape[d] for d in axes), norm)


@_complex("_fft_c2r.default")
def _(z, axes, norm, size):
    axes = _axes(z.real, axes)
    return _scaled(complexes.to_real(ops, z, axes, size), size * math.prod(z.real.shape[d] for d in axes[:-1]), norm)


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
