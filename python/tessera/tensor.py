# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors: with a value (an array and how it lies on a mesh), or traced (a value of a program that is being recorded).

Operators and methods that compute are those of `tessera.ops`, which attaches them (`ops/operators.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from . import dtypes
from .dtypes import DType
from .errors import DTypeError, ShapeError, TraceError
from .layout import SubAxisSharding, check, layout, listed, local_value
from .mesh import ProcessMesh
from .sharding import Sharding
from .source import refuse


try:
    from ._core import Buffered as _Base  # the buffer protocol, which classes of Python have from 3.12 on
except ImportError:
    _Base = object


@dataclasses.dataclass(frozen=True)
class Part:
    """What this process has of a value that lies in several processes as `sharding` says: `array`, the elements of the one box in
    `boxes`, or None and no box. A tensor's `_source` gives it without the other processes."""

    array: np.ndarray | None
    boxes: list[tuple[tuple[int, int], ...]]
    sharding: Sharding

    def fits(self, boxes) -> bool:
        """Whether it has what a process has to hold: those boxes, of which empty ones have no place."""
        def filled(found):
            return [each for each in found if all(begin < end for begin, end in each)]
        return boxes is not None and filled(boxes) == filled(self.boxes)


class Tensor(_Base):
    """A dense tensor (of one device) or a distributed one (with a mesh and placements).

    data: an array of any library that NumPy reads, nested lists, or a number. Floats of lists become float32, integers int64.
    Raises DTypeError for element types without a kernel.
    """

    __slots__ = ("shape", "dtype", "sharding", "_data", "_value", "_scope", "_weak", "_unused", "_mesh", "_gradient", "_source", "_own", "__weakref__")
    __array_priority__ = 1000  # NumPy leaves operators of mixed operands to this class

    def __init__(self, data, dtype=None):
        array = _array(data, dtype)
        self._init(array.shape, dtypes.dtype(array.dtype) if dtype is None else dtypes.dtype(dtype), array)

    def _init(self, shape, dtype: DType, array=None, sharding: Sharding | None = None, weak=False):
        self.shape, self.dtype, self.sharding, self._source, self._own = tuple(shape), dtype, sharding, None, None
        self._array, self._value, self._scope, self._weak, self._unused, self._mesh, self._gradient = array, None, None, weak, None, None, False

    # What it is.

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def mesh(self) -> ProcessMesh | None:
        """Where it lies; of a traced tensor that of what it is made of."""
        return self.sharding.mesh if self.sharding else self._mesh

    @property
    def placements(self) -> tuple | None:
        """One a mesh axis; None of a dense tensor, and of a traced one whose sharding the compiler chooses."""
        self._used()
        return self.sharding.placements if self.sharding else None

    @property
    def is_distributed(self) -> bool:
        return self.sharding is not None

    @property
    def local_shape(self) -> tuple[int, ...]:
        """The shape of each process' buffer (ceilings, where extents do not divide)."""
        self._used()
        return layout(self.sharding, self.ndim).local_shape(self.shape) if self.sharding else self.shape

    def local_value(self, rank: int) -> np.ndarray:
        """What a process holds: valid elements only. Of a dense tensor everything."""
        self._used()
        array = self._concrete("local_value")
        return local_value(array, self.sharding, rank) if self.sharding else array

    # Its value.

    @property
    def _array(self) -> np.ndarray | None:
        """The global value, fetched from the devices where it still lies there; None of traced and of described tensors."""
        if self._data is None and self._source is not None:
            self._data = self._source.read()
        return self._data

    @_array.setter
    def _array(self, array):
        self._data = array

    @property
    def _described(self) -> bool:
        """Whether it has no value and is not traced; asks for none."""
        return self._data is None and self._source is None and self._scope is None

    def _concrete(self, what: str, instead: str = "compute on tensors, or return it") -> np.ndarray:
        if self._array is None:
            why = f"it is traced: inside of jit there are no values; {instead}" if self._scope else "it is a description"
            raise refuse(TraceError, f"'{what}' needs the value of a tensor of shape {self.shape}, but {why}")
        return self._array

    def numpy(self) -> np.ndarray:
        """The whole (global) value. bfloat16 without the package ml_dtypes comes as float32."""
        self._used()
        array = self._concrete("numpy")
        if self.dtype is dtypes.bfloat16 and array.dtype == np.uint16:
            return (array.astype(np.uint32) << 16).view(np.float32)
        return array

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        return array.astype(dtype) if dtype is not None and dtype != array.dtype else array.copy() if copy else array

    def __dlpack__(self, **options):
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self):
        return 1, 0  # the host

    def _buffered(self):
        return memoryview(self.numpy())

    def __reduce__(self):
        self._used()
        array = self._array if self._scope is None else self._concrete("copying")
        return from_array, (array, self.dtype, self.sharding, self.shape)

    def item(self):
        """The number that a tensor of one element holds."""
        array = self.numpy()
        if array.size != 1:
            raise refuse(TraceError, f"'item' is of tensors of one element, this one has shape {self.shape}")
        return array.reshape(-1)[0].item()

    def tolist(self):
        return self.numpy().tolist()

    def _number(self, what: str, instead: str):
        """The element for a conversion to a number of Python."""
        self._used()
        self._concrete(what, instead)
        return self.item()

    def __float__(self):
        return float(self._number("float", "keep the tensor, compute on it, or return it; a choice by it is ts.where"))

    def __int__(self):
        return int(self._number("int", "keep the tensor, compute on it, or return it; a choice by it is ts.where"))

    def __index__(self):
        if self.dtype.kind != "integer":
            raise refuse(DTypeError, f"an index is an integer, this tensor is of {self.dtype}")
        return int(self._number("index", "read by a tensor with ts.take"))

    def __bool__(self):
        return bool(self._number("bool", "choose between values with ts.where(condition, a, b)"))

    def __len__(self):
        if not self.shape:
            raise TypeError("a tensor of rank 0 has no length")
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __hash__(self):
        return id(self)

    def _placed(self, sharding: Sharding) -> Tensor:
        """The same value placed otherwise, nothing moved."""
        return from_array(self._array, self.dtype, sharding, self.shape)

    def _used(self):
        if self._unused is not None:
            self._unused.used = True

    def __repr__(self):
        parts = [f"shape={list(self.shape)}", f"dtype={self.dtype}"]
        if self.sharding:
            mesh = self.sharding.mesh
            parts += [f"mesh={list(mesh.shape)} of {list(mesh.dim_names)}", f"placements={_placements(self.sharding)}",
                      f"local_shape={list(self.local_shape)}"]
        if self._array is None:
            return f"Tensor({', '.join(parts)}, {'traced' if self._scope else 'described'})"
        self._used()
        return f"Tensor({', '.join(parts)})\n{np.array2string(self.numpy(), threshold=100)}"


def _placements(sharding) -> str:
    return repr(sharding) if isinstance(sharding, SubAxisSharding) else repr(list(sharding.placements))


def _array(data, dtype=None) -> np.ndarray:
    """Data as an array of an element type that there is."""
    wanted = dtypes.dtype(dtype) if dtype is not None else None
    if isinstance(data, Tensor):
        data = data.numpy()
    if hasattr(data, "detach"):  # torch: a tensor that wants gradients does not become an array
        data = data.detach()
    listed = isinstance(data, (list, tuple, int, float))
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise refuse(DTypeError, f"the data is not an array: {error}") from None
    if listed and array.dtype == np.float64:
        array = array.astype(np.float32)
    if wanted is not None:
        if wanted.element == "bf16" and wanted.numpy == np.uint16:
            return round_to_bfloat16(array) if array.dtype != np.uint16 else array
        return array.astype(wanted.numpy, copy=False)
    dtypes.dtype(array.dtype)
    return array


def round_to_bfloat16(array: np.ndarray) -> np.ndarray:
    """Bits of the nearest bfloat16, ties to even; NaN stays NaN."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(array), np.uint16(0x7FC0), rounded).astype(np.uint16)


def from_array(array: np.ndarray | None, dtype: DType, sharding: Sharding | None = None, shape: Sequence[int] | None = None) -> Tensor:
    """A tensor of an array of exactly that type; nothing is copied or checked. Without an array `shape` says how large it is."""
    made = Tensor.__new__(Tensor)
    made._init(array.shape if array is not None else shape, dtype, array, sharding)
    return made


def spec(shape: Sequence[int], dtype="float32", mesh: ProcessMesh | None = None, placements: Sequence = ()) -> Tensor:
    """A tensor without a value: what `explain` and `jit(...).lower` take in place of data."""
    made, kind = Tensor.__new__(Tensor), dtypes.dtype(dtype)
    shape = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    if any(isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0 for n in shape):
        raise refuse(ShapeError, f"shape {shape!r}: extents are integers that are not negative")
    sharding = check(Sharding(mesh, listed(placements)), shape, kind.element, "the tensor") if mesh is not None else None
    made._init(shape, kind, None, sharding)
    return made


def asarray(data, dtype=None) -> Tensor:
    """Data as a tensor; a tensor stays what it is."""
    if isinstance(data, Tensor) and dtype is None:
        return data
    if isinstance(data, Tensor):
        return data.astype(dtype)
    return Tensor(data, dtype)
