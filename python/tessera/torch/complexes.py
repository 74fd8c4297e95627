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
from .registry import RULES, dtype_of

COMPLEX: dict = {}


def _complex(*names):
    """Decorator: the rule of operations with a complex operand or result."""
    def register(function):
        for name in names:
            COMPLEX[name] = function
        return function
    return register


# Operations that move or add elements act on both parts alike.
_BY_PARTS = ["alias", "as_strided", "cat", "clone", "constant_pad_nd", "cumsum", "diagonal", "expand", "flip", "gather", "index.Tensor", "index_add",
             "index_select", "mean", "mean.dim", "permute", "repeat", "reshape", "roll", "scatter_add", "select.int", "slice.Tensor", "split.Tensor",
             "split_with_sizes", "squeeze.dim", "squeeze.dims", "stack", "sum.default", "sum.dim_IntList", "t", "transpose.int", "tril", "triu",
             "unfold", "unsqueeze", "view", "_unsafe_view"]
# As these do, of which an operand may be real.
_BY_PARTS_OF_PAIRS = {"copy.default": (0, 1), "index_put.default": (0, 2), "scatter.src": (0, 3), "select_scatter.default": (0, 1),
                      "slice_scatter.default": (0, 1), "where.self": (1, 2)}


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
    for name, places in _BY_PARTS_OF_PAIRS.items():
        apply = _parts(name)
        COMPLEX[name] = lambda *args, apply=apply, places=places, **kwargs: apply(
            *[_whole(a) if i in places else a for i, a in enumerate(args)], **kwargs)
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


def _whole(value) -> Complex:
    """A pair of tensors of one shape."""
    z = pair(value)
    if isinstance(z.real, Tensor) and isinstance(z.imag, Tensor):
        return z
    real = z.real if isinstance(z.real, Tensor) else ops.full((), float(z.real))
    return Complex(real, z.imag if isinstance(z.imag, Tensor) else ops.full(real.shape, float(z.imag), real.dtype))


def of_last_axis(x) -> Complex:
    """The complex tensor whose parts are the two elements of the last axis."""
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


_PARTS = {"torch.complex64": "float32", "torch.complex128": "float64"}


@_complex("_to_copy.default")
def _(z, dtype=None, **_):
    """To a real type the real part is converted."""
    if dtype is None:
        return z
    if str(dtype) not in _PARTS:
        return pair(z).real.astype(dtype_of(dtype))
    return _whole(z).each(lambda part: part.astype(_PARTS[str(dtype)]))


def _full(shape, value, dtype):
    value = complex(value)
    return Complex(ops.full(shape, value.real, dtype), ops.full(shape, value.imag, dtype))


@_complex("full.default")
def _(shape, value, dtype=None, **_):
    return _full(shape, value, _PARTS.get(str(dtype), "float32"))


@_complex("full_like.default")
def _(x, value, dtype=None, **_):
    like = x.real if isinstance(x, Complex) else x
    if dtype is not None and str(dtype) not in _PARTS:
        return ops.full(like.shape, value, dtype_of(dtype))
    return _full(like.shape, value, _PARTS.get(str(dtype), like.dtype))


@_complex("empty.memory_format")
def _(shape, *_, dtype=None, **__):
    return _full(shape, 0, _PARTS.get(str(dtype), "float32"))


@_complex("scalar_tensor.default")
def _(value, dtype=None, **_):
    return _full((), value, _PARTS.get(str(dtype), "float32"))


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


def _like(y, z):
    """Integers and booleans in the type of the parts of z, a complex value or number."""
    if not isinstance(y, Tensor) or y.dtype.kind == "float":
        return y
    return y.astype(z.real.dtype if isinstance(z.real, Tensor) else "float32")


@_complex("mul.Tensor", "mul.Scalar")
def _(x, y):
    if not isinstance(x, Complex):
        x, y = y, x
    if not isinstance(y, (Complex, complex)):
        return Complex(x.real * _like(y, x), x.imag * _like(y, x))
    return complexes.multiply(x, pair(y))


@_complex("div.Tensor", "div.Scalar")
def _(x, y):
    if not isinstance(y, (Complex, complex)):
        return Complex(x.real / _like(y, x), x.imag / _like(y, x))
    return complexes.divide(pair(x), pair(y))


for _name, _function in {**complexes.FUNCTIONS, "sigmoid": complexes.logistic, "reciprocal": complexes.reciprocal}.items():
    _complex(f"{_name}.default")(lambda z, f=_function: f(ops, z))


@_complex("pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar")
def _(x, y):
    """exp(y log x), and 0 to a power is 0; integers by multiplications."""
    if not isinstance(y, (Complex, Tensor)) and complex(y).imag == 0 and complex(y).real == int(complex(y).real) and abs(complex(y).real) <= 64:
        return complexes.power(ops, x, int(complex(y).real))
    x = _whole(x)
    none = ops.logical_and(ops.equal(x.real, 0), ops.equal(x.imag, 0))
    base = Complex(ops.where(none, 1.0, x.real), x.imag)
    found = complexes.exponential(ops, complexes.multiply(complexes.log(ops, base), pair(y)))
    return found.each(lambda part: ops.where(none, 0.0, part))


@_complex("eq.Tensor", "eq.Scalar")
def _(x, y):
    x, y = pair(x), pair(y)
    return ops.logical_and(ops.equal(x.real, y.real), ops.equal(x.imag, y.imag))


@_complex("ne.Tensor", "ne.Scalar")
def _(x, y):
    x, y = pair(x), pair(y)
    return ops.logical_or(ops.not_equal(x.real, y.real), ops.not_equal(x.imag, y.imag))


for _name, _join in (("isnan", ops.logical_or), ("isinf", ops.logical_or), ("isfinite", ops.logical_and)):
    _complex(f"{_name}.default")(lambda z, f=getattr(ops, _name), join=_join: join(f(z.real), f(z.imag)))


@_complex("prod.default")
def _(z, dtype=None):
    return complexes.product(ops, z, list(range(z.real.ndim)))


@_complex("prod.dim_int")
def _(z, axis, keepdim=False, dtype=None):
    axis %= z.real.ndim
    found = complexes.product(ops, z, [axis])
    return found.each(lambda part: ops.expand_dims(part, axis)) if keepdim else found


@_complex("var.correction")
def _(z, axes=None, correction=1, keepdim=False):
    """The sum of the variances of both parts, a real number."""
    return RULES["var.correction"](z.real, axes, correction, keepdim) + RULES["var.correction"](z.imag, axes, correction, keepdim)


@_complex("linalg_vector_norm.default", "norm.ScalarOpt_dim", "norm.Scalar")
def _(z, *args, **kwargs):
    return RULES["linalg_vector_norm.default"](complexes.absolute(ops, z), *args, **{k: v for k, v in kwargs.items() if k != "dtype"})


@_complex("addmm.default")
def _(z, x, y, beta=1, alpha=1):
    found = COMPLEX["mm.default"](x, y)
    return COMPLEX["add.Tensor"](COMPLEX["mul.Tensor"](pair(z), beta), COMPLEX["mul.Tensor"](found, alpha))


@_complex("mm.default", "bmm.default", "matmul.default")
def _(x, y):
    x, y = [_whole(z) if isinstance(z, Complex) else z for z in (x, y)]
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
