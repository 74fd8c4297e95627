# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types: their names in Python, NumPy and MLIR, and type promotion."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from .errors import DTypeError
from .source import refuse

_NUMPY = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i16": np.int16,
          "i8": np.int8, "i1": np.bool_, "index": np.int64, "ui64": np.uint64, "ui32": np.uint32, "ui16": np.uint16, "ui8": np.uint8}


@functools.cache
def numpy_of(element: str) -> np.dtype:
    """The NumPy type of an MLIR element type.

    bf16 needs the package ml_dtypes (installed with JAX); without it the type is uint16, which holds the bits.
    """
    if element == "bf16":
        try:
            import ml_dtypes
            return np.dtype(ml_dtypes.bfloat16)
        except ImportError:
            return np.dtype(np.uint16)
    return np.dtype(_NUMPY[element])


@dataclasses.dataclass(frozen=True)
class DType:
    """An element type: `name` in Python, `element` in `tessera.ir` and MLIR, `kind` "float", "integer" or "bool"."""

    name: str
    element: str
    kind: str

    def __repr__(self):
        return f"tessera.{self.name}"

    def __str__(self):
        return self.name

    def __reduce__(self):  # copying and unpickling return the same object
        return of_element, (self.element,)

    @property
    def numpy(self) -> np.dtype:
        """The NumPy type. For bfloat16 without the package ml_dtypes it is uint16, which holds the bits."""
        return numpy_of(self.element)

    @property
    def dtype(self) -> np.dtype:
        """The NumPy type: `np.dtype(ts.float32)`, and what takes arrays by their shape and dtype, understand ours."""
        return self.numpy

    def of(self, array: np.ndarray) -> np.ndarray:
        """The array with its bits reinterpreted as this type if that is unsigned: MLIR's integers are signless."""
        return array.view(self.numpy) if self.element.startswith("ui") else array

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.numpy.itemsize


float64, float32 = DType("float64", "f64", "float"), DType("float32", "f32", "float")
float16, bfloat16 = DType("float16", "f16", "float"), DType("bfloat16", "bf16", "float")
int64, int32 = DType("int64", "i64", "integer"), DType("int32", "i32", "integer")
int16, int8 = DType("int16", "i16", "integer"), DType("int8", "i8", "integer")
uint64, uint32 = DType("uint64", "ui64", "integer"), DType("uint32", "ui32", "integer")
uint16, uint8 = DType("uint16", "ui16", "integer"), DType("uint8", "ui8", "integer")
bool_ = DType("bool", "i1", "bool")

ALL = (float64, float32, float16, bfloat16, int64, int32, int16, int8, uint64, uint32, uint16, uint8, bool_)
_BY_NAME = {name: d for d in ALL for name in (d.name, d.element)} | {"bool_": bool_, "float": float32, "int": int64}


def dtype(value) -> DType:
    """The DType for a DType, a name ("float32", "f32"), a NumPy type or Python's float, int or bool.

    Raises DTypeError for unsupported types.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, np.dtype):
        return _of_numpy(value)
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    if isinstance(value, type) and value in (float, int, bool):
        return {float: float32, int: int64, bool: bool_}[value]
    try:
        return _of_numpy(np.dtype(value))
    except TypeError:
        return _named(str(value))


@functools.cache
def _of_numpy(value: np.dtype) -> DType:
    return _named(value.name)


def _named(name: str) -> DType:
    if name not in _BY_NAME:
        raise refuse(DTypeError, f"element type {name} is not supported; convert with astype to one of {', '.join(map(str, ALL))}")
    return _BY_NAME[name]


def of_element(element: str) -> DType:
    """The dtype of an element type of the IR, such as "bf16" or "ui32". Raises KeyError for others."""
    return _BY_NAME[element]


_SIGNED = (int8, int16, int32, int64)


def promote(name: str, a: DType, b: DType) -> DType:
    """The result type of operation `name` on operands of types `a` and `b`.

    Within a kind the wider type; for a signed and an unsigned integer the narrowest signed type that holds both. Raises
    DTypeError for a float and an integer, float16 and bfloat16, uint64 and a signed integer.
    """
    if a is b:
        return a
    if a.kind == b.kind == "integer":
        if (a in _SIGNED) == (b in _SIGNED):
            return a if a.itemsize > b.itemsize else b
        signed, unsigned = (a, b) if a in _SIGNED else (b, a)
        wide = max(signed.itemsize, 2 * unsigned.itemsize)
        if wide <= 8:
            return next(d for d in _SIGNED if d.itemsize == wide)
    if a.kind == b.kind == "float":
        if a.itemsize != b.itemsize:
            return a if a.itemsize > b.itemsize else b
    raise refuse(DTypeError, f"'{name}' of {a} and {b}: convert one of them with astype first")
