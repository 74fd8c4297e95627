# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise operations, and creation of tensors."""

from __future__ import annotations

import math

from .. import nn, ops
from ..nn import functional as F
from ..ops.base import tensor_of
from ..tensor import Tensor
from .registry import RULES, dtype_of, promoted, promoting, rule


for _name in ("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "sinh", "cosh", "asin", "acos", "atan", "erf",
              "floor", "ceil", "trunc", "round", "abs", "sign", "isnan", "isinf", "logical_not", "sigmoid", "asinh", "acosh", "atanh",
              "isfinite"):
    RULES[f"{_name}.default"] = getattr(ops, _name)
RULES["neg.default"] = ops.negative
RULES["reciprocal.default"] = lambda x: 1 / x
RULES["bitwise_not.default"] = lambda x: ~x
for _name, _function in dict(mul=ops.multiply, div=ops.divide, eq=ops.equal, ne=ops.not_equal,
                             lt=ops.less, le=ops.less_equal, gt=ops.greater, ge=ops.greater_equal, pow=ops.pow,
                             floor_divide=ops.floor_divide, bitwise_xor=ops.bitwise_xor,
                             logical_xor=ops.logical_xor, logical_and=ops.logical_and, logical_or=ops.logical_or, bitwise_and=ops.bitwise_and,
                             bitwise_or=ops.bitwise_or, remainder=ops.remainder, bitwise_left_shift=ops.bitwise_left_shift,
                             bitwise_right_shift=ops.bitwise_right_shift, __lshift__=ops.bitwise_left_shift,
                             __rshift__=ops.bitwise_right_shift, hypot=ops.hypot).items():
    for _kind in ("Tensor", "Scalar", "default", "Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor"):
        RULES[f"{_name}.{_kind}"] = promoting(_function)


RULES["signbit.default"] = lambda x: ops.less(ops.copysign(1.0, x), 0) if x.dtype.kind == "float" else ops.less(x, 0)
RULES["exp2.default"] = lambda x: ops.exp(x * math.log(2))
for _name in ("_assert_tensor_metadata.default", "_assert_async.msg", "_assert_scalar.default", "sym_constrain_range_for_size.default"):
    RULES[_name] = lambda *_, **__: None  # shapes and types are static


def _scaled(x, alpha):
    return x * alpha if isinstance(alpha, Tensor) or alpha != 1 else x


@rule("add.Tensor", "add.Scalar")
@promoting
def _(x, y, alpha=1):
    return x + _scaled(y, alpha)


@rule("sub.Tensor", "sub.Scalar")
@promoting
def _(x, y, alpha=1):
    return x - _scaled(y, alpha)


@rule("round.decimals")
def _(x, decimals=0):
    if x.dtype.kind != "float":
        return x
    scale = 10.0 ** abs(decimals)
    return ops.round(x * scale) / scale if decimals > 0 else ops.round(x / scale) * scale


@rule("angle.default")
def _(x):
    """0, or pi for negative numbers."""
    x = x if x.dtype.kind == "float" else x.astype("float32")
    return ops.where(ops.isnan(x), ops.stop_gradient(x), ops.where(ops.less(x, 0), math.pi, ops.zeros_like(x)))


@rule("ldexp.Tensor")
def _(x, y):
    x = x if x.dtype.kind == "float" else x.astype("float32")
    return x * 2.0 ** y.astype(x.dtype)


@rule("rsub.Scalar")
def _(x, y, alpha=1):
    return y - _scaled(x, alpha)


@rule("relu.default")
def _(x):
    return nn.relu(x)


@rule("gelu.default")
def _(x, approximate="none"):
    return F.gelu(x, approximate == "tanh")


@rule("silu.default")
def _(x):
    return F.silu(x)


@rule("leaky_relu.default")
def _(x, slope=0.01):
    return F.leaky_relu(x, slope)


@rule("div.Tensor_mode", "div.Scalar_mode")
@promoting
def _(x, y, rounding_mode=None):
    if rounding_mode == "floor":
        return ops.floor_divide(x, y)
    quotient = ops.divide(x, y)
    return quotient if rounding_mode is None else ops.trunc(quotient)


@rule("hardtanh.default", "clamp.default")
def _(x, low=None, high=None):
    return ops.clip(x, low, high)


@rule("detach.default", "detach_.default", "detach_copy.default")
def _(x):
    return ops.stop_gradient(x)


@rule("clone.default", "alias.default", "contiguous.default", "lift_fresh_copy.default", "alias_copy.default",
      "dropout.default")
def _(x, *_, **__):
    return x


@rule("_to_copy.default")
def _(x, dtype=None, **_):
    if not hasattr(x, "astype"):  # a number, under vmap
        return ops.full((), x, dtype_of(dtype) if dtype is not None else None)
    return x if dtype is None else x.astype(dtype_of(dtype))


@rule("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def _(condition, x, y):
    return ops.where(condition, *promoted(x, y))


@rule("copy.default")
def _(x, source, non_blocking=False):
    return ops.broadcast_to(tensor_of(source, "copy").astype(x.dtype), x.shape)


@rule("fill.Scalar", "fill.Tensor")
def _(x, value):
    return ops.broadcast_to(tensor_of(value, "fill").astype(x.dtype), x.shape)


@rule("empty.memory_format", "empty_permuted.default")
def _(shape, *_, dtype=None, **__):
    return ops.zeros(shape, dtype_of(dtype) if dtype is not None else "float32")


@rule("masked_fill.Scalar", "masked_fill.Tensor")
def _(x, mask, value):
    return ops.where(mask, value.astype(x.dtype) if hasattr(value, "astype") else value, x)


@rule("full.default")
def _(shape, value, dtype=None, **_):
    return ops.full(shape, value, dtype_of(dtype) if dtype is not None else None)


@rule("full_like.default")
def _(x, value, dtype=None, **_):
    return ops.full(x.shape, value, dtype_of(dtype) if dtype is not None else x.dtype)


@rule("arange.start_step", "arange.default", "arange.start")
def _(start, end=None, step=1, dtype=None, **_):
    return ops.arange(start, end, step, dtype_of(dtype) if dtype is not None else None)


@rule("scalar_tensor.default")
def _(value, dtype=None, **_):
    return ops.full((), value, dtype_of(dtype) if dtype is not None else None)
