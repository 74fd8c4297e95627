# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Device memory of programs: estimated from placements, planned by the compiler, measured by the runtime."""

from __future__ import annotations

import math
from collections.abc import Callable

from . import core
from .arguments import Arguments
from .compiled import Jitted, jit
from .errors import ArgumentError
from .nn.module import Module
from .source import entry, refuse


class Memory(dict):
    """Bytes per device by category.

    `estimate` is the sum of parameters, gradients, states, data and activations; `arena` is what the compiler planned.
    """

    def __str__(self):
        return ", ".join(f"{name} {value / 1e6:.2f} MB" for name, value in self.items())


def _local(tensor) -> int:
    return math.prod(tensor.local_shape) * tensor.dtype.itemsize


@entry
def memory_estimate(function: Callable, *args, **kwargs) -> Memory:
    """The memory per device of one call of a training step; runs nothing.

    Arguments may be descriptions (`spec`, LazyGuard).

    parameters: tensors of modules, by their placements; states: of optimizers; data: the other arguments. estimate: the
    peak in the memory model of docs/search.md; the remainder is split into gradients, at most the bytes of trained
    parameters, and activations. arena: the planned peak, which the runtime allocates.

    Raises ArgumentError if the call has no tensors.
    """
    made = function if isinstance(function, Jitted) else jit(function)
    arguments = Arguments(made._function, args, kwargs)
    if not arguments.leaves:
        raise refuse(ArgumentError, "memory_estimate takes a call with tensors")
    recorded, sizes = made._record(arguments), {"parameters": 0, "gradients": 0, "states": 0, "data": 0}
    trained = 0
    for value, (_, places) in zip(arguments.values, arguments.parts):
        kind = "parameters" if isinstance(value, Module) else "states" if isinstance(value, dict) and "count" in value else "data"
        sizes[kind] += sum(_local(recorded.inputs[i]) for i in places)
        trained += sum(_local(recorded.inputs[i]) for i in places if kind == "parameters" and arguments.leaves[i].trainable)
    arena = made.explain(*args, **kwargs)["peak_memory_bytes"]
    if not recorded.trace.meshes:  # one device: the planned peak is exact, and there is nothing to search
        sizes["gradients"] = min(trained, max(0, arena - sum(sizes.values()))) if recorded.trace.derivatives else 0
        return Memory(**sizes, activations=max(0, arena - sum(sizes.values())), estimate=arena, arena=arena)
    counted = recorded.program.explain(**{**made._options, "search": made._options["search"] or "sharding_propagation"})
    estimate = int(counted["search"]["memory"]) if counted.get("search") else arena
    more = max(0, estimate - sum(sizes.values()))
    sizes["gradients"] = min(trained, more) if recorded.trace.derivatives else 0
    return Memory(**sizes, activations=more - sizes["gradients"], estimate=estimate, arena=arena)


def _measured(device, index: int) -> int:
    with core.errors() as module:
        return max((module.device_memory(each)[index] for each in _devices(device, module)), default=0)


def _devices(device, module) -> list[int]:
    if device is None:
        return module.devices_with_memory()
    if isinstance(device, bool) or not isinstance(device, int) or device < 0:
        raise refuse(ArgumentError, f"device {device!r} is not a device number; devices count from 0")
    return [device]


@entry
def memory_allocated(device: int | None = None) -> int:
    """Bytes that open compiled programs use on a device now.

    On host-memory devices these are the pages that steps have touched, on GPUs the allocated blocks: arenas, staging
    buffers and workspaces. Constants, which devices share, are not counted. A program is open until its function is
    deleted.

    device: a process id of a mesh; 0 bytes if it has no program in this process. None: the maximum over the devices of
    this process (between processes, this rank's). Raises ArgumentError if it is not a device number.
    """
    return _measured(device, 0)


@entry
def memory_reserved(device: int | None = None) -> int:
    """As memory_allocated, of the bytes reserved from the system or the GPU driver, used or not."""
    return _measured(device, 1)


@entry
def max_memory_allocated(device: int | None = None) -> int:
    """The peak of `memory_allocated` since the start or the last `reset_peak_memory_stats`."""
    return _measured(device, 2)


@entry
def max_memory_reserved(device: int | None = None) -> int:
    """The peak of `memory_reserved` since the start or the last `reset_peak_memory_stats`."""
    return _measured(device, 3)


@entry
def reset_peak_memory_stats(device: int | None = None) -> None:
    """Resets the peaks to the current values, of one device or (None) of all devices here."""
    with core.errors() as module:
        for each in _devices(device, module):
            module.reset_peak_memory(each)
