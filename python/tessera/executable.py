# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled artifacts as functions of arrays."""

from __future__ import annotations

import os
import sys

import numpy as np

from .dtypes import numpy_of, of_element
from .errors import Error
from .foreign import OnGpu, on_gpu
from .resident import OnDevices, Steps
from .runtime import Session
from .source import entry, refuse
from .tensor import Tensor

_CPU = 1  # of DLPack's device types


class Executable:
    """A compiled program on its devices.

    A call executes one step. Arguments are global arrays, by position or name: NumPy, any object in host memory with
    DLPack (PyTorch, JAX, CuPy), the buffer protocol or `__array__`, of the program's dtypes. An argument that is left
    out keeps its value: the last one given, the result that fed it, or random values determined by the seed.

    Returns the results in order as NumPy arrays (with `__dlpack__`): a tuple, or the array alone if there is one
    result. On a GPU the results are tensors: the call returns when the step is issued, a value stays on its devices until
    it is read, and passing it to the next call copies nothing to the host. Arrays in memory of the GPU are accepted.

    Raises tessera.Error for invalid arguments.
    """

    def __init__(self, session: Session):
        self._session, self._steps = session, Steps(session, "the program")
        self.arguments, self.results = session.arguments, session.results
        self._index, self._closed = {tensor.name: index for index, tensor in enumerate(self.arguments)}, False

    @entry
    def __call__(self, *values, **named):
        session, steps = self._session, self._steps
        if session.resident or named or len(values) != len(self.arguments):
            self._set_some(values, named)
        else:
            for index, value in enumerate(values):
                session._set(index, value if type(value) is np.ndarray else to_host(value, self.arguments[index].name))
            steps.step()
        results = tuple([self._result(index) for index in range(len(self.results))])
        return results[0] if len(results) == 1 else results

    def _result(self, index: int):
        return self._steps.result(index, of_element(self.results[index].dtype), None) if self._session.resident else self._session._read(index)

    def _set_some(self, values, named):
        if len(values) > len(self.arguments):
            raise refuse(Error, f"{len(values)} values, the program takes {len(self.arguments)}: {', '.join(self._index)}")
        given = dict(enumerate(values))
        for name, value in named.items():
            if name not in self._index:
                raise refuse(Error, f"the program has no argument '{name}'; it takes {', '.join(self._index) or 'none'}")
            if self._index[name] in given:
                raise refuse(Error, f"argument '{name}' is given twice")
            given[self._index[name]] = value
        self._step(given)

    def _step(self, given: dict) -> None:
        """One step with the values of arguments, by index: values on the devices are not copied to the host and back."""
        session, steps, on_devices = self._session, self._steps, {}
        for index, value in given.items():
            if not session.resident:
                continue
            if not isinstance(value, Tensor) and on_gpu(value) is not None:
                value = Tensor(value)
            if isinstance(value, Tensor) and isinstance(value._source, (OnDevices, OnGpu)):
                self._check(index, value)
                on_devices[index] = value
        steps.keep()
        for index, value in given.items():
            tensor = on_devices.get(index)
            if tensor is not None and (tensor._source.feeds(steps, index) or steps.set(index, tensor)):
                continue
            session._set(index, to_host(value if tensor is None else tensor.numpy(), self.arguments[index].name))
        steps.step()

    def _check(self, index: int, tensor: Tensor) -> None:
        wanted = self.arguments[index]
        if tensor.dtype.element != wanted.dtype or list(tensor.shape) != list(wanted.shape):
            raise refuse(Error, f"argument '{wanted.name}' is {tensor.dtype}{list(tensor.shape)}, the program takes "
                                f"{of_element(wanted.dtype)}{list(wanted.shape)}")

    @entry
    def close(self) -> None:
        """Frees the program: memory, streams, graphs and code on its devices, threads and connections.

        Results on devices that are still referenced are copied, as by the next call. Later calls raise tessera.Error; closing
        again has no effect. As a context manager, an executable is closed at the end of the block. Without `close`, a program is
        freed with the last reference to it or to one of its results.
        """
        if not self._closed:
            self._steps.keep()
            self._session.close()
            self._closed = True

    def __enter__(self) -> Executable:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __repr__(self):
        return f"Executable({_list(self.arguments)} -> {_list(self.results)})"

    @property
    def counters(self) -> dict[str, int]:
        """Counts of calls of a GPU's driver since the program was loaded: bytes copied, launches, allocations, ..."""
        return self._session.counters

    @property
    def wire_bytes(self) -> int:
        """Bytes per device moved by collectives since the program was loaded."""
        return self._session.wire_bytes


