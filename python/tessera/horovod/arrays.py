# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of the libraries that a script may use, as bytes of the host, and results as arrays of the same library."""

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
    """Contiguous elements of a type in memory of the host, as bytes. tessera.distributed reads it as a tensor of PyTorch, so that
    bfloat16 needs no type of NumPy."""

    flat: np.ndarray
    dtype: str
    shape: tuple[int, ...]

    device = _HOST

    def data_ptr(self) -> int:
        return self.flat.__array_interface__["data"][0]

    def is_contiguous(self) -> bool:
        return True

    def numel(self) -> int:
        return math.prod(self.shape)

    def element_size(self) -> int:
        return TYPES[self.dtype]

    def copy(self) -> Array:
        return Array(self.flat.copy(), self.dtype, self.shape)

    @property
    def row(self) -> int:
        """Elements of a row of the first dimension."""
        return math.prod(self.shape[1:])


def empty(dtype: str, shape) -> Array:
    return Array(np.empty(math.prod(shape) * TYPES[dtype], np.uint8), dtype, tuple(int(n) for n in shape))


def zeros(dtype: str, shape) -> Array:
    made = empty(dtype, shape)
    made.flat[:] = 0
    return made


def is_torch(value) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def read(name: str, value) -> Array:
    """A copy of an array's elements; ArgumentError says why it is none that a call takes."""
    if is_torch(value):
        torch = sys.modules["torch"]
        if value.is_sparse:
            raise ArgumentError(f"{name} is sparse; pass to_dense() of it")
        kind, data = str(value.dtype).removeprefix("torch."), value.detach().cpu().contiguous()
        _known(name, kind)
        flat = data.reshape(-1).view(torch.uint8).numpy().copy() if data.numel() else np.empty(0, np.uint8)
        return Array(flat, kind, tuple(value.shape))
    if isinstance(value, Tensor):
        array, kind = value._concrete("a collective"), value.dtype.name
    elif isinstance(value, (np.ndarray, np.generic)):
        array, kind = np.asarray(value), np.asarray(value).dtype.name
        if array.dtype.byteorder == ">":
            raise ArgumentError(f"{name} is big-endian; convert it with astype")
    else:
        raise ArgumentError(f"{name} is {type(value).__name__}; it is an array of NumPy, or a tensor of tessera or PyTorch")
    _known(name, kind)
    return Array(np.array(array, order="C", copy=True).reshape(-1).view(np.uint8), kind, array.shape)


def _known(name: str, kind: str) -> None:
    if kind not in TYPES:
        raise ArgumentError(f"{name} is of {kind}; there are {', '.join(TYPES)}")


def write(array: Array, like, into: bool = False):
    """The array as one of the library of `like`; `into`: copied into `like` itself, which has its shape and type."""
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
    if array.dtype != "bfloat16":
        dtype = np.dtype(array.dtype)
    return array.flat.copy().view(np.uint16 if dtype is None else dtype).reshape(array.shape)


def check_writable(name: str, value) -> None:
    """What a call with an underscore changes."""
    if isinstance(value, Tensor):
        raise ArgumentError(f"{name} is a tensor of tessera, which cannot be changed; use the call without '_', which returns a new one")
    if isinstance(value, np.generic) or isinstance(value, np.ndarray) and not value.flags.writeable:
        raise ArgumentError(f"{name} is read-only, and the call writes to it")
