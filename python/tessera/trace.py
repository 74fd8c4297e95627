# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recording of programs: nested functions, captured tensors, and the meshes in use.

Inside `jit` every operation on tensors appends MLIR operations to the innermost function. A tensor of an enclosing
function becomes another argument of the innermost one; a tensor with a value becomes an argument of the program.
"""

from __future__ import annotations

import contextlib
import threading
import warnings

from . import ir
from .constants import constant
from .dtypes import of_element
from .errors import MeshError, TesseraWarning, TraceError
from .ir import Port, TensorType
from .ir.core import Block, Value
from .mesh import ProcessMesh
from .sharding import Sharding, quoted
from .source import location, refuse
from .tensor import Tensor

_local = threading.local()
_MOVES = ("tensor.expand_shape", "tensor.collapse_shape", "linalg.transpose")  # permute the elements of the operand


def current() -> Trace | None:
    """The program being recorded in this thread; None outside jit."""
    stack = getattr(_local, "stack", None)
    return stack[-1] if stack else None


class Scope:
    """A function or a region. Its tensors are invalid once it is closed."""

    __slots__ = ("frame", "trace", "open", "what")

    def __init__(self, trace: Trace, frame: Frame | None, what: str):
        self.trace, self.frame, self.open, self.what = trace, frame, True, what


class Frame:
    """A function being recorded. `captured` are the outer tensors passed to it as further arguments."""

    def __init__(self, trace: Trace, parent: Frame | None, what: str):
        self.parent, self.block = parent, Block()
        self.scopes = [Scope(trace, self, what)]
        self.inner: dict[Value, Value] = {}
        self.captured: list = []

    def argument(self, type: TensorType, hint: str | None = None) -> Value:
        """Appends an argument to the block."""
        value = Value(type, hint=hint)
        self.block.arguments.append(value)
        return value


class Trace:
    """A program being recorded.

    `passes` run on it in order before the pipeline; `hidden` are the tensors with values that it reads.
    """

    def __init__(self):
        self.builder = ir.Builder()
        self.frames: list[Frame] = []
        self.meshes: dict[ProcessMesh, str] = {}
        self.passes: list[str] = []
        self.hidden: list = []
        self.derivatives = 0
        self.given = 0  # arguments that calls pass; later ones are captured
        self._hidden: dict[int, Value] = {}
        self.fusion: str | None = None  # options of dist-fuse-collectives
        self.micro_batch: int | None = None  # the one being recorded
        self.schedule: str | None = None  # of the micro-batches
        self.checks: list = []  # (index of an argument, check of its value before each call)
        self.watched: list | None = None  # (tensor, check of its computed value after the call); None: not checked
        self.sharded: list = []  # (value, location) of each shard_tensor, to warn of unused ones

    @contextlib.contextmanager
    def recording(self):
        """Context manager: makes this the current program."""
        stack = _local.__dict__.setdefault("stack", [])
        stack.append(self)
        try:
            yield self
        finally:
            stack.pop()
            for frame in self.frames:
                for scope in frame.scopes:
                    scope.open = False

    @contextlib.contextmanager
    def function(self, what: str):
        """Context manager: operations go into a new function, which sees outer values only by capture.

        `what` names it in diagnostics.
        """
        frame = Frame(self, self.frames[-1] if self.frames else None, what)
        self.frames.append(frame)
        try:
            with self.builder.isolated(frame.block):
                yield frame
        finally:
            self.frames.pop()
            for scope in frame.scopes:
                scope.open = False

    @contextlib.contextmanager
    def of_micro_batch(self, number: int):
        """Context manager: derivatives recorded inside belong to this micro-batch."""
        before, self.micro_batch = self.micro_batch, number
        try:
            yield
        finally:
            self.micro_batch = before

    @contextlib.contextmanager
    def region(self, block: Block, what: str):
        """Context manager: operations go into a block (of a loop or a branch) of the innermost function."""
        frame = self.frames[-1]
        scope = Scope(self, frame, what)
        frame.scopes.append(scope)
        try:
            with self.builder.inside(block):
                yield scope
        finally:
            frame.scopes.pop()
            scope.open = False

    def tensor(self, value: Value, sharding: Sharding | None = None, weak: bool = False):
        """A traced tensor of the innermost scope."""
        made = Tensor.__new__(Tensor)
        made._init(value.type.shape, of_element(value.type.element), sharding=sharding, weak=weak)
        made._value, made._scope = value, self.frames[-1].scopes[-1]
        return made

    def argument_of(self, tensor) -> int | None:
        """The index of the program argument that a tensor only permutes or repeats; None for others."""
        if tensor._scope is None or tensor._scope.trace is not self or tensor._scope.frame is not self.frames[0]:
            return None
        found = tensor._value
        while (owner := found.owner) is not None and (owner.name in _MOVES or "broadcast" in owner.attributes):
            found = owner.operands[0]
        return next((i for i, value in enumerate(self.frames[0].block.arguments[:self.given]) if value is found), None)

    def checked(self, tensor, check) -> None:
        """Registers `check` for a tensor's value.

        It runs now if the value is known, before each call if it is that of an argument, and after the call if it is
        computed and `watched`.
        """
        if tensor._scope is None and tensor._array is not None:
            check(tensor._array)
        elif (argument := self.argument_of(tensor)) is not None:
            self.checks.append((argument, check))
        elif self.watched is not None and tensor._scope is self.frames[0].scopes[0]:
            self.watched.append((tensor, check))

    def constrained(self, tensor: Tensor, sharding: Sharding, by_user: bool = True) -> Tensor:
        """A tensor with the same value, constrained to `sharding`.

        by_user: warn if the result is unused. Raises MeshError if the tensor is on another mesh.
        """
        if tensor.mesh is not None and tensor.mesh != sharding.mesh:
            raise refuse(MeshError, f"shard_tensor of a tensor on {tensor.mesh!r} to {sharding.mesh!r}; move it to "
                                    "another mesh with reshard")
        tensor._used()
        with self.builder.at(location()):
            value = self.builder.shard(self.value(tensor), self.text(sharding))
        if by_user:
            self.sharded.append((value, location()))
        return self.tensor(value, sharding)

    def value(self, tensor) -> Value:
        """The IR value of a tensor in the innermost function; captures it if needed.

        Raises TraceError if the tensor's scope is closed.
        """
        return self._in(tensor, self.frames[-1])

    def _in(self, tensor, frame: Frame) -> Value:
        if tensor._scope is None:
            return self._concrete(tensor, frame)
        scope = tensor._scope
        if not scope.open:
            raise refuse(TraceError, f"a tensor of {scope.what} is used after it has ended; return it from there")
        if scope.trace is not self:
            raise refuse(TraceError, f"a tensor of {scope.what} is used in another program; pass it as an argument")
        if scope.frame is frame:
            return tensor._value
        return self._capture(frame, tensor._value, tensor)

    def _capture(self, frame, key, tensor):
        if key not in frame.inner:
            self._in(tensor, frame.parent)
            frame.inner[key] = frame.argument(key.type)
            frame.captured.append(tensor)
        return frame.inner[key]

    def _concrete(self, tensor, frame) -> Value:
        """A tensor with a value: a constant if small, else an argument of the program."""
        if tensor.size <= 16 and tensor.sharding is None and tensor._array is not None:
            return constant(self.builder, tensor._array, tensor.dtype.element)
        root = self.frames[0]
        if id(tensor) not in self._hidden:
            self._hidden[id(tensor)] = root.argument(TensorType(tensor.shape, tensor.dtype.element))
            self.hidden.append(tensor)
        key = self._hidden[id(tensor)]
        return key if frame is root else self._capture(frame, key, tensor)

    def symbol(self, mesh: ProcessMesh) -> str:
        """The symbol of a mesh in the module."""
        if mesh not in self.meshes:
            base = "".join(c if c.isalnum() or c == "_" else "_" for c in mesh.name) or "mesh"
            name, i = base, 1
            while name in self.meshes.values():
                name, i = f"{base}{i}", i + 1
            self.meshes[mesh] = name
        return self.meshes[mesh]

    def text(self, sharding: Sharding) -> str:
        """The attribute of a sharding, over the symbol of its mesh."""
        return sharding.text(self.symbol(sharding.mesh))

    def port(self, type: TensorType, name: str | None, sharding: Sharding | None = None, **attributes) -> Port:
        """An argument or result of the program."""
        attributes = {"name": quoted(name), **attributes} if name else dict(attributes)
        if sharding is not None:
            attributes["sharding"] = self.text(sharding)
        return Port(type, attributes, self.builder.location)

    def warn_unused(self) -> None:
        """Warns of shard_tensor whose result is unused: it has no effect."""
        used = {v for f in self.builder.module.functions if f.body is not None for o in operations(f.body) for v in o.operands}
        for value, place in self.sharded:
            if value not in used and place is not None:
                warnings.warn_explicit("the result of shard_tensor is not used; it does not change its argument", TesseraWarning,
                                       place.file, place.line)

    def finish(self) -> ir.Module:
        """The module, with all meshes that were used."""
        module = self.builder.module
        for mesh, name in self.meshes.items():
            module.meshes[name] = mesh.definition
        return module


def operations(block: Block):
    """Operations of a block and of its nested regions."""
    for operation in block.operations:
        yield operation
        for region in operation.regions:
            yield from operations(region)


def check_meshes(name: str, tensors) -> None:
    """Raises MeshError, naming both meshes, if operands of an operation are known to be on different meshes."""
    first = None
    for tensor in tensors:
        if tensor.mesh is None:
            continue
        if first is not None and tensor.mesh != first.mesh:
            raise refuse(MeshError, f"operands of '{name}' are on {first.mesh!r} and {tensor.mesh!r}; move one of them with reshard",
                         location())
        first = tensor if first is None else first
