# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of NumPy as constants of a program."""

from __future__ import annotations

import numpy as np

from . import ir
from .dtypes import DType
from .ir import TensorType, constants
from .ir.types import is_float


def constant(builder: ir.Builder, array: np.ndarray, dtype: DType) -> ir.Value:
    """An array as a constant of its shape."""
    type = TensorType(array.shape, dtype.element)
    if array.size == 0:
        return builder.constant(0, type)
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(-1)
    if (bits == bits[0]).all():
        return builder.constant(_number(array.reshape(-1)[0], dtype), type)
    if dtype.element != "i1" and array.size > 16:
        return builder.dense(constants.raw(np.ascontiguousarray(array).tobytes()), type)
    return builder.dense(constants.dense(_nested(array, dtype), dtype.element), type)


def _number(value, dtype):
    if dtype.element == "bf16" and value.dtype.kind == "u":  # without ml_dtypes: the upper half of an f32
        value = (np.asarray(value).astype(np.uint32) << 16).view(np.float32)[()]
    return float(value) if is_float(dtype.element) else int(value)


def _nested(array, dtype):
    return [_nested(a, dtype) for a in array] if array.ndim else _number(array[()], dtype)
