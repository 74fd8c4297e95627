# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recording of a Python function as a program, and its execution."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import threading
from collections.abc import Callable, Sequence

from . import ir, replicas, tree
from .arguments import Arguments
from .errors import ArgumentError, Error, TraceError
from .foreign import OnGpu
from .ir import TensorType
from .layout import from_home
from .mesh import ProcessMesh
from .program import Program
from .resident import OnDevices, Steps
from .runtime import Session, target_of
from .sharding import Open, Replicate, Sharding, quoted
from .source import of_function, refuse
from .tensor import Tensor, asarray, explained
from .trace import Trace, operations


@contextlib.contextmanager
def _uncollected():
    """Context manager: disables the garbage collector, since recording makes many objects and no garbage."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@dataclasses.dataclass
class Result:
    """A result of a program: name, tensor, the argument of the next step that it feeds, and its required sharding."""

    name: str
    tensor: Tensor
    feeds: int | None = None
    sharding: Sharding | None = None
    own: replicas.Own | None = None  # it stays this rank's, unreduced


class Recorded:
    """A function recorded for arguments of one structure, and its program.

    `changed`: (leaf of the arguments that the function replaced, result that is its new value).
    """

    def __init__(self, function: Callable, arguments: Arguments, feeds: bool = True, options: dict | None = None,
                 mesh: ProcessMesh | None = None, donate: bool = False, eager: bool = False,
                 backend: str = "threads", devices: int = 0, precision: str = "highest"):
        self.trace = trace = Trace()
        self._options, self._donate, self._eager, self._backend, self._devices = options or {}, donate, eager, backend, devices
        self._precision = precision
        if mesh is not None:
            trace.symbol(mesh)
        self.name, self.names = getattr(function, "__name__", "program"), arguments.names
        self.inputs, self._location = arguments.tensors(), of_function(function)
        for tensor in self.inputs:
            if tensor.mesh is not None:
                trace.symbol(tensor.mesh)
        self.results: list[Result] = []
        self._taken: set[str] = set()
        self.changed: list[tuple[int, int]] = []
        with _uncollected(), trace.recording(), trace.function(f"'{self.name}'") as frame, trace.builder.at(self._location):
            traced = [trace.tensor(frame.argument(TensorType(t.shape, t.dtype.element), name), t.sharding, t._weak)
                      for t, name in zip(self.inputs, self.names)]
            trace.given = len(traced)
            traced = [replicas.averaged(trace, inside, t._own.mesh, held=True) if t._own else inside
                      for inside, t in zip(traced, self.inputs)]
            args, kwargs = arguments.rebuilt(traced)
            with explained():
                returned = function(*args, **kwargs)
            self._returned(returned, arguments, traced, feeds)
            self._changes(traced, arguments.leaves_of(args, kwargs))
            values = [trace.value(result.tensor) for result in self.results]
            trace.builder.op("func.return", values, [])
        self._finish(frame, values)
        # Only the number and the types of the recorded values are still needed.
        self._structure, self._returns_tensor = returned, tree.is_array(returned)
        self._program: Program | None = None
        self._lock = threading.RLock()
        self._session = None
        self._fed = {r.feeds for r in self.results if r.feeds is not None}
        self._last: Sequence[Tensor | None] = ()  # the arguments of the last step that are still in place

    def _finish(self, frame, values) -> None:
        """Completes the functions of the program and removes dead operations."""
        trace, main = self.trace, ir.Function("main", [])
        main.body = frame.block
        if trace.schedule is not None:
            main.attributes["schedule"] = quoted(trace.schedule)
        trace.builder.module.functions.append(main)
        trace.warn_unused()
        for function_ir in trace.builder.module.functions:
            if function_ir.body is not None:
                ir.simplify(function_ir)
        self._choose_backend()
        names = [*self.names, *[f"captured{i}" for i in range(len(trace.hidden))]]
        with trace.builder.at(self._location):
            main.arguments = [trace.port(TensorType(t.shape, t.dtype.element), name, t.sharding or self._whole)
                              for t, name in zip([*self.inputs, *trace.hidden], names)]
            main.results = [trace.port(value.type, r.name, r.sharding or self._whole, **({} if r.feeds is None else {"feeds": str(r.feeds)}))
                            for r, value in zip(self.results, values)]
        self.hidden = trace.hidden

    def _choose_backend(self) -> None:
        """Selects the backend: programs that reduce over ranks run between processes, all others here."""
        self._whole = None
        mesh = next((m for m in self.trace.meshes if isinstance(m, replicas.RankMesh)), None)
        if mesh is None:
            return
        symbol = f"@{self.trace.meshes[mesh]},"
        if not any(symbol in o.attributes.get("sharding", "") for f in self.trace.builder.module.functions if f.body is not None
                   for o in operations(f.body) if o.name == "dist.shard_tensor"):
            del self.trace.meshes[mesh]
            return
        others = [m for m in self.trace.meshes if m is not mesh]
        if others:
            raise refuse(ArgumentError, f"'{self.name}' reduces over the ranks of the job and has tensors on {others[0]!r}; between processes "
                                        "a tensor is on one device per rank")
        self._whole = Sharding(mesh, (Replicate(),) * mesh.ndim)
        self._backend = replicas.backend_of(self._backend, mesh.devices_each)
        self._devices = mesh.devices_each if mesh.devices_each > 1 else 0

    def _add(self, name: str, value, feeds: int | None = None) -> None:
        base, i = name, 1
        while name in self._taken:
            name, i = f"{base}.{i}", i + 1
        self._taken.add(name)
        tensor = asarray(value)
        tensor._used()
        own = tensor._own if tensor._own is not None and tensor._own.held else None
        if own is not None:
            tensor = own.tensor
        sharding = tensor.sharding if feeds is None else self.inputs[feeds].sharding or tensor.sharding
        self.results.append(Result(name, tensor, feeds, sharding, own and replicas.Own(None, own.mesh, True)))

    def _returned(self, returned, arguments, traced, feeds):
        """Adds the results; a container with the structure of an argument becomes that argument of the next step."""
        several = type(returned) is tuple
        used: set[int] = set()
        for number, part in enumerate(returned if several else [returned]):
            leaves, node = tree.flatten(part)
            match: range | None = None
            for i, (other, places) in enumerate(arguments.parts):
                if feeds and i not in used and node.kind != "leaf" and leaves and node == other and all(
                        _feeds(leaf.value, traced[k]) for leaf, k in zip(leaves, places)):
                    used.add(i)
                    match = places
                    break
            base = f"out.{number}" if several else "out"
            for k, leaf in enumerate(leaves):
                if match is None:
                    self._add(f"{base}.{leaf.path}" if leaf.path else base, leaf.value)
                else:
                    self._add(f"new.{self.names[match[k]]}", leaf.value, match[k])
        self.outputs = len(self.results)

    def _changes(self, traced, behind):
        for i, (before, after) in enumerate(zip(traced, behind)):
            if after is before:
                continue
            after, name = asarray(after), self.names[i]
            if not _same(after, before):
                raise refuse(TraceError, f"'{self.name}' changed '{name}' from {before.dtype} {before.shape} to {after.dtype} {after.shape}; "
                                         "a tensor changed in place must keep its shape and type")
            place = next((k for k, r in enumerate(self.results) if r.feeds == i), None)
            if place is None:
                place = len(self.results)
                self._add(f"new.{name}", after, i)
            self.changed.append((i, place))

    @property
    def program(self) -> Program:
        """The recorded program, made when it is first used."""
        if self._program is None:
            self._program = Program(str(self.trace.finish()), self.name, verify=False, passes=",".join(self.trace.passes),
                                    fusion=self.trace.fusion or "")
        return self._program

    @property
    def session(self):
        """The session that runs it, compiled and opened when it is first used."""
        if self._session is None:
            if self._whole is not None:
                replicas.check_programs(self.name, list(zip(self.names, self.inputs)), self.program.mlir)
            try:
                artifact = self.program.compile(target=target_of(self._backend), **self._options)
                self._session = Session(artifact, self._backend, self._devices, precision=self._precision)
            except Error as error:
                raise error if ": error: " in str(error) else refuse(type(error), str(error)) from None
            self._steps = Steps(self._session, self.name, self._donate, self._whole is not None, self._lock)
            # Placements of arguments left to the compiler stay open: the next step is the same program.
            left = {i: self.inputs[r.feeds].sharding for i, r in enumerate(self.results) if r.feeds is not None and _is_open(self.inputs[r.feeds])}
            self._shardings = [left[i] if i in left else from_home(r.home) if self.trace.meshes and self._whole is None else None
                               for i, r in enumerate(self._session.results)]
            if self._whole is not None:  # parameters split over the devices of a rank stay split
                self._shardings = [r.sharding if r.feeds is not None else None for r in self.results]
        return self._session

    def run(self, arguments: Arguments):
        """Runs one step and returns the function's result, with values; updates arguments that the function changed.

        Calls are serialized: all of them use the same devices.
        """
        with self._lock:
            return self._run(arguments)

    def _run(self, arguments: Arguments):
        given, session = [*arguments.tensors(), *self.hidden], self.session
        steps, last, fed, values, drawn = self._steps, self._last, self._fed, {}, {}
        checks, on_devices, passed = self.trace.checks, [], []
        checked = {i for i, _ in checks} if checks else ()
        for i, tensor in enumerate(given):
            if last and tensor is last[i]:
                continue
            source = tensor._source
            if source is None:
                values[i] = self._value(tensor, self._name(i))
            elif i in fed and isinstance(source, OnDevices) and source.feeds(steps, i):
                passed.append(tensor)
            elif session.resident and i not in checked and isinstance(source, (OnDevices, OnGpu)):
                on_devices.append(i)
            elif tensor._data is None and source.is_drawn(session.arguments[i].home):
                drawn[i] = source  # one at a time, and then freed
            else:
                values[i] = self._value(tensor, self._name(i))
        for i, check in checks:
            if i in values:
                check(values[i], self._eager)
        steps.keep(passed)
        for i in on_devices:
            if not steps.set(i, given[i]):
                values[i] = self._value(given[i], self._name(i))
        for i, value in values.items():
            session._set(i, value)
        for i, source in drawn.items():
            part = source.part()
            held = session.argument_box(i)
            if part is not None and part.fits(held):
                session.set_box(i, part.array if held else None)
            else:
                session.set(i, source.read())
        steps.step(passed)
        self._last = [None if i in fed else tensor for i, tensor in enumerate(given)] if fed else given
        tensors = [self._result(k, r) for k, r in enumerate(self.results)]
        if self.changed:
            arguments.assign({leaf: tensors[result] for leaf, result in self.changed})
        return tensors[0] if self._returns_tensor else tree.rebuild(self._structure, tensors[:self.outputs])

    def _name(self, index: int) -> str:
        return self.names[index] if index < len(self.names) else "captured"

    def _value(self, tensor: Tensor, name: str):
        if tensor._array is None:
            if type(tensor) is not Tensor:  # an uninitialized parameter raises its error
                tensor._concrete(f"calling '{self.name}'")
            raise refuse(ArgumentError, f"'{name}' is a description without a value; give it to explain or lower")
        tensor._used()
        return tensor._array

    def _result(self, index: int, result: Result) -> Tensor:
        made = self._steps.result(index, result.tensor.dtype, self._shardings[index])
        made._own = result.own
        return made


def _is_open(tensor) -> bool:
    """Whether the compiler may choose a placement of the tensor."""
    return tensor.sharding is None or any(isinstance(placement, Open) for placement in tensor.sharding.placements)


def _feeds(value, argument) -> bool:
    """Whether a result may become an argument of the next step; not for gradients and values placed differently."""
    value = asarray(value)
    return _same(value, argument) and not value._gradient and value.sharding in (None, argument.sharding)


def _same(value, tensor) -> bool:
    value = asarray(value)
    return (value.shape, value.dtype) == (tensor.shape, tensor.dtype)
