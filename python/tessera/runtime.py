# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Execution of compiled programs with NumPy arrays."""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import sys
import time
from collections.abc import Sequence

import numpy as np

from . import core, libraries
from .dtypes import numpy_of
from .errors import Error
from .source import entry, refuse

_DLPACK_BFLOAT = 4  # kDLBfloat
Box = tuple[tuple[int, int], ...]  # (begin, end) per dimension
_SETTLING = 0.3  # seconds for other ranks to report the same error before a launcher ends them


def target_of(backend: str) -> str:
    """The target of `Program.compile` whose code a backend executes: "cpu", "cuda" or "stub". Raises Error for an unknown backend."""
    with core.errors() as module:
        return module.backend_target(backend)


class BFloat16Array(np.ndarray):
    """A bfloat16 array that supports `__dlpack__`, which NumPy rejects for types of extension packages."""

    def __dlpack__(self, **options):
        if self.dtype != numpy_of("bf16") or self.dtype == np.uint16:
            return super().__dlpack__(**options)
        capsule = np.asarray(self).view(np.int16).__dlpack__(**options)
        api = ctypes.pythonapi
        api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
        api.PyCapsule_GetPointer.restype, api.PyCapsule_GetPointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        name = api.PyCapsule_GetName(capsule)
        # DLManagedTensor begins with DLTensor; DLManagedTensorVersioned has a version, two pointers and flags before it.
        # In DLTensor, the type code follows a pointer, a device and the rank.
        at = api.PyCapsule_GetPointer(capsule, name) + (32 if name == b"dltensor_versioned" else 0) + 8 + 8 + 4
        ctypes.c_uint8.from_address(at).value = _DLPACK_BFLOAT
        return capsule


