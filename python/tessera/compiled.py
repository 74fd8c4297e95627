# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compilation of functions, and reports of their communication."""

from __future__ import annotations

import functools
import inspect
import math
import numbers
import os
import threading
from collections.abc import Callable

from . import context, tree
from .arguments import Arguments, parameters_of
from .errors import ArgumentError
from .layout import Placed
from .mesh import ProcessMesh
from .program import Program, Report
from .record import Recorded
from .source import entry, nearest, refuse, warn
from .trace import current


class Jitted:
    """The result of `jit`. Called while another function is recorded, it becomes a part of that one."""

    def __init__(self, function: Callable, mesh: ProcessMesh | None = None, feeds: bool = True, donate: bool = False,
                 backend: str = "threads", devices: int = 0, precision: str = "highest", **options):
        functools.update_wrapper(self, function)
        self._function, self._feeds, self._mesh, self._donate, self._backend, self._devices = function, feeds, mesh, donate, backend, devices
        self._precision, self._options = precision, options
        self._merged: tuple = (None, {}, ())
        self._parameters = parameters_of(function)
        self._recorded: dict = {}
        self._readers: dict = {}
        self._lock = threading.RLock()

    def _record(self, arguments: Arguments) -> Recorded:
        _, options, options_key = self._merge()
        known = (*arguments.key(), options_key)
        found = self._recorded.get(known)
        if found is not None:
            return found
        with self._lock:
            if known not in self._recorded:
                self._warn_of_numbers(arguments, known)
                self._recorded[known] = Recorded(self._function, arguments, self._feeds, options, self._mesh, self._donate,
                                                 backend=self._backend, devices=self._devices, precision=self._precision)
            return self._recorded[known]

    def _arguments(self, args, kwargs) -> Arguments:
        return Arguments(self._function, args, kwargs, parameters=self._parameters, readers=self._readers)

    def _merge(self) -> tuple[dict, dict, tuple]:
        """(options of the context, the same overridden by those of `jit`, the latter as a cache key)."""
        of_all, merged = context.options(), self._merged
        if of_all is not merged[0]:
            options = {**of_all, **self._options, "search": self._options.get("search") or of_all.get("search", "")}
            self._merged = merged = of_all, options, tuple(sorted(options.items(), key=lambda each: each[0]))
        return merged

    def _warn_of_numbers(self, arguments, key):
        """Warns once if the function is recorded repeatedly for a changing plain number, which is part of the program.
        """
        alike = [other for other in self._recorded if other[1:] == key[1:]]
        if len(alike) != _MANY - 1:
            return
        for name, now, before in zip(arguments.argument_names, key[0], alike[-1][0]):
            if now != before and now.kind == "static" and type(now.meta) is int:
                warn(f"'{self.__name__}' is recorded for the {_MANY}th time, for another value of '{name}' ({now.meta} after {before.meta}): plain "
                     f"numbers are constants of the program; pass a number that changes as a float or an array")

    @entry
    def __call__(self, *args, **kwargs):
        if current() is not None:
            return self._function(*args, **kwargs)
        arguments = self._arguments(args, kwargs)
        return self._record(arguments).run(arguments)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    @entry
    def lower(self, *args, **kwargs) -> Program:
        """The Program for such arguments: tensors, or descriptions made by `spec`."""
        return self._record(self._arguments(args, kwargs)).program

    @entry
    def explain(self, *args, **kwargs) -> Report:
        """The Report for such arguments: what the program communicates, and why."""
        return self.lower(*args, **kwargs).explain(**self._merge()[1])

    @property
    def wire_bytes(self) -> int:
        """Bytes per device moved by the collectives of all calls, counted by the runtime."""
        return sum(r.session.wire_bytes for r in self._recorded.values() if r._session is not None)


_MANY = 8  # programs of one function that differ only in a number, before the warning

PRECISIONS = ("highest", "high")  # of float32 products on GPUs
SEARCHES = ("sharding_propagation", "dynamic_programming", "recursive_programming", "exact")


