# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy and JAX element types as MLIR ones. Unsigned integers map to signless types of the same width."""

from __future__ import annotations

import numpy as np

from .. import constants, ir
from ..ir import scalars
from ..ir.constants import as_signed, greatest, least
from .errors import ImportFailure

SUPPORTED = "element types are f64, f32, f16, bf16, integers of 8 to 64 bits and bool"

_ELEMENTS = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
             "int16": "i16", "int8": "i8", "uint64": "i64", "uint32": "i32", "uint16": "i16", "uint8": "i8", "bool": "i1"}


def element_of(dtype) -> str | None:
    """The MLIR element type; None if it is not supported."""
    return _ELEMENTS.get(np.dtype(dtype).name) if not _is_extended(dtype) else None


def kind_of(dtype) -> str:
    """The element type with its sign: ui32 for values of type i32 (tessera.ir.scalars)."""
    return f"u{element_of(dtype)}" if is_unsigned(dtype) else element_of(dtype)


def is_unsigned(dtype) -> bool:
    return np.dtype(dtype).kind == "u"


def is_float(dtype) -> bool:
    return element_of(dtype) in ir.types.FLOATS


def _is_extended(dtype) -> bool:
    """Whether it is one of JAX's own dtypes, such as those of random keys."""
    return not isinstance(dtype, (np.dtype, str)) and not (isinstance(dtype, type) and issubclass(dtype, np.generic))


def constant(builder: ir.Builder, array) -> ir.Value:
    """An array as a constant of its shape. Raises ImportFailure for unsupported types."""
    array = np.asarray(array)
    element = element_of(array.dtype)
    if element is None:
        raise ImportFailure(f"a constant has type {array.dtype}; {SUPPORTED}", builder.location)
    return constants.constant(builder, array, element)


def convert(builder: ir.Builder, x: ir.Value, source, target) -> ir.Value:
    """A scalar converted from NumPy type `source` to `target`."""
    return scalars.convert(builder, x, kind_of(source), kind_of(target), element_of(target))


def bound(dtype, largest: bool) -> float | int:
    """The greatest or least number of a type; for unsigned types the signed number with the same bits."""
    number = (greatest if largest else least)(kind_of(dtype))
    return as_signed(number, kind_of(dtype)) if is_unsigned(dtype) else number
