# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors with a value (an array and its sharding), and traced tensors (values of a program under recording).

Operators and methods that compute come from `tessera.ops`, which attaches them (`ops/operators.py`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
from collections.abc import Sequence

import numpy as np

from . import dtypes
from .dtypes import DType
from .errors import ArgumentError, DTypeError, ShapeError, TraceError
from .foreign import on_gpu
from .layout import SubAxisSharding, check, layout, listed, local_value
from .mesh import ProcessMesh
from .sharding import Sharding
from .source import failed_call, refuse, running_call


try:
    from ._core import Buffered as _Base  # the buffer protocol; Python classes can implement it from 3.12 on
except ImportError:
    _Base = object


_BY_VALUE = "compute on the tensor or return it; choose by its value with ts.where"
_HOST, _CUDA = (1, 0), 2  # as a device of DLPack, and as a kind of them


@dataclasses.dataclass(frozen=True)
class Part:
    """The part of a distributed value that this process holds: `array`, the elements of the one box in `boxes`.

    Without elements, array is None and boxes is empty. A tensor's `_source` returns it without communication.
    """

    array: np.ndarray | None
    boxes: list[tuple[tuple[int, int], ...]]
    sharding: Sharding

    def fits(self, boxes) -> bool:
        """Whether it holds exactly the elements of `boxes`; empty boxes are ignored."""
        def filled(found):
            return [each for each in found if all(begin < end for begin, end in each)]
        return boxes is not None and filled(boxes) == filled(self.boxes)


class Tensor(_Base):
    """A tensor: dense (on one device), or distributed over a mesh by its placements.

    data: any array that NumPy can read or that is in memory of a GPU (it stays there), nested lists, or a number;
    dtype: default float32 for lists of floats, int64 for lists of integers, and the type of an array.

    Raises DTypeError for unsupported element types.
    """

    __slots__ = ("shape", "dtype", "sharding", "_data", "_value", "_scope", "_weak", "_unused", "_mesh", "_gradient", "_source", "_own", "__weakref__")
    __array_priority__ = 1000  # NumPy leaves operators of mixed operands to this class

    def __init__(self, data, dtype=None):
        memory = on_gpu(data) if dtype is None and not isinstance(data, Tensor) else None
        if memory is not None:
            self._init(memory.shape, memory.dtype)
            self._source = memory
            return
        array = _array(data, dtype)
        self._init(array.shape, dtypes.dtype(array.dtype) if dtype is None else dtypes.dtype(dtype), array)

    def _init(self, shape, dtype: DType, array=None, sharding: Sharding | None = None, weak=False):
        self.shape, self.dtype, self.sharding, self._source, self._own = tuple(shape), dtype, sharding, None, None
        self._data, self._value, self._scope, self._weak, self._unused, self._mesh, self._gradient = array, None, None, weak, None, None, False

    # Shape, type and placement.

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    @property
    def nbytes(self) -> int:
        """Bytes of the global value, however it is distributed."""
        return self.size * self.dtype.itemsize

    @property
    def mesh(self) -> ProcessMesh | None:
        """The mesh of a distributed tensor; for a traced tensor the mesh of its operands. None if dense."""
        return self.sharding.mesh if self.sharding else self._mesh

    @property
    def placements(self) -> tuple | None:
        """One placement per mesh axis; None if dense, or traced with a sharding that the compiler chooses."""
        self._used()
        return self.sharding.placements if self.sharding else None

    @property
    def is_distributed(self) -> bool:
        """Whether it has placements on a mesh."""
        return self.sharding is not None

    @property
    def local_shape(self) -> tuple[int, ...]:
        """The shape of each process' buffer, rounded up if an extent is not divisible."""
        self._used()
        return layout(self.sharding, self.ndim).local_shape(self.shape) if self.sharding else self.shape

    def local_value(self, rank: int) -> np.ndarray:
        """The elements that process `rank` holds, without padding; all elements of a dense tensor.

        Raises TraceError if traced.
        """
        self._used()
        array = self._concrete("local_value")
        return local_value(array, self.sharding, rank) if self.sharding else array

    # Value.

    @property
    def _array(self) -> np.ndarray | None:
        """The global value, copied from the devices if it is still there; None for traced tensors and descriptions."""
        if self._data is None and self._source is not None:
            self._data = self._source.read()
        return self._data

    @_array.setter
    def _array(self, array):
        self._data = array

    @property
    def _described(self) -> bool:
        """Whether this is a description: neither a value nor traced. Does not fetch a value."""
        return self._data is None and self._source is None and self._scope is None

    def _concrete(self, what: str, instead: str = "compute on tensors, or return it", at=None) -> np.ndarray:
        if self._array is None:
            why = f"it is traced: tensors have no values inside jit; {instead}" if self._scope else "it is a description"
            raise refuse(TraceError, f"'{what}' needs the value of a tensor of shape {self.shape}, but {why}", at)
        return self._array

    def numpy(self) -> np.ndarray:
        """The global value as a NumPy array.

        bfloat16 is returned as float32 if the package ml_dtypes is missing. Raises TraceError if traced.
        """
        self._used()
        array = self._concrete("numpy")
        if self.dtype is dtypes.bfloat16 and array.dtype == np.uint16:
            return (array.astype(np.uint32) << 16).view(np.float32)
        return array

    def __array__(self, dtype=None, copy=None):
        if self._array is None:
            self._concrete(*_called("numpy", running_call()))
        array = self.numpy()
        return array.astype(dtype) if dtype is not None and dtype != array.dtype else array.copy() if copy else array

    def __setitem__(self, key, value):
        raise refuse(ArgumentError, "tensors do not change, so elements cannot be assigned; make another one by ts.put_at(x, indices, values) or "
                                    "ts.apply_at(x, function, indices), or choose by ts.where")

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        """Refuses functions of PyTorch. As a TypeError: an operator of a PyTorch tensor and this one then tries this class."""
        called, instead, at = _called("torch", running_call())
        raise refuse(DTypeError, f"'{called}' takes PyTorch's tensors, not those of tessera; {instead}", at)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """A capsule of the GPU's memory if one GPU has the whole value, else of the host's. Work on `stream`, of CUDA, waits for
        the value: None and 1 are the legacy default stream, 2 that of the thread, -1 none. Consumers must not write to it."""
        device = self.__dlpack_device__()
        if device[0] != _HOST[0] and dl_device not in (None, device) and tuple(dl_device)[0] != _HOST[0]:
            raise BufferError(f"a tensor on device {device} can be exported to it or to the host, not to {tuple(dl_device)}")
        if device[0] == _HOST[0] or dl_device is not None and tuple(dl_device)[0] == _HOST[0]:
            array = self.numpy()
            return array.__dlpack__(**{k: v for k, v in (("max_version", max_version), ("copy", copy)) if v is not None})
        if copy:
            raise BufferError("a tensor on a GPU cannot be exported as a copy; copy it after the import")
        if stream == 0 or stream is not None and (type(stream) is not int or stream < -1):
            raise BufferError(f"stream {stream!r} is not a CUDA stream; expected None, -1, 1, 2 or a handle")
        self._used()
        return self._source.dlpack(self.shape, 0 if stream == -1 else 1 if stream is None else stream)

    def __dlpack_device__(self):
        gpu = self._source.gpu() if self._source is not None and hasattr(self._source, "gpu") else None
        return _HOST if gpu is None else (_CUDA, gpu)

    def _buffered(self):
        return memoryview(self.numpy())

    def __reduce__(self):
        self._used()
        array = self._array if self._scope is None else self._concrete("copying")
        return from_array, (array, self.dtype, self.sharding, self.shape)

    def item(self):
        """The element of a tensor of one element as a Python number. Raises TraceError for other sizes."""
        self._used()
        self._concrete("item", _BY_VALUE)
        array = self.numpy()
        if array.size != 1:
            raise refuse(TraceError, f"'item' takes a tensor of one element, got shape {self.shape}")
        return array.reshape(-1)[0].item()

    def tolist(self):
        """The global value as nested lists of Python numbers."""
        self._used()
        self._concrete("tolist")
        return self.numpy().tolist()

    def _number(self, what: str, instead: str):
        """The element, for a conversion to a Python number."""
        self._used()
        self._concrete(what, instead)
        return self.item()

    def __float__(self):
        return float(self._number("float", _BY_VALUE))

    def __int__(self):
        return int(self._number("int", _BY_VALUE))

    def __index__(self):
        if self.dtype.kind != "integer":
            raise refuse(DTypeError, f"expected an integer tensor as an index, got {self.dtype}")
        return int(self._number("index", "read at a computed index with ts.take"))

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
        """The same value under another sharding; moves no data."""
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


@contextlib.contextmanager
def explained():
    """Context manager: JAX's error about a tensor of ours says which function to call."""
    try:
        yield
    except TypeError as error:
        if "<class 'tessera.tensor.Tensor'>" not in str(error):
            raise
        called, instead, at = _called("a function of JAX", failed_call(error))
        raise refuse(DTypeError, f"'{called}' takes JAX's arrays, not tensors of tessera; {instead}", at) from error


def _called(library: str, call):
    """A call of a function of another library, what to use in its place, and its location."""
    called, at = call
    name = (called or "").split(".")[-1]
    for module, prefix in ((".ops", "ts"), (".nn", "ts.nn")):
        if name in importlib.import_module(module, __package__).__all__:
            return called, f"use {prefix}.{name}", at
    return called or library, "compute on tensors with functions of tessera, or return it", at


def _placements(sharding) -> str:
    return repr(sharding) if isinstance(sharding, SubAxisSharding) else repr(list(sharding.placements))


def _array(data, dtype=None) -> np.ndarray:
    """The data as an array of a supported element type."""
    wanted = dtypes.dtype(dtype) if dtype is not None else None
    if isinstance(data, Tensor):
        data = data.numpy()
    if hasattr(data, "detach"):  # PyTorch does not convert a tensor that requires gradients
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
    """The bits (uint16) of the nearest bfloat16, ties to even; NaN stays NaN."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(array), np.uint16(0x7FC0), rounded).astype(np.uint16)


def from_array(array: np.ndarray | None, dtype: DType, sharding: Sharding | None = None, shape: Sequence[int] | None = None) -> Tensor:
    """A tensor of an array that has exactly this type, without copies or checks.

    With array None it is a description of `shape`.
    """
    made = Tensor.__new__(Tensor)
    made._init(array.shape if array is not None else shape, dtype, array, sharding)
    return made


def spec(shape: Sequence[int], dtype="float32", mesh: ProcessMesh | None = None, placements: Sequence = ()) -> Tensor:
    """A description: a tensor without a value, accepted by `explain` and `jit(...).lower` in place of data.

    Raises ShapeError for negative extents and PlacementError for invalid placements.
    """
    made, kind = Tensor.__new__(Tensor), dtypes.dtype(dtype)
    shape = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    if any(isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0 for n in shape):
        raise refuse(ShapeError, f"shape {shape!r}: extents are non-negative integers")
    sharding = check(Sharding(mesh, listed(placements)), shape, kind.element, "the tensor") if mesh is not None else None
    made._init(shape, kind, None, sharding)
    return made


def from_dlpack(data) -> Tensor:
    """A tensor of another library's array, in memory of a GPU or of the host, without a copy. Raises ArgumentError for objects
    without DLPack and for other kinds of devices."""
    if not hasattr(data, "__dlpack__") or not hasattr(data, "__dlpack_device__"):
        raise refuse(ArgumentError, f"from_dlpack takes an array with __dlpack__, not {type(data).__name__}")
    kind = tuple(data.__dlpack_device__())
    if kind[0] not in (_HOST[0], _CUDA):
        raise refuse(ArgumentError, f"the array is on device {kind}; from_dlpack takes host memory (1) and GPUs of CUDA (2)")
    return Tensor(data if kind[0] == _CUDA or not hasattr(np, "from_dlpack") else np.from_dlpack(data))


def asarray(data, dtype=None) -> Tensor:
    """The data as a Tensor; a Tensor of that dtype is returned unchanged."""
    if dtype is None and type(data) is np.ndarray:
        return from_array(data, dtypes.dtype(data.dtype))
    if isinstance(data, Tensor) and dtype is None:
        return data
    if isinstance(data, Tensor):
        return data.astype(dtype)
    return Tensor(data, dtype)
