# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results that stay on the devices of their program until somebody asks for them.

A step writes where the last one did: what somebody still has of the last one by then is kept, by a copy on the devices.
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

_CODES = {"f": 2, "i": 0, "u": 1, "b": 6}  # of DLPack's element types, by the kind of NumPy's; bfloat16 is 4


class Steps:
    """The steps of a session: which results are still where the last one has left them.

    name: of the program; donate: results that are passed to the argument they feed are overwritten, not kept; whole: values are
    the whole of what each process has; lock: of the caller, held around its calls.
    """

    def __init__(self, session: Session, name: str, donate: bool = False, whole: bool = False, lock=None):
        self.session, self.name, self.donate, self.whole = session, name, donate, whole
        self.lock, self.generation, self._left = lock or threading.RLock(), 0, []

    def in_place(self, given: Collection[Tensor]) -> set[int]:
        """The arguments whose value is already where the next step takes it from."""
        return {i for i, t in enumerate(given) if t._source is not None and isinstance(t._source, OnDevices) and t._source.feeds(self, i)}

    def keep(self, passed: Collection[Tensor] = ()) -> None:
        """Before a step: what the last one left and somebody still has. `passed`: what stays, and is overwritten."""
        overwritten = {id(tensor) for tensor in passed} if self.donate else ()
        for reference in self._left:
            tensor = reference()
            if tensor is not None and id(tensor) not in overwritten and tensor._source.keep() is None:
                tensor._array  # noqa: B018 - fetched
        self._left = []

    def set(self, index: int, tensor: Tensor) -> bool:
        """Gives an argument a value that lies on devices; False where it has to come from the host."""
        source = tensor._source
        if isinstance(source, OnDevices):
            kept = source.keep()
            return kept is not None and self.session.set_kept(index, kept)
        return isinstance(source, OnGpu) and self.session.set_memory(index, source.address, source.device)

    def step(self, passed: Collection[Tensor] = ()) -> None:
        self.session._step()
        self.generation += 1
        if self.donate:
            for tensor in passed:
                tensor._source.taken = True

    def stays(self, index: int) -> bool:
        """Whether a result is left on the devices."""
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
    """Where the value of a result lies: the devices of a program, in its place until the next step, or in a copy (`kept`)."""

    __slots__ = ("steps", "generation", "index", "dtype", "taken", "kept")

    def __init__(self, steps: Steps, index: int, dtype: DType):
        self.steps, self.generation, self.index, self.dtype, self.taken, self.kept = steps, steps.generation, index, dtype, False, None

    def feeds(self, steps: Steps, argument: int) -> bool:
        """Whether the value is already where that argument of the next step is."""
        return self.steps is steps and not self.taken and self.generation == steps.generation \
            and steps.session.results[self.index].feeds == argument

    def is_drawn(self, home: str) -> bool:
        """Whether each process hands on its part to an argument that lies so."""
        session = self.steps.session
        return self.kept is None and session.results[self.index].home == home and session.result_box(self.index) is not None

    def keep(self):
        """A copy on the devices that outlives steps, made once; None where there is none."""
        with self.steps.lock:
            if self.kept is None:
                self._check()
                self.kept = self.steps.session.keep(self.index)
            return self.kept

    def read(self) -> np.ndarray:
        session = self.steps.session
        with self.steps.lock:
            if self.kept is not None:
                return self.dtype.of(session.read_kept(self.index, self.kept))
            self._check()
            return self.dtype.of(session.read(self.index))

    def part(self) -> Part | None:
        """What this process holds, where devices are in several; other processes need not take part."""
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
        code = 4 if self.dtype.element == "bf16" else _CODES[self.dtype.numpy.kind]
        return self.keep().dlpack(list(shape), code, self.dtype.itemsize * 8, stream)

    def _check(self):
        if self.taken:
            raise refuse(TraceError, f"the value of '{self.steps.session.results[self.index].name}' was given to '{self.steps.name}', which has "
                                     "overwritten it (donate=True); use what that returned")
