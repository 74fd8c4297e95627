# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Buffers: the memory of the arrays that a call reads and writes."""

from __future__ import annotations

import dataclasses
import math
import sys

import numpy as np

from ..errors import ArgumentError

_TYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32", "int16": "i16",
          "int8": "i8", "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "bool": "i1"}


@dataclasses.dataclass(frozen=True)
class Buffer:
    """Contiguous memory of `count` elements, on device 'cpu' or 'cuda'.

    owner: keeps the memory alive. parts: on a GPU, the addresses of parts that are not adjacent. stream: CUDA stream
    whose issued work precedes the call.
    """

    owner: object
    address: int
    count: int
    type: str
    itemsize: int
    device: str = "cpu"
    stream: int = 0
    parts: tuple[int, ...] = ()

    @property
    def bytes(self) -> int:
        return self.count * self.itemsize

    @property
    def text(self) -> str:
        """Count and type, as messages are compared: "16 f32"."""
        return f"{self.count} {self.type}"

    def array(self) -> np.ndarray:
        """The bytes of the buffer, as a flat array."""
        if self.count == 0:
            return np.empty(0, np.uint8)
        import_ = {"data": (self.address, False), "shape": (self.bytes,), "typestr": "|u1", "version": 3}
        return np.asarray(type("Memory", (), {"__array_interface__": import_, "owner": self.owner})())


def buffer(name: str, value, writable: bool = True) -> Buffer:
    """The memory of an array. Raises ArgumentError if a call cannot use it."""
    if hasattr(value, "data_ptr") and hasattr(value, "is_contiguous"):  # a PyTorch tensor; NumPy may lack its dtype
        if value.device.type not in ("cpu", "cuda"):
            raise ArgumentError(f"{name} is on {value.device}; groups support 'cpu' and 'cuda'")
        device, stream = value.device.type, 0
        if device == "cuda":
            stream = sys.modules["torch"].cuda.current_stream(value.device).cuda_stream
        contiguous, kind, address, count, size = (value.is_contiguous(), str(value.dtype).removeprefix("torch."), value.data_ptr(),
                                                  value.numel(), value.element_size())
    elif hasattr(value, "__cuda_array_interface__"):
        device, (contiguous, kind, address, count, size, stream) = "cuda", _on_device(name, value, writable)
    else:
        device, stream, array = "cpu", 0, _array(name, value)
        if writable and not array.flags.writeable:
            raise ArgumentError(f"{name} is read-only, and the call writes to it")
        contiguous, kind, address, count, size = (array.flags.c_contiguous, array.dtype.name, array.__array_interface__["data"][0],
                                                  array.size, array.dtype.itemsize)
        if array.dtype.byteorder == ">":
            raise ArgumentError(f"{name} is big-endian; convert it with astype")
    if kind not in _TYPES:
        raise ArgumentError(f"{name} has dtype {kind}; expected one of {', '.join(_TYPES)}")
    if not contiguous:
        raise ArgumentError(f"{name} is not contiguous; copy it, for example with numpy.ascontiguousarray")
    return Buffer(value, address, count, _TYPES[kind], size, device, stream)


def _on_device(name: str, value, writable: bool):
    """(is contiguous, dtype, address, number of elements, bytes per element, stream) from the CUDA array interface."""
    interface = value.__cuda_array_interface__
    address, is_read_only = interface["data"]
    if writable and is_read_only:
        raise ArgumentError(f"{name} is read-only, and the call writes to it")
    if interface["typestr"].startswith(">"):
        raise ArgumentError(f"{name} is big-endian; convert it with astype")
    dtype, shape, strides = np.dtype(interface["typestr"]), tuple(interface["shape"]), interface.get("strides")
    # PyTorch and ml_dtypes export bfloat16 as V2.
    kind = "bfloat16" if dtype.kind == "V" and dtype.itemsize == 2 else dtype.name
    dense, step = [], dtype.itemsize
    for extent in reversed(shape):
        dense.insert(0, step)
        step *= extent
    contiguous = strides is None or math.prod(shape) == 0 or all(
        extent == 1 or stride == wanted for extent, stride, wanted in zip(shape, strides, dense))
    return contiguous, kind, address or 0, math.prod(shape), dtype.itemsize, interface.get("stream") or 0


def _array(name: str, value) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    try:
        return np.asarray(memoryview(value))
    except TypeError:
        pass
    try:
        return np.from_dlpack(value)
    except (AttributeError, TypeError, BufferError, RuntimeError, ValueError) as error:
        if hasattr(value, "__dlpack__"):
            raise ArgumentError(f"{name} does not export host memory: {error}") from None
        raise ArgumentError(f"{name} is {type(value).__name__}; expected a NumPy array, a PyTorch tensor, or an object with "
                            "the buffer protocol, DLPack or the CUDA array interface") from None


def buffers(name: str, values, size: int, writable: bool = True) -> list[Buffer]:
    """The buffers of a list with one array per rank, all of one dtype. Raises ArgumentError."""
    if not isinstance(values, (list, tuple)) or len(values) != size:
        count = f"a list of {len(values)} arrays" if isinstance(values, (list, tuple)) else type(values).__name__
        raise ArgumentError(f"{name} is {count}; expected one array for each of the {size} ranks of the group")
    result = [buffer(f"{name}[{index}]", value, writable) for index, value in enumerate(values)]
    same_type(**{f"{name}[{index}]": each for index, each in enumerate(result)})
    return result


def same_type(**named: Buffer) -> None:
    """Raise ArgumentError if buffers differ in dtype or device."""
    (first, one), *rest = named.items()
    for name, other in rest:
        if one.type != other.type:
            raise ArgumentError(f"{first} is {one.type} and {name} is {other.type}; they must have the same dtype")
        if one.device != other.device:
            raise ArgumentError(f"{first} is on '{one.device}' and {name} on '{other.device}'; they must be on the same device")


def joined(parts: list[Buffer]) -> Buffer:
    """A new buffer for the concatenation of `parts`; on a GPU, one that refers to the parts themselves."""
    total, size = sum(part.count for part in parts), parts[0].itemsize
    if parts[0].device != "cpu":
        owners, addresses = [part.owner for part in parts], tuple(part.address for part in parts)
        return Buffer(owners, 0, total, parts[0].type, size, parts[0].device, parts[0].stream, addresses)
    owner = np.empty(total * size, np.uint8)
    return Buffer(owner, owner.__array_interface__["data"][0], total, parts[0].type, size)


def pack(parts: list[Buffer]) -> Buffer:
    """The concatenation of `parts`, copied; on a GPU, a buffer that refers to the parts themselves."""
    whole = joined(parts)
    if whole.parts:
        return whole
    at = 0
    for part in parts:
        whole.owner[at:at + part.bytes] = part.array()
        at += part.bytes
    return whole


def unpack(whole: Buffer, parts: list[Buffer]) -> None:
    """Copy a buffer that `joined` returned into its parts."""
    if whole.parts:
        return
    at = 0
    for part in parts:
        part.array()[:] = whole.owner[at:at + part.bytes]
        at += part.bytes