class Session:
    """An artifact opened on a backend.

    artifact: the bytes of `Program.compile()`, or the path of a file of them; devices: number to offer, 0: as many as
    needed; cores: worker threads, 0: one for each physical core; seed: of the random values of arguments that are never
    set; pin: pin workers and memory where the process has the whole machine (docs/kernels.md). Raises tessera.Error.
    """

    def __init__(self, artifact: bytes | str, backend: str = "threads", devices: int = 0, cores: int = 0, seed: int = 0,
                 precision: str = "", pin: bool = False):
        if not isinstance(artifact, bytes):
            with open(artifact, "rb") as file:
                artifact = file.read()
        if not isinstance(backend, str):
            raise Error(f"backend {backend!r} is not a name")
        numbers = (core.whole("devices", devices, 0, core.MOST_DEVICES), core.whole("cores", cores, 0, 2**31 - 1),
                   core.whole("seed", seed, 0, 2**64 - 1))
        if target_of(backend) == "cuda":
            libraries.offer()
        with core.errors() as module:
            self._session = module.Session(artifact, backend, *numbers, precision, pin)
        if backend.lower() in ("mpi", "tcp"):
            _end_with_errors()
        self.arguments, self.results = self._session.arguments, self._session.results
        self._takes, self._gives = map(_types, (self.arguments, self.results))
        # Whether results stay on the devices, since reading them copies to the host.
        self.resident = self._session.keeps_on_devices

    @entry
    def run(self, values: Sequence, steps: int = 1) -> list[np.ndarray]:
        """The results of `steps` executions.

        values: one global array per argument, of its shape and dtype; in later steps, results that feed an argument
        replace it.
        """
        if len(values) != len(self.arguments):
            raise refuse(Error, f"{len(values)} values for {len(self.arguments)} arguments; give one per argument")
        for index, value in enumerate(values):
            self._set(index, value)
        self._step(steps)
        return [self._read(index) for index in range(len(self.results))]

    # The hot path of a call. Callers are entries themselves; a context manager would take as long as the step of a small program.

    def _set(self, index: int, value) -> None:
        wanted, shape = self._takes[index]
        if type(value) is not np.ndarray or value.dtype != wanted or value.shape != shape or not value.flags.c_contiguous:
            value = _converted(self.arguments[index], value)
        try:
            self._session.set_argument(index, value.reshape(-1).view(np.uint8))
        except core.module().Error as error:
            raise core.as_error(error) from None

    def _step(self, steps: int = 1) -> None:
        try:
            self._session.run(steps)
        except core.module().Error as error:
            raise core.as_error(error) from None

    def _read(self, index: int) -> np.ndarray:
        type, shape = self._gives[index]
        array = np.empty(shape, type)
        try:
            self._session.read_result(index, array.reshape(-1).view(np.uint8))
        except core.module().Error as error:
            raise core.as_error(error) from None
        return array.view(BFloat16Array) if self.results[index].dtype == "bf16" else array

    @entry
    def set(self, index: int, value) -> None:
        """Sets an argument from the next step on; it keeps the value until it is set again or a result feeds it."""
        self._set(index, value)

    @entry
    def step(self, steps: int = 1) -> None:
        """Executes the program `steps` times."""
        self._step(steps)

    @entry
    def read(self, index: int) -> np.ndarray:
        """A result of the last step as an array."""
        return self._read(index)

    def close(self) -> None:
        """Frees the program: memory, streams, graphs and code on devices, threads, connections. Copies made by `keep` stay.
        No other method may be called afterwards."""
        self._session = _Closed()

    # Values that stay on the devices.

    def reads_alone(self, index: int) -> bool:
        """Whether this process reads a result without the others."""
        return self._session.reads_alone(index)

    def keep(self, index: int):
        """A copy of a result of the last step on its devices, for `set_kept` and `read_kept`; None if it cannot be made. Does
        not block."""
        if not self.resident:
            return None
        with core.errors():
            return self._session.keep_result(index)

    def set_kept(self, index: int, kept) -> bool:
        """As `set`, with a copy made by `keep`. Returns False if the argument has another layout."""
        with core.errors():
            return self.resident and self._session.set_argument_value(index, kept)

    def set_memory(self, index: int, address: int, device: int) -> bool:
        """As `set`, with a dense value on a GPU, which the next step reads."""
        with core.errors():
            bytes = int(np.prod(self._takes[index][1], dtype=np.int64)) * self._takes[index][0].itemsize
            return self.resident and self._session.set_argument_memory(index, address, bytes, device)

    def read_kept(self, index: int, kept) -> np.ndarray:
        """The value of a copy made by `keep`."""
        type, shape = self._gives[index]
        array = np.empty(shape, type)
        with core.errors():
            kept.read(flat(array))
        return array.view(BFloat16Array) if self.results[index].dtype == "bf16" else array

    @property
    def counters(self) -> dict[str, int]:
        """Counts of calls of the backend's driver since the session was opened: bytes copied, launches, allocations, ..."""
        return self._session.counters

    # If the devices are in several processes: the part of this process, without communication.

    def argument_box(self, index: int) -> list[Box] | None:
        """The box of global indices of an argument that this process holds; empty list if none.

        None, on all processes, if arguments are set as a whole.
        """
        with core.errors():
            return _boxes(self._session.argument_box(index))

    def result_box(self, index: int) -> list[Box] | None:
        """The boxes of a result that this process holds; None if one process has all devices."""
        with core.errors():
            return _boxes(self._session.result_box(index))

    def set_box(self, index: int, value: np.ndarray | None) -> None:
        """As `set`, for only the elements of `argument_box`; value None if that is empty."""
        with core.errors():
            self._session.set_argument_box(index, np.empty(0, np.uint8) if value is None else flat(np.ascontiguousarray(value)))

    def read_box(self, index: int) -> np.ndarray | None:
        """The elements of a result that this process holds; None if it holds none."""
        held = self.result_box(index)
        array = np.empty(tuple(end - begin for begin, end in held[0]), numpy_of(self.results[index].dtype)) if held else None
        with core.errors():
            self._session.read_result_box(index, np.empty(0, np.uint8) if array is None else flat(array))
        return array

    @property
    def wire_bytes(self) -> int:
        """Bytes per device moved by collectives since the session was opened."""
        return self._session.wire_bytes


class _Closed:
    """Replaces a closed session."""

    def __getattr__(self, name: str):
        raise Error("the program is closed; load it again")


@functools.cache
def _end_with_errors() -> None:
    """From now on, an uncaught exception ends this process immediately.

    MPI's finalization would wait for the other ranks, which wait for this one; the launcher ends them when this one
    exits.
    """
    before = sys.excepthook

    def hook(kind, error, trace):
        before(kind, error, trace)
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        time.sleep(_SETTLING)
        os._exit(1)
    sys.excepthook = hook


def _boxes(found) -> list[Box] | None:
    return None if found is None else [tuple(map(tuple, box)) for box in found]


def flat(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)


def _types(tensors) -> list[tuple[np.dtype, tuple[int, ...]]]:
    return [(numpy_of(tensor.dtype), tuple(tensor.shape)) for tensor in tensors]


def _converted(tensor, value) -> np.ndarray:
    """The value as a contiguous array of the argument's dtype and shape. Raises Error for other dtypes and shapes."""
    array, wanted = np.asarray(value), numpy_of(tensor.dtype)
    unsigned = array.dtype.kind == "u" and wanted.kind == "i" and array.dtype.itemsize == wanted.itemsize
    if array.dtype != wanted and not unsigned:
        raise refuse(Error, f"argument '{tensor.name}' is {array.dtype}, the program takes {wanted}; convert it with astype")
    if list(array.shape) != list(tensor.shape):
        raise refuse(Error, f"argument '{tensor.name}' has shape {array.shape}, the program takes {tuple(tensor.shape)}")
    return np.ascontiguousarray(array)
