# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of other libraries in the memory of a GPU, by DLPack."""

from __future__ import annotations

import numpy as np

from . import core, dtypes
from .errors import ArgumentError
from .source import refuse

_CUDA = 2  # of DLPack's device types
_LEGACY_STREAM = 1
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}  # DLPack's codes of element types


class OnGpu:
    """An array in memory of a GPU, and its owner. It is copied only when a program takes it or the host reads it.

    Raises ArgumentError for elements that are not dense, DTypeError for types without a kernel.
    """

    __slots__ = ("owner", "_memory", "dtype")

    def __init__(self, owner):
        detached = owner.detach() if hasattr(owner, "detach") else owner  # torch: a tensor that requires gradients has no capsule
        # The legacy default stream, for which programs wait, waits for pending work of the owner.
        with core.errors() as module:
            self.owner, self._memory = detached, module.Memory(detached.__dlpack__(stream=_LEGACY_STREAM))
        code, bits, lanes = self._memory.type
        name = "bool" if code == 6 else f"{_KINDS.get(code, f'code {code}')}{bits}" + (f" of {lanes} lanes" if lanes != 1 else "")
        self.dtype = dtypes.dtype(name)
        if not self._memory.is_dense:
            raise refuse(ArgumentError, f"an array of shape {self.shape} on GPU {self.device} is not dense and row-major; give a contiguous copy")

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._memory.shape)

    @property
    def device(self) -> int:
        """The number of the GPU, as CUDA counts them in this process."""
        return self._memory.device

    @property
    def address(self) -> int:
        """The device pointer of the first element."""
        return self._memory.address

    def gpu(self) -> int:
        """The GPU that has the whole value; the same as `device`."""
        return self.device

    def dlpack(self, shape, stream: int):
        """A DLPack capsule of the owner's array; `stream`: the consumer's CUDA stream, 0 for none."""
        return self.owner.__dlpack__(stream=stream or -1)

    def read(self) -> np.ndarray:
        """A copy in memory of the host, made by the library that owns the array."""
        for copy in (lambda: np.from_dlpack(self.owner, device="cpu", copy=True), lambda: np.asarray(self.owner.cpu()),
                     lambda: self.owner.get()):
            try:
                return copy().view(self.dtype.numpy)
            except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
                continue
        raise refuse(ArgumentError, f"an array of {type(self.owner).__module__.split('.')[0]} on GPU {self.device} cannot be copied to the host; "
                                    "copy it there")

    # A separate value, which is not the result of a program.

    def feeds(self, steps, argument: int) -> bool:
        """False: it is not the result of a program."""
        return False

    def is_drawn(self, home: str) -> bool:
        """False: a process has the whole value, or none."""
        return False

    def part(self):
        """None: the value is whole."""
        return None


def on_gpu(value) -> OnGpu | None:
    """The array of another library as OnGpu if it is in memory of a CUDA device; else None."""
    if type(value) is np.ndarray or not hasattr(value, "__dlpack_device__"):
        return None
    try:
        kind = value.__dlpack_device__()[0]
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):  # not a device of DLPack
        return None
    return OnGpu(value) if kind == _CUDA else None
