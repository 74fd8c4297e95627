# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments of a call, flattened to named leaves."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence

import numpy as np

from . import tree
from .dtypes import float32
from .errors import TraceError
from .reader import Reader
from .source import refuse
from .tensor import Tensor, asarray, from_array
from .tree import Leaf, Node


_MOST_READERS = 4  # of one argument


def is_value(value) -> bool:
    """Whether a leaf becomes an argument of the program: arrays, and floats, which may change from call to call."""
    return tree.is_array(value) or type(value) is float


class Arguments:
    """The arguments of a call as `leaves`, named by parameter and path ("model.w0"), and their structure.

    Structure, types and placements (`key`) decide whether a recorded program can be reused.
    """

    def __init__(self, function: Callable, args: Sequence, kwargs: dict, is_value: Callable = is_value, parameters: Sequence[str] | None = None,
                 readers: dict | None = None):
        """`parameters`: names of the function's positional parameters (`parameters_of`), if the caller has them. `readers`: of
        structures that its earlier calls had, by position; this call adds its own."""
        self._function, self._is_value, self._parameters = function, is_value, parameters
        self.values = [*args, *kwargs.values()]
        self._positional, self._keywords = len(args), tuple(kwargs)
        self.given: list = []  # the values of the leaves
        self.parts: list[tuple[Node, range]] = []  # structure and leaf indices of each argument
        for position, value in enumerate(self.values):
            first = len(self.given)
            if type(value) is Tensor:
                self.given.append(value)
                self.parts.append((tree.LEAF, range(first, first + 1)))
                continue
            found, node = self._read(position, value, readers)
            self.given += found
            self.parts.append((node, range(first, len(self.given))))
        self._tensors = [value if type(value) is Tensor else _as_tensor(value) for value in self.given]
        for tensor in self._tensors:
            if tensor._unused is not None:
                tensor._used()

    def _read(self, position: int, value, readers: dict | None) -> tuple[list, Node]:
        """As tree.values."""
        if readers is None or tree.children(value) is None:
            return tree.values(value, self._is_value)
        known = readers.setdefault(position, [])
        for reader in known:
            if (found := reader.read(value)) is not None:
                return found, reader.node
        found, node = tree.values(value, self._is_value)
        if len(known) < _MOST_READERS and (reader := Reader.of(value, node, self._is_value)) is not None:
            known.append(reader)
        return found, node

    @functools.cached_property
    def argument_names(self) -> list[str]:
        """A name for each argument: of its parameter, or `arg0`, ... for those of *args."""
        parameters = parameters_of(self._function) if self._parameters is None else self._parameters
        plain = parameters[:self._positional]
        return [*plain, *[f"arg{i}" for i in range(len(plain), self._positional)], *self._keywords]

    @functools.cached_property
    def leaves(self) -> list[Leaf]:
        """The leaves with their names."""
        return [Leaf(f"{name}.{leaf.path}" if leaf.path else name, leaf.value, leaf.trainable, leaf.parameter)
                for name, value in zip(self.argument_names, self.values) for leaf in tree.flatten(value, self._is_value)[0]]

    @property
    def names(self) -> list[str]:
        """The path of each tensor, such as "params.layers.0.weight"."""
        return [leaf.path for leaf in self.leaves]

    def key(self):
        """The cache key: calls with equal keys run the same program."""
        return tuple([node for node, _ in self.parts]), self._positional, self._keywords, tuple([
            (t.shape, t.dtype.element, t.sharding, t._weak, t._own is not None) for t in self._tensors])

    def rebuilt(self, leaves: Sequence) -> tuple[list, dict]:
        """Copies of the arguments with other leaves: (args, kwargs)."""
        values = [tree.rebuild(value, [leaves[i] for i in places], self._is_value)
                  for value, (_, places) in zip(self.values, self.parts)]
        return values[:self._positional], dict(zip(self._keywords, values[self._positional:]))

    def leaves_of(self, args: Sequence, kwargs: dict) -> list:
        """The leaves of rebuilt arguments after the function ran. Raises TraceError if it changed their structure."""
        result = []
        for (node, _), name, value in zip(self.parts, self.argument_names, [*args, *kwargs.values()]):
            leaves, now = tree.flatten(value, self._is_value)
            if now.leaves != node.leaves:
                raise refuse(TraceError, f"the function changed the structure of '{name}'; return new tensors instead")
            result += [leaf.value for leaf in leaves]
        return result

    def assign(self, changed: dict[int, Tensor]) -> None:
        """Stores the tensors that the function replaced, by leaf index, in the caller's arguments."""
        for value, (_, places) in zip(self.values, self.parts):
            if any(i in changed for i in places):
                tree.assign(value, [changed.get(i, self.given[i]) for i in places], self._is_value)

    def tensors(self) -> list[Tensor]:
        """The leaves as tensors; floats are float32 and take the type of the other operand.

        Raises TraceError for traced tensors.
        """
        for i, tensor in enumerate(self._tensors):
            if tensor._scope is not None:
                raise refuse(TraceError, f"'{self.leaves[i].path}' is a traced tensor of {tensor._scope.what}")
        return self._tensors


def parameters_of(function: Callable) -> list[str]:
    """The names of the positional parameters of a function."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _as_tensor(value) -> Tensor:
    if type(value) is float:
        tensor = from_array(np.asarray(value, np.float32), float32)
        tensor._weak = True
        return tensor
    return asarray(value)
