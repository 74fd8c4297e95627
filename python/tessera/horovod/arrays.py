# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convert arrays of NumPy, PyTorch and tessera to bytes on the host, and results back to arrays of the same library."""

from __future__ import annotations

import dataclasses
import math
import sys

import numpy as np

from .. import dtypes
from ..errors import ArgumentError
from ..tensor import Tensor, from_array

TYPES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint64": 8,
         "uint32": 4, "uint16": 2, "uint8": 1, "bool": 1}
_HOST = type("Device", (), {"type": "cpu"})()


@dataclasses.dataclass
class Array:
    """A contiguous array on the host, as bytes.

    tessera.distributed reads it through the interface of a PyTorch tensor, since NumPy has no bfloat16.
    """

    flat: np.ndarray
    dtype: str
    shape: tuple[int, ...]

    device = _HOST

    def data_ptr(self) -> int:
        """The address of the first element, as of a tensor of PyTorch."""
        return self.flat.__array_interface__["data"][0]

    def is_contiguous(self) -> bool:
        return True

    def numel(self) -> int:
        return math.prod(self.shape)

    def element_size(self) -> int:
        """Bytes of an element."""
        return TYPES[self.dtype]

    def copy(self) -> Array:
        return Array(self.flat.copy(), self.dtype, self.shape)

    @property
    def row(self) -> int:
        """Number of elements of a row (an index of the first dimension)."""
        return math.prod(self.shape[1:])


def empty(dtype: str, shape) -> Array:
    """An array of undefined elements in memory of the host. dtype: a key of TYPES."""
    return Array(np.empty(math.prod(shape) * TYPES[dtype], np.uint8), dtype, tuple(int(n) for n in shape))


def zeros(dtype: str, shape) -> Array:
    """The same, of zeros."""
    made = empty(dtype, shape)
    made.flat[:] = 0
    return made


def is_torch(value) -> bool:
    """Whether a value is a tensor of PyTorch; imports nothing."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def read(name: str, value) -> Array:
    """A copy of an array's elements. Raises ArgumentError if a call does not support it."""
    if is_torch(value):
        torch = sys.modules["torch"]
        if value.is_sparse:
            raise ArgumentError(f"{name} is sparse; convert it with to_dense()")
        kind, data = str(value.dtype).removeprefix("torch."), value.detach().cpu().contiguous()
        _check_dtype(name, kind)
        flat = data.reshape(-1).view(torch.uint8).numpy().copy() if data.numel() else np.empty(0, np.uint8)
        return Array(flat, kind, tuple(value.shape))
    if isinstance(value, Tensor):
        array, kind = value._concrete("a collective"), value.dtype.name
    elif isinstance(value, (np.ndarray, np.generic)):
        array, kind = np.asarray(value), np.asarray(value).dtype.name
        if array.dtype.byteorder == ">":
            raise ArgumentError(f"{name} is big-endian; convert it with astype")
    else:
        raise ArgumentError(f"{name} is {type(value).__name__}; expected a NumPy array, or a tensor of tessera or PyTorch")
    _check_dtype(name, kind)
    return Array(np.array(array, order="C", copy=True).reshape(-1).view(np.uint8), kind, array.shape)


def _check_dtype(name: str, kind: str) -> None:
    if kind not in TYPES:
        raise ArgumentError(f"{name} has dtype {kind}; expected one of {', '.join(TYPES)}")


def write(array: Array, like, into: bool = False):
    """Convert an array to the library of `like`; with `into`, copy it into `like`, which has the same shape and dtype."""
    if is_torch(like):
        torch = sys.modules["torch"]
        flat = torch.from_numpy(array.flat.copy()).view(getattr(torch, array.dtype)) if array.flat.size else torch.empty(0, dtype=getattr(torch, array.dtype))
        made = flat.reshape(array.shape)
        if into:
            with torch.no_grad():
                return like.copy_(made)
        return made.to(like.device)
    if into:
        like[...] = numpy_of(array, like.dtype)
        return like
    if isinstance(like, Tensor):
        kind = dtypes.dtype(array.dtype)
        return from_array(array.flat.view(kind.numpy).reshape(array.shape).copy(), kind)
    return numpy_of(array, getattr(like, "dtype", None))


def numpy_of(array: Array, dtype=None) -> np.ndarray:
    """An Array as a NumPy array; bfloat16 as `dtype`, or as its bits (uint16) if `dtype` is None."""
    if array.dtype != "bfloat16":
        dtype = np.dtype(array.dtype)
    return array.flat.copy().view(np.uint16 if dtype is None else dtype).reshape(array.shape)


def check_writable(name: str, value) -> None:
    """Raise ArgumentError if an in-place call cannot modify `value`."""
    if isinstance(value, Tensor):
        raise ArgumentError(f"{name} is a tensor of tessera, which is immutable; use the call without '_', which returns a new one")
    if isinstance(value, np.generic) or isinstance(value, np.ndarray) and not value.flags.writeable:
        raise ArgumentError(f"{name} is read-only, and the call writes to it")
