# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiling functions, and saying what they would communicate."""

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
    """What `jit` makes. Called inside of another recorded function it is a part of that."""

    def __init__(self, function: Callable, mesh: ProcessMesh | None = None, feeds: bool = True, donate: bool = False,
                 backend: str = "threads", devices: int = 0, **options):
        functools.update_wrapper(self, function)
        self._function, self._feeds, self._mesh, self._donate, self._backend, self._devices = function, feeds, mesh, donate, backend, devices
        self._options = options
        self._merged: tuple = (None, {}, ())
        self._parameters = parameters_of(function)
        self._recorded: dict = {}
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
                                                 backend=self._backend, devices=self._devices)
            return self._recorded[known]

    def _arguments(self, args, kwargs) -> Arguments:
        return Arguments(self._function, args, kwargs, parameters=self._parameters)

    def _merge(self) -> tuple[dict, dict, tuple]:
        """The options of the context, with them those of `jit`, which count before them, and these as a key."""
        of_all, merged = context.options(), self._merged
        if of_all is not merged[0]:
            options = {**of_all, **self._options, "search": self._options.get("search") or of_all.get("search", "")}
            self._merged = merged = of_all, options, tuple(sorted(options.items(), key=lambda each: each[0]))
        return merged

    def _warn_of_numbers(self, arguments, key):
        """Plain numbers belong to the program: says so once where it is recorded again and again for another one."""
        alike = [other for other in self._recorded if other[1:] == key[1:]]
        if len(alike) != _MANY - 1:
            return
        for name, now, before in zip(arguments.argument_names, key[0], alike[-1][0]):
            if now != before and now.kind == "static" and type(now.meta) is int:
                warn(f"'{self.__name__}' is recorded for the {_MANY}th time, for another value of '{name}' ({now.meta} after {before.meta}): plain "
                     f"numbers belong to the program; pass one that changes as a float or an array")

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
        """The program for such arguments (tensors, or descriptions made by `spec`)."""
        return self._record(self._arguments(args, kwargs)).program

    @entry
    def explain(self, *args, **kwargs) -> Report:
        """What the program for such arguments communicates, and why."""
        return self.lower(*args, **kwargs).explain(**self._merge()[1])

    @property
    def wire_bytes(self) -> int:
        """Bytes that the collectives of all calls have moved a device, counted by the runtime."""
        return sum(r.session.wire_bytes for r in self._recorded.values() if r._session is not None)


_MANY = 8  # programs of one function that differ in a number alone

SEARCHES = ("sharding_propagation", "dynamic_programming", "recursive_programming", "exact")


