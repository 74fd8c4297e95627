# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call reads and writes: the memory of arrays."""

from __future__ import annotations

import dataclasses

import numpy as np

from ..errors import ArgumentError

_TYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32", "int16": "i16",
          "int8": "i8", "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "bool": "i1"}


@dataclasses.dataclass(frozen=True)
class Buffer:
    """Contiguous memory of `count` elements. `owner` keeps it."""

    owner: object
    address: int
    count: int
    type: str
    itemsize: int

    @property
    def bytes(self) -> int:
        return self.count * self.itemsize

    @property
    def text(self) -> str:
        return f"{self.count} {self.type}"

    def array(self) -> np.ndarray:
        """Its bytes, flat."""
        if self.count == 0:
            return np.empty(0, np.uint8)
        import_ = {"data": (self.address, False), "shape": (self.bytes,), "typestr": "|u1", "version": 3}
        return np.asarray(type("Memory", (), {"__array_interface__": import_, "owner": self.owner})())


def buffer(name: str, value, writable: bool = True) -> Buffer:
    """The memory of an array; ArgumentError says why it is none that a call can use."""
    if hasattr(value, "data_ptr") and hasattr(value, "is_contiguous"):  # PyTorch's, whose types NumPy may lack
        if value.device.type != "cpu":
            raise ArgumentError(f"{name} is on {value.device}; the backend works in memory of the host, which cpu() copies to")
        contiguous, kind, address, count, size = (value.is_contiguous(), str(value.dtype).removeprefix("torch."), value.data_ptr(),
                                                  value.numel(), value.element_size())
    else:
        array = _array(name, value)
        if writable and not array.flags.writeable:
            raise ArgumentError(f"{name} is read-only, and the call writes to it")
        contiguous, kind, address, count, size = (array.flags.c_contiguous, array.dtype.name, array.__array_interface__["data"][0],
                                                  array.size, array.dtype.itemsize)
        if array.dtype.byteorder == ">":
            raise ArgumentError(f"{name} is big-endian; convert it with astype")
    if kind not in _TYPES:
        raise ArgumentError(f"{name} is of {kind}; there are {', '.join(_TYPES)}")
    if not contiguous:
        raise ArgumentError(f"{name} is not contiguous; copy it, as with numpy.ascontiguousarray")
    return Buffer(value, address, count, _TYPES[kind], size)


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
            raise ArgumentError(f"{name} does not give its memory to the host: {error}") from None
        raise ArgumentError(f"{name} is {type(value).__name__}; it is a NumPy array, a tensor of PyTorch on the CPU, or what has "
                            "the buffer protocol or DLPack") from None


def buffers(name: str, values, size: int, writable: bool = True) -> list[Buffer]:
    """One for each rank of a group, of one type."""
    if not isinstance(values, (list, tuple)) or len(values) != size:
        count = f"of {len(values)} arrays" if isinstance(values, (list, tuple)) else type(values).__name__
        raise ArgumentError(f"{name} is {count}; it has one for each of the {size} ranks of the group")
    result = [buffer(f"{name}[{index}]", value, writable) for index, value in enumerate(values)]
    same_type(**{f"{name}[{index}]": each for index, each in enumerate(result)})
    return result


def same_type(**named: Buffer) -> None:
    (first, one), *rest = named.items()
    for name, other in rest:
        if one.type != other.type:
            raise ArgumentError(f"{first} is {one.type} and {name} is {other.type}; they have one type")


def joined(parts: list[Buffer]) -> Buffer:
    """New memory for all of them, one behind the other."""
    total, size = sum(part.count for part in parts), parts[0].itemsize
    owner = np.empty(total * size, np.uint8)
    return Buffer(owner, owner.__array_interface__["data"][0], total, parts[0].type, size)


def pack(parts: list[Buffer]) -> Buffer:
    """Copies them into new memory."""
    whole = joined(parts)
    at = 0
    for part in parts:
        whole.owner[at:at + part.bytes] = part.array()
        at += part.bytes
    return whole


def unpack(whole: Buffer, parts: list[Buffer]) -> None:
    at = 0
    for part in parts:
        part.array()[:] = whole.owner[at:at + part.bytes]
        at += part.bytes
