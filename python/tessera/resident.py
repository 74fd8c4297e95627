# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results that stay on the devices of their program until they are read.

A step overwrites the results of the last step; those that are still referenced are copied on the devices before.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Collection

import numpy as np

from .dtypes import DType
from .errors import TraceError
from .foreign import OnGpu
from .layout import from_home
from .runtime import Session, flat
from .sharding import Sharding
from .source import refuse
from .tensor import Part, Tensor, from_array

_CODES = {"f": 2, "i": 0, "u": 1, "b": 6}  # codes of DLPack's element types, by NumPy kind; bfloat16 is 4


class Steps:
    """The steps of a session, and the results of the last step that are still in place.

    name: of the program; donate: results passed to the argument that they feed are overwritten, not copied; whole: each
    process has whole values; lock: the caller's, held during its calls.
    """

    def __init__(self, session: Session, name: str, donate: bool = False, whole: bool = False, lock=None):
        self.session, self.name, self.donate, self.whole = session, name, donate, whole
        self.lock, self.generation, self._left = lock or threading.RLock(), 0, []

    def keep(self, passed: Collection[Tensor] = ()) -> None:
        """Before a step, copies referenced results of the last step, except those in `passed`, which are overwritten."""
        overwritten = {id(tensor) for tensor in passed} if self.donate else ()
        for reference in self._left:
            tensor = reference()
            if tensor is not None and id(tensor) not in overwritten and tensor._source.keep() is None:
                tensor._array  # noqa: B018 - fetched
        self._left = []

    def set(self, index: int, tensor: Tensor) -> bool:
        """Sets an argument to a value on the devices. Returns False if it must come from the host."""
        source = tensor._source
        if isinstance(source, OnDevices):
            kept = source.keep()
            return kept is not None and self.session.set_kept(index, kept)
        return isinstance(source, OnGpu) and self.session.set_memory(index, source.address, source.device)

    def step(self, passed: Collection[Tensor] = ()) -> None:
        """Runs the program once. passed: the arguments of this call, whose buffers are gone afterwards if they are donated."""
        self.session._step()
        self.generation += 1
        if self.donate:
            for tensor in passed:
                tensor._source.taken = True

    def stays(self, index: int) -> bool:
        """Whether a result stays on the devices."""
        donated = self.donate and self.session.results[index].feeds >= 0
        return donated or self.session.resident and self.session.reads_alone(index)

    def result(self, index: int, dtype: DType, sharding: Sharding | None) -> Tensor:
        """A result of the last step."""
        if not self.stays(index):
            return from_array(dtype.of(self.session._read(index)), dtype, sharding)
        made = from_array(None, dtype, sharding, self.session.results[index].shape)
        made._source = OnDevices(self, index, dtype)
        self._left.append(weakref.ref(made))
        return made


class OnDevices:
    """The value of a result on the devices of a program: in place until the next step, then in a copy (`kept`)."""

    __slots__ = ("steps", "generation", "index", "dtype", "taken", "kept")

    def __init__(self, steps: Steps, index: int, dtype: DType):
        self.steps, self.generation, self.index, self.dtype, self.taken, self.kept = steps, steps.generation, index, dtype, False, None

    def feeds(self, steps: Steps, argument: int) -> bool:
        """Whether the value is already in the buffer of that argument of the next step."""
        return self.steps is steps and not self.taken and self.generation == steps.generation \
            and steps.session.results[self.index].feeds == argument

    def is_drawn(self, home: str) -> bool:
        """Whether each process passes its part to an argument with the same sharding."""
        session = self.steps.session
        return self.kept is None and session.results[self.index].home == home and session.result_box(self.index) is not None

    def keep(self):
        """A copy on the devices that outlives steps, made once; None if it cannot be made."""
        with self.steps.lock:
            if self.kept is None:
                self._check()
                self.kept = self.steps.session.keep(self.index)
            return self.kept

    def read(self) -> np.ndarray:
        """The whole value, in memory of the host. Raises TraceError if it was donated."""
        session = self.steps.session
        with self.steps.lock:
            if self.kept is not None:
                return self.dtype.of(session.read_kept(self.index, self.kept))
            self._check()
            return self.dtype.of(session.read(self.index))

    def part(self) -> Part | None:
        """The part of this process, if devices are in several processes. Not collective."""
        if self.kept is not None:
            return None
        with self.steps.lock:
            self._check()
            session = self.steps.session
            held, sharding = session.result_box(self.index), from_home(session.results[self.index].home)
            if held is None or sharding is None or self.steps.whole:
                return None
            array = session.read_box(self.index)
            return Part(array if array is None else self.dtype.of(array), held, sharding)

    def gpu(self) -> int | None:
        """The GPU that has the whole value, by number."""
        kept = self.keep() if self.steps.session.resident else None
        device = -1 if kept is None else kept.memory(0)[0]
        return None if device < 0 else device

    def dlpack(self, shape: tuple[int, ...], stream: int):
        """A DLPack capsule of a copy on the GPU; `stream`: the consumer's CUDA stream."""
        code = 4 if self.dtype.element == "bf16" else _CODES[self.dtype.numpy.kind]
        return self.keep().dlpack(list(shape), code, self.dtype.itemsize * 8, stream)

    def _check(self):
        if self.taken:
            raise refuse(TraceError, f"the value of '{self.steps.session.results[self.index].name}' was donated to '{self.steps.name}', which has "
                                     "overwritten it (donate=True); use the result of that call")