def jit(function: Callable | None = None, *, mesh: ProcessMesh | None = None, search: str | None = None, feeds: bool = True,
        donate: bool = False, objective: str = "time", topology: str | os.PathLike | None = None, minimise: str = "time", memory_budget: float | None = None,
        time_limit: float | None = None, overlap: bool | None = None, narrow_reductions: bool = False, attention_sequence: str = "auto", backend: str = "threads", devices: int = 0,
        precision: str = "highest", **unknown) -> Jitted:
    """Compiles a function of tensors, and trees of them, into one program for all devices of their meshes.

    The function is recorded at its first call, and again for arguments of another structure, shape, dtype or placement.
    Floats are arguments of the program; other plain values are part of it. Changes that the function makes to its
    arguments (attributes of modules, entries of lists) take effect after the call.

    mesh: the mesh of values without placements.
    search: how to search for missing placements, "dynamic_programming", "recursive_programming", "exact" or
        "sharding_propagation"; None propagates the given ones.
    feeds: a result with the structure of an argument takes its placements.
    donate: such results stay on the devices. The next call takes them without a copy and overwrites them; using them
        afterwards raises TraceError.
    objective: what plans of reshards minimise, "time" or "bytes".
    topology: the machine's topology file (docs/report.md).
    minimise: what a search minimizes, "time" or "memory".
    memory_budget: the maximum peak of a searched plan, GiB per device. If no plan fits, an Error names the largest values.
    time_limit: seconds of a search (default 10), after which the best plan so far is used.
    overlap: compute while collectives run (docs/report.md); else devices wait for each collective. Default: only on GPUs.
    narrow_reductions: send terms of sums with 16-bit float results in 16 bits, which halves the bytes and adds one
        rounding per device (docs/numerics.md).
    attention_sequence: if the sequence of an attention is cut, "gather" brings all keys and values to each device, "ring"
        one block after the other; "auto" takes the better for memory_budget and overlap (docs/training.md).
    backend: what executes the program, as in `load`: "threads", all devices in this process; "mpi", one process per
        device, all running the same script and reading results collectively (docs/launch.md).
    devices: of backend "tcp", the number of devices per process; process p has those from p * devices on.
    precision: of float32 products on GPUs, "highest" (float32) or "high" (operands rounded to TF32; docs/gpu.md).

    Raises ArgumentError for an unknown option, an invalid value, or if `function` is not callable.
    """
    if unknown:
        known = [name for name in inspect.signature(jit).parameters if name not in ("function", "unknown")]
        raise refuse(ArgumentError, f"jit has no option '{next(iter(unknown))}'; {nearest(next(iter(unknown)), known, 'it has')}")
    if function is not None and not callable(function):
        raise refuse(ArgumentError, f"jit takes a function, not {function!r}")
    if minimise not in ("time", "memory"):
        raise refuse(ArgumentError, f"minimise '{minimise}' of jit is not valid; expected time or memory")
    for name, value, unit in (("memory_budget", memory_budget, "GiB"), ("time_limit", time_limit, "seconds")):
        if value is not None and (isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < value < math.inf):
            raise refuse(ArgumentError, f"{name} {value!r} of jit is not a positive number of {unit}")
    if search is None and (minimise != "time" or memory_budget is not None or time_limit is not None):
        raise refuse(ArgumentError, "minimise, memory_budget and time_limit of jit apply to a search; "
                                    "give search=\"dynamic_programming\", ...")
    if minimise == "memory" and memory_budget is not None:
        raise refuse(ArgumentError, "jit with minimise=\"memory\" takes no memory_budget; the plan has the least memory")
    if topology is not None and not isinstance(topology, (str, os.PathLike)):
        raise refuse(ArgumentError, f"topology {topology!r} of jit is not a path of a file")
    if objective not in ("time", "bytes"):
        raise refuse(ArgumentError, f"objective '{objective}' of jit is not valid; expected time or bytes")
    if attention_sequence not in ("auto", "gather", "ring"):
        raise refuse(ArgumentError, f"attention_sequence '{attention_sequence}' of jit is not valid; expected auto, gather or ring")
    if search is not None and search not in SEARCHES:
        raise refuse(ArgumentError, f"search '{search}' of jit is not valid; expected one of {', '.join(SEARCHES)}")
    if mesh is not None and not isinstance(mesh, ProcessMesh):
        raise refuse(ArgumentError, f"mesh {mesh!r} of jit is not a ProcessMesh")
    if not isinstance(backend, str):
        raise refuse(ArgumentError, f"backend {backend!r} of jit is not a name")
    if type(devices) is not int or devices < 0 or devices > 1 and backend.lower() != "tcp":
        raise refuse(ArgumentError, f"devices {devices!r} of jit is not valid; expected a number of devices per process, "
                                    "with backend 'tcp'")
    if precision not in PRECISIONS:
        raise refuse(ArgumentError, f"precision {precision!r} of jit is not valid; expected {' or '.join(PRECISIONS)}")
    if function is None:
        return functools.partial(jit, mesh=mesh, backend=backend, devices=devices, precision=precision, search=search, feeds=feeds, donate=donate, objective=objective, topology=topology,
                                 minimise=minimise, memory_budget=memory_budget, time_limit=time_limit, overlap=overlap, narrow_reductions=narrow_reductions,
                                 attention_sequence=attention_sequence)
    options = dict(objective=objective, topology=topology, search=search or "", minimise=minimise, memory_budget=memory_budget, time_limit=time_limit,
                   overlap=overlap, narrow_reductions=narrow_reductions, attention_sequence=attention_sequence)
    return Jitted(function, mesh, feeds, donate, backend, devices, precision, **options)


def explain(function: Callable, *args, **kwargs) -> Report:
    """The Report of a call of `function`: what it communicates, and why.

    Runs nothing; arguments may be descriptions (`spec`).
    """
    made = function if isinstance(function, Jitted) else jit(function)
    return made.explain(*args, **kwargs)


@entry
def infer_layout(function, *args, **kwargs) -> dict[str, Placed]:
    """The placement of each argument of a call, by name, as compiled; runs nothing.

    Values are texts with the Sharding in `.sharding`.
    """
    made = function if isinstance(function, Jitted) else jit(function)
    recorded = made._record(made._arguments(args, kwargs))
    meshes = {name: mesh for mesh, name in recorded.trace.meshes.items()}
    return {v["name"]: Placed(v["sharding"], meshes) for v in recorded.program.explain(**made._options)["arguments"]}


def infer_predict_layout(module: Callable, *inputs) -> dict[str, Placed]:
    """The placement of each parameter and buffer of a module for such inputs, by name in checkpoints.

    Compiles and runs nothing. The result is a predict_strategy of load_distributed_checkpoint. Raises what the call
    would: ShapeError, ... for invalid inputs.
    """
    def predict(module, *inputs):
        return module(*inputs)
    found = infer_layout(predict, module, *inputs)
    return {leaf.known[0]: found[f"module.{leaf.path}"] for leaf in tree.state_leaves(module)}
