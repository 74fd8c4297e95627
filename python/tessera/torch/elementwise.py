# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on each element alone, and tensors from nothing."""

from __future__ import annotations

from .. import nn, ops
from ..nn import functional as F
from .registry import RULES, dtype_of, rule


for _name in ("exp", "expm1", "log", "log1p", "log2", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "sinh", "cosh", "asin", "acos", "atan", "erf",
              "floor", "ceil", "trunc", "round", "abs", "sign", "isnan", "isinf", "logical_not", "sigmoid"):
    RULES[f"{_name}.default"] = getattr(ops, _name)
RULES["neg.default"] = ops.negative
RULES["reciprocal.default"] = lambda x: 1 / x
RULES["bitwise_not.default"] = lambda x: ~x
for _name, _function in dict(mul=ops.multiply, div=ops.divide, maximum=ops.maximum, minimum=ops.minimum, eq=ops.equal, ne=ops.not_equal,
                             lt=ops.less, le=ops.less_equal, gt=ops.greater, ge=ops.greater_equal, pow=ops.pow, atan2=ops.atan2,
                             logical_and=ops.logical_and, logical_or=ops.logical_or, bitwise_and=ops.bitwise_and,
                             bitwise_or=ops.bitwise_or, remainder=ops.remainder).items():
    for _kind in ("Tensor", "Scalar", "default", "Tensor_Tensor", "Tensor_Scalar"):
        RULES[f"{_name}.{_kind}"] = _function


@rule("add.Tensor", "add.Scalar")
def _(x, y, alpha=1):
    return x + (y if alpha == 1 else y * alpha)


@rule("sub.Tensor", "sub.Scalar")
def _(x, y, alpha=1):
    return x - (y if alpha == 1 else y * alpha)


@rule("rsub.Scalar")
def _(x, y, alpha=1):
    return y - (x if alpha == 1 else x * alpha)


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


@rule("hardtanh.default", "clamp.default")
def _(x, low=None, high=None):
    return ops.clip(x, low, high)


@rule("clone.default", "alias.default", "detach.default", "contiguous.default", "lift_fresh_copy.default", "dropout.default")
def _(x, *_, **__):
    return x


@rule("_to_copy.default")
def _(x, dtype=None, **_):
    return x if dtype is None else x.astype(dtype_of(dtype))


@rule("where.self")
def _(condition, x, y):
    return ops.where(condition, x, y)


@rule("masked_fill.Scalar", "masked_fill.Tensor")
def _(x, mask, value):
    return ops.where(mask, value, x)


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
