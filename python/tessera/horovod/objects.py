# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Serialization of objects with arrays: JSON and the elements of arrays. Decoding executes no code.

An object is None, a bool, int, float, str or bytes, an array of NumPy, tessera or PyTorch, or a list, tuple, set or
dict of objects; dict keys are str, int, float, bool or None.
"""

from __future__ import annotations

import base64
import importlib
import json
import struct

import numpy as np

from ..distributed import DistributedError
from ..errors import ArgumentError
from ..tensor import Tensor
from .arrays import TYPES, Array, is_torch, read, write

_MARK = "__tessera__"


def encode(value) -> bytes:
    """An object as bytes. Raises ArgumentError if it cannot be sent."""
    arrays: list[Array] = []
    header = json.dumps(_to_json(value, arrays)).encode()
    return b"".join([struct.pack("<q", len(header)), header, *(array.flat.tobytes() for array in arrays)])


def decode(data: bytes):
    """The object in `data`. Raises DistributedError if the bytes are invalid."""
    try:
        (size,) = struct.unpack_from("<q", data)
        return _from_json(json.loads(data[8:8 + size]), _Elements(data, 8 + size))
    except (ValueError, TypeError, KeyError, struct.error) as error:
        raise DistributedError(f"the bytes are not a valid object: {error}") from None


class _Elements:
    """Reads the elements of the arrays in order."""

    def __init__(self, data: bytes, at: int):
        self._data, self._at = data, at

    def take(self, dtype: str, shape: list[int]) -> Array:
        size = int(np.prod(shape, dtype=np.int64)) * TYPES[dtype]
        if size < 0 or len(self._data) - self._at < size:
            raise ValueError(f"{len(self._data) - self._at} bytes are left for an array of {size}")
        self._at += size
        return Array(np.frombuffer(self._data, np.uint8, size, self._at - size).copy(), dtype, tuple(shape))


def _to_json(value, arrays):
    if value is None or isinstance(value, (bool, int, float, str)) and type(value) in (type(None), bool, int, float, str):
        return value
    if isinstance(value, (bytes, bytearray)):
        return {_MARK: "bytes", "data": base64.b64encode(value).decode()}
    if isinstance(value, (np.ndarray, np.generic, Tensor)) or is_torch(value):
        array = read("an array of the object", value)
        arrays.append(array)
        library = "torch" if is_torch(value) else "tessera" if isinstance(value, Tensor) else "scalar" if isinstance(value, np.generic) else "numpy"
        return {_MARK: library, "dtype": array.dtype, "shape": list(array.shape)}
    if isinstance(value, list):
        return [_to_json(each, arrays) for each in value]
    if isinstance(value, (tuple, set, frozenset)) and not hasattr(value, "_fields"):
        return {_MARK: type(value).__name__, "items": [_to_json(each, arrays) for each in value]}
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value) and _MARK not in value:
            return {key: _to_json(each, arrays) for key, each in value.items()}
        return {_MARK: "dict", "items": [[_to_json(key, arrays), _to_json(each, arrays)] for key, each in value.items()]}
    raise ArgumentError(f"an object of type {type(value).__name__} cannot be sent; expected None, bool, int, float, str, bytes, an array, or "
                        "a list, tuple, set or dict of these")


def _from_json(value, elements):
    if isinstance(value, list):
        return [_from_json(each, elements) for each in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(_MARK)
    if kind is None:
        return {key: _from_json(each, elements) for key, each in value.items()}
    if kind == "bytes":
        return base64.b64decode(value["data"])
    if kind == "dict":
        return {_from_json(key, elements): _from_json(each, elements) for key, each in value["items"]}
    if kind in ("tuple", "set", "frozenset"):
        return {"tuple": tuple, "set": set, "frozenset": frozenset}[kind](_from_json(each, elements) for each in value["items"])
    array = elements.take(value["dtype"], value["shape"])
    if kind == "torch":
        return write(array, importlib.import_module("torch").empty(0))
    if kind == "tessera":
        return write(array, Tensor(0))
    whole = write(array, None)
    return whole[()] if kind == "scalar" else whole