@entry
def load(artifact: bytes | str | os.PathLike, backend: str = "threads", devices: int = 0, cores: int = 0, seed: int = 0,
         precision: str = "highest", pin: bool = False) -> Executable:
    """Loads an artifact of `tessera compile` or `Program.compile`: a path, or bytes.

    backend: "threads", "mpi", "tcp", "cuda", ...; devices: number to offer, 0: as many as needed; cores: worker
    threads, 0: one for each physical core; seed: 64 bits, of the random values of arguments that are never given;
    precision: of float32 products on GPUs, "highest" (float32) or "high" (TF32); pin: pin workers to cores, and arrays
    to their memory, where this process has the whole machine. Raises tessera.Error if the artifact is damaged, of
    another version, or needs features that the backend lacks.
    """
    if precision not in ("highest", "high"):
        raise refuse(Error, f"precision {precision!r} is not valid; expected highest or high")
    if not isinstance(pin, bool):
        raise refuse(Error, f"pin {pin!r} is not valid; expected True or False")
    if isinstance(artifact, (bytearray, memoryview)):
        artifact = bytes(artifact)
    place = ""
    if not isinstance(artifact, bytes):
        if not isinstance(artifact, (str, os.PathLike)):
            raise refuse(Error, f"artifact {artifact!r} is neither a path nor bytes")
        artifact = os.fspath(artifact)
        place = f"{artifact}: "
    try:
        return Executable(Session(artifact, backend, devices, cores, seed, precision, pin))
    except OSError as error:
        raise refuse(Error, f"cannot read the artifact: {error}") from error
    except Error as error:
        raise error if ": error: " in str(error) else refuse(Error, f"{place}{error}") from None


def to_host(value, name: str) -> np.ndarray:
    """An array in host memory, without a copy if the library allows it."""
    if isinstance(value, Tensor):
        return value.numpy()
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _read(_of_torch(value, name, torch), name)
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__"):
        return _as_array(value, name)
    device = value.__dlpack_device__()
    if device[0] != _CPU:
        raise refuse(Error, f"argument '{name}' is on device {tuple(device)}, the program takes arrays in host memory; copy it there")
    return _read(value, name)


def _of_torch(value, name: str, torch):
    """A PyTorch tensor without properties that DLPack cannot express: gradient, lazy conjugation, bfloat16 (as bits).
    """
    if value.layout != torch.strided:
        raise refuse(Error, f"argument '{name}' is of layout {value.layout}, the program takes whole arrays; convert it with to_dense()")
    if value.device.type != "cpu":
        where = "it has no values" if value.device.type == "meta" else "the program takes arrays in host memory; copy it there"
        raise refuse(Error, f"argument '{name}' is on device {value.device}, {where}")
    value = value.detach().resolve_conj().resolve_neg()
    if value.dtype == torch.bfloat16:  # NumPy has no such type: its bits
        return _read(value.view(torch.int16), name).view(numpy_of("bf16"))
    return value


def _read(value, name: str) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError):
        return _as_array(value, name)


def _as_array(value, name: str) -> np.ndarray:
    try:
        return np.asarray(value)
    except (RuntimeError, TypeError, ValueError) as error:
        raise refuse(Error, f"argument '{name}' cannot be read as an array: {error}") from None


def _list(tensors) -> str:
    return "(" + ", ".join(f"{tensor.name}: {tensor.dtype}[{', '.join(map(str, tensor.shape))}]" for tensor in tensors) + ")"
