# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types of NumPy and JAX as those of MLIR. Unsigned integers have the same bits; their operations differ."""

from __future__ import annotations

import numpy as np

from .. import ir
from ..ir import constants
from ..ir.types import width
from .errors import ImportFailure

SUPPORTED = "element types are f64, f32, f16, bf16, integers of 8 to 64 bits and bool"

_ELEMENTS = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
             "int16": "i16", "int8": "i8", "uint64": "i64", "uint32": "i32", "uint16": "i16", "uint8": "i8", "bool": "i1"}


def element_of(dtype) -> str | None:
    """The element type, None if there is none."""
    return _ELEMENTS.get(np.dtype(dtype).name) if not _is_extended(dtype) else None


def is_unsigned(dtype) -> bool:
    return np.dtype(dtype).kind == "u"


def is_float(dtype) -> bool:
    return element_of(dtype) in ir.types.FLOATS


def _is_extended(dtype) -> bool:
    """Types that are JAX's own, such as those of random keys."""
    return not isinstance(dtype, (np.dtype, str)) and not (isinstance(dtype, type) and issubclass(dtype, np.generic))


def constant(builder: ir.Builder, array) -> ir.Value:
    """An array as a constant of its shape."""
    array = np.asarray(array)
    element = element_of(array.dtype)
    if element is None:
        raise ImportFailure(f"a constant has type {array.dtype}; {SUPPORTED}", builder.location)
    type = ir.TensorType(array.shape, element)
    if array.size == 0:
        return builder.constant(0, type)
    first = array.reshape(-1)[:1]
    if (_bits(array) == _bits(first)).all():
        return builder.constant(_number(first[0], element), type)
    if element != "i1" and array.size > 16:
        return builder.dense(constants.raw(np.ascontiguousarray(array).tobytes()), type)
    return builder.dense(constants.dense(_nested(array, element), element), type)


def _bits(array):
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def _number(value, element):
    if element in ir.types.FLOATS:
        return float(value)
    return int(value) if element == "i1" or value.dtype.kind != "u" else int(_bits(np.asarray([value])).view(f"i{value.dtype.itemsize}")[0])


def _nested(array, element):
    return [_nested(a, element) for a in array] if array.ndim else _number(array[()], element)


def convert(b, x, source, target):
    """A scalar of NumPy type `source` as one of `target`; floats out of an integer's range become its nearest number."""
    a, c = element_of(source), element_of(target)
    if a == c:
        return x
    if is_float(source) and is_float(target):
        if width(a) == width(c):  # f16 and bf16
            x, a = b.cast("arith.extf", x, "f32"), "f32"
        return b.cast("arith.extf" if width(c) > width(a) else "arith.truncf", x, c)
    if c == "i1":
        zero = b.constant(0, x.type)
        return b.compare("une" if is_float(source) else "ne", x, zero)
    if is_float(source):
        return _float_to_integer(b, x, a, c, is_unsigned(target))
    unsigned = is_unsigned(source) or a == "i1"
    if is_float(target):
        return b.cast("arith.uitofp" if unsigned else "arith.sitofp", x, c)
    if width(c) > width(a):
        return b.cast("arith.extui" if unsigned else "arith.extsi", x, c)
    return b.cast("arith.trunci", x, c)


def _float_to_integer(b, x, source, target, unsigned):
    if source in ("f16", "bf16"):
        x = b.cast("arith.extf", x, "f32")
    bits = width(target)
    low, high = (0, 2 ** bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    beyond = b.constant(float(high + 1), x.type)
    above = b.compare("oge", x, beyond)
    below = b.compare("ole", x, b.constant(float(low), x.type))
    defined = b.apply("arith.andi", b.compare("olt", x, beyond), b.compare("ogt", x, b.constant(float(low), x.type)))
    inside = b.cast("arith.fptoui" if unsigned else "arith.fptosi", b.select(defined, x, b.constant(0, x.type)), target)
    result = b.select(below, b.constant(low, target), inside)
    return b.select(above, b.constant(-1 if unsigned else high, target), result)
