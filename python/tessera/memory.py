# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program keeps on a device: an estimate from placements and lives of values, the arena that is planned, and what is measured."""

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
    """Bytes of a device. `estimate` is parameters, gradients, states, data and activations; `arena` what the compiler has planned."""

    def __str__(self):
        return ", ".join(f"{name} {value / 1e6:.2f} MB" for name, value in self.items())


def _local(tensor) -> int:
    return math.prod(tensor.local_shape) * tensor.dtype.itemsize


@entry
def memory_estimate(function: Callable, *args, **kwargs) -> Memory:
    """What a call of a training step keeps on a device; runs nothing. Arguments may be descriptions (`spec`, LazyGuard).

    parameters: the tensors of modules by their placements; states: those of optimizers; data: the other arguments. estimate: what the
    model of docs/search.md counts at the worst time; what is left of it are gradients, as many bytes as trained parameters at most, and
    activations. arena: the planned peak, which is what the runtime takes.

    Raises ArgumentError for a call without tensors.
    """
    made = function if isinstance(function, Jitted) else jit(function)
    arguments = Arguments(made._function, args, kwargs)
    if not arguments.leaves:
        raise refuse(ArgumentError, "memory_estimate of a call without tensors")
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
        raise refuse(ArgumentError, f"device {device!r} is not a number of a device; devices are counted from 0")
    return [device]


@entry
def memory_allocated(device: int | None = None) -> int:
    """Bytes that compiled programs use on a device now, as the runtime finds them: of devices in host memory the pages that steps have
    touched, of GPUs the blocks. It counts arenas, staging buffers and workspaces of all programs of this process that are open; constants,
    which devices share, are not counted. A program is open until its function is gone.

    device: a process id of a mesh; 0 bytes for one that has no program in this process. None: the largest figure of all devices here;
    between processes that is this rank's. Raises ArgumentError for what is not a number.
    """
    return _measured(device, 0)


@entry
def memory_reserved(device: int | None = None) -> int:
    """The same of the bytes that programs have taken from the system or the GPU's driver, used or not."""
    return _measured(device, 1)


@entry
def max_memory_allocated(device: int | None = None) -> int:
    """The most that `memory_allocated` has been, since the start or the last `reset_peak_memory_stats`."""
    return _measured(device, 2)


@entry
def max_memory_reserved(device: int | None = None) -> int:
    """The most that `memory_reserved` has been, since the start or the last `reset_peak_memory_stats`."""
    return _measured(device, 3)


@entry
def reset_peak_memory_stats(device: int | None = None) -> None:
    """Peaks begin again from what there is now; None: of all devices here."""
    with core.errors() as module:
        for each in _devices(device, module):
            module.reset_peak_memory(each)