def jit(function: Callable | None = None, *, mesh: ProcessMesh | None = None, search: str | None = None, feeds: bool = True,
        donate: bool = False, objective: str = "time", topology: str | os.PathLike | None = None, minimise: str = "time", memory_budget: float | None = None,
        time_limit: float | None = None, overlap: bool = False, narrow_reductions: bool = False, backend: str = "threads", devices: int = 0, **unknown) -> Jitted:
    """Compiles a function of tensors (and trees of them) into one program for all devices that its tensors name.

    The function is recorded at its first call, and again for arguments of another structure, shape, type or placement. Floats
    are arguments of the program, other plain values are part of it. What it changes in its arguments (attributes of modules,
    entries of lists) is changed in them.

    mesh: default mesh of values without a placement. search: how missing placements are searched for ("dynamic_programming", ...);
    without one they follow from those that are given. feeds: a result of the
    structure of an argument takes its placements. donate: such results stay on the devices; given to the next call they are not copied,
    and overwritten by it: using them afterwards is an error. objective: what plans of moves minimise, "time" or "bytes"; topology: the file of
    the machine (docs/report.md). Of a search: minimise: what the plan has the least of, "time" or "memory"; memory_budget: GiB a device at
    the peak, at most; where no plan fits an Error names what takes most; time_limit: seconds, then the best so far (default 10).
    overlap: whether devices compute while collectives are under way (docs/report.md), else they wait for each.
    narrow_reductions: whether sums over devices that end in 16-bit floats are sent in 16 bits: half the bytes, a rounding for each
    device (docs/numerics.md).
    backend: what executes the program, as of `load`: "threads", all devices in this process; "mpi", one process a device, all of which
    run the same script and read results together (docs/launch.md). devices: of backend "tcp": how many each process has, if several; process p
    has those from p * devices on.

    Raises ArgumentError for an option that is unknown, another objective or search, a budget or time that is not positive, what is not a function and no mesh.
    """
    if unknown:
        known = [name for name in inspect.signature(jit).parameters if name not in ("function", "unknown")]
        raise refuse(ArgumentError, f"jit has no option '{next(iter(unknown))}'; {nearest(next(iter(unknown)), known, 'it has')}")
    if function is not None and not callable(function):
        raise refuse(ArgumentError, f"jit takes a function, not {function!r}")
    if minimise not in ("time", "memory"):
        raise refuse(ArgumentError, f"minimise '{minimise}' of jit; there are time and memory")
    for name, value, unit in (("memory_budget", memory_budget, "GiB"), ("time_limit", time_limit, "seconds")):
        if value is not None and (isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < value < math.inf):
            raise refuse(ArgumentError, f"{name} {value!r} of jit is not a positive number of {unit}")
    if search is None and (minimise != "time" or memory_budget is not None or time_limit is not None):
        raise refuse(ArgumentError, "minimise, memory_budget and time_limit of jit are those of a search; "
                                    "give search=\"dynamic_programming\", ...")
    if minimise == "memory" and memory_budget is not None:
        raise refuse(ArgumentError, "jit with minimise=\"memory\" takes no memory_budget; the plan has the least memory")
    if topology is not None and not isinstance(topology, (str, os.PathLike)):
        raise refuse(ArgumentError, f"topology {topology!r} of jit is not a path of a file")
    if objective not in ("time", "bytes"):
        raise refuse(ArgumentError, f"objective '{objective}' of jit; there are time and bytes")
    if search is not None and search not in SEARCHES:
        raise refuse(ArgumentError, f"search '{search}' of jit; there are {', '.join(SEARCHES)}")
    if mesh is not None and not isinstance(mesh, ProcessMesh):
        raise refuse(ArgumentError, f"mesh {mesh!r} of jit is no ProcessMesh")
    if not isinstance(backend, str):
        raise refuse(ArgumentError, f"backend {backend!r} of jit is not a name")
    if type(devices) is not int or devices < 0 or devices > 1 and backend.lower() != "tcp":
        raise refuse(ArgumentError, f"devices {devices!r} of jit is a number of devices of each process, of backend 'tcp'")
    if function is None:
        return functools.partial(jit, mesh=mesh, backend=backend, devices=devices, search=search, feeds=feeds, donate=donate, objective=objective, topology=topology,
                                 minimise=minimise, memory_budget=memory_budget, time_limit=time_limit, overlap=overlap, narrow_reductions=narrow_reductions)
    options = dict(objective=objective, topology=topology, search=search or "", minimise=minimise, memory_budget=memory_budget, time_limit=time_limit,
                   overlap=overlap, narrow_reductions=narrow_reductions)
    return Jitted(function, mesh, feeds, donate, backend, devices, **options)


def explain(function: Callable, *args, **kwargs) -> Report:
    """What a call of `function` would communicate, and why; runs nothing. Arguments may be descriptions (`spec`)."""
    made = function if isinstance(function, Jitted) else jit(function)
    return made.explain(*args, **kwargs)


@entry
def infer_layout(function, *args, **kwargs) -> dict[str, Placed]:
    """How each argument of a call lies, by name, as compiled; runs nothing. A value is the text of reports, with the Sharding in
    `.sharding`."""
    made = function if isinstance(function, Jitted) else jit(function)
    recorded = made._record(made._arguments(args, kwargs))
    meshes = {name: mesh for mesh, name in recorded.trace.meshes.items()}
    return {v["name"]: Placed(v["sharding"], meshes) for v in recorded.program.explain(**made._options)["arguments"]}


def infer_predict_layout(module: Callable, *inputs) -> dict[str, Placed]:
    """How each parameter and buffer of a module lies when it is called with such inputs, by its name in checkpoints; compiles only. The
    result is a predict_strategy of load_distributed_checkpoint.

    Raises what the call would: ShapeError, ... for inputs that do not fit.
    """
    def predict(module, *inputs):
        return module(*inputs)
    found = infer_layout(predict, module, *inputs)
    return {leaf.known[0]: found[f"module.{leaf.path}"] for leaf in tree.state_leaves(module)}
