# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments of a call as named leaves."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

import numpy as np

from . import tree
from .dtypes import float32
from .errors import TraceError
from .source import refuse
from .tensor import Tensor, asarray, from_array
from .tree import Leaf, Node


def is_value(value) -> bool:
    """What becomes an argument of a program: arrays, and floats (which may change from call to call)."""
    return tree.is_array(value) or type(value) is float


class Arguments:
    """Arguments of a call: `leaves`, named by parameter and place ("model.w0"), and the structure, which decides with their
    types and placements whether a recorded program serves again."""

    def __init__(self, function: Callable, args: Sequence, kwargs: dict, is_value: Callable = is_value):
        self._function, self._is_value = function, is_value
        self.values = [*args, *kwargs.values()]
        self._positional, self._keywords = len(args), tuple(kwargs)
        self.leaves: list[Leaf] = []
        self.parts: list[tuple[Node, range]] = []  # an argument's structure and leaves
        self.argument_names = self._names(function)
        for name, value in zip(self.argument_names, self.values):
            leaves, node = tree.flatten(value, is_value)
            first = len(self.leaves)
            for leaf in leaves:
                if isinstance(leaf.value, Tensor):
                    leaf.value._used()
            self.leaves += [Leaf(f"{name}.{leaf.path}" if leaf.path else name, leaf.value, leaf.trainable, leaf.parameter) for leaf in leaves]
            self.parts.append((node, range(first, len(self.leaves))))

    def _names(self, function) -> list[str]:
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][:self._positional]
        return [*plain, *[f"arg{i}" for i in range(len(plain), self._positional)], *self._keywords]

    @property
    def names(self) -> list[str]:
        return [leaf.path for leaf in self.leaves]

    def key(self):
        """What calls of one program have in common."""
        return tuple(node for node, _ in self.parts), self._positional, self._keywords, tuple(map(_signature, self.leaves))

    def rebuilt(self, leaves: Sequence) -> tuple[list, dict]:
        """Copies of the arguments with other leaves: (args, kwargs)."""
        values = [tree.rebuild(value, [leaves[i] for i in places], self._is_value)
                  for value, (_, places) in zip(self.values, self.parts)]
        return values[:self._positional], dict(zip(self._keywords, values[self._positional:]))

    def leaves_of(self, args: Sequence, kwargs: dict) -> list:
        """The leaves of rebuilt arguments, as a function left them. Raises TraceError where it changed their structure."""
        result = []
        for (node, _), name, value in zip(self.parts, self._names(self._function), [*args, *kwargs.values()]):
            leaves, now = tree.flatten(value, self._is_value)
            if now.leaves != node.leaves:
                raise refuse(TraceError, f"the function changed the structure of '{name}'; return what is new")
            result += [leaf.value for leaf in leaves]
        return result

    def assign(self, changed: dict[int, Tensor]) -> None:
        """Puts what a function changed into the arguments themselves."""
        for value, (_, places) in zip(self.values, self.parts):
            if any(i in changed for i in places):
                tree.assign(value, [changed.get(i, self.leaves[i].value) for i in places], self._is_value)

    def tensors(self) -> list[Tensor]:
        """The leaves as tensors; floats are float32 that follow the type of what they meet."""
        result = []
        for leaf in self.leaves:
            if type(leaf.value) is float:
                tensor = from_array(np.asarray(leaf.value, np.float32), float32)
                tensor._weak = True
            else:
                tensor = asarray(leaf.value)
                if tensor._scope is not None:
                    raise refuse(TraceError, f"'{leaf.path}' is a traced tensor of {tensor._scope.what}")
            result.append(tensor)
        return result


def _signature(leaf: Leaf):
    if type(leaf.value) is float:
        return float
    tensor = asarray(leaf.value)
    return tensor.shape, tensor.dtype.element, tensor.sharding, tensor._weak, tensor._own is not None
