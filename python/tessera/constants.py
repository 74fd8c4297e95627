# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy arrays as constants of a program."""

from __future__ import annotations

import numpy as np

from . import ir
from .ir import TensorType, constants
from .ir.types import is_float, is_unsigned


def constant(builder: ir.Builder, array: np.ndarray, element: str) -> ir.Value:
    """A constant of the array's shape and the given element type.

    Unsigned arrays may take a signless type: bits are kept.
    """
    type = TensorType(array.shape, element)
    if array.size == 0:
        return builder.constant(0, type)
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(-1)
    if (bits == bits[0]).all():
        return builder.constant(_number(array.reshape(-1)[0], element), type)
    if element != "i1" and array.size > 16:
        return builder.dense(constants.raw(np.ascontiguousarray(array).tobytes()), type)
    return builder.dense(constants.dense(_nested(array, element), element), type)


def _number(value, element):
    if element == "bf16" and value.dtype.kind == "u":  # bits of a bfloat16 are the upper half of an f32
        value = (np.asarray(value).astype(np.uint32) << 16).view(np.float32)[()]
    if is_float(element):
        return float(value)
    return constants.as_signed(int(value), element) if value.dtype.kind == "u" and not is_unsigned(element) else int(value)


def _nested(array, element):
    return [_nested(a, element) for a in array] if array.ndim else _number(array[()], element)
