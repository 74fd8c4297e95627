# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values, operations, blocks and functions of a program, before it is printed.

The builder (`build.py`) makes them, `module.py` collects them, `printer.py` prints them as MLIR.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from .types import Type


@dataclasses.dataclass(frozen=True)
class Location:
    """A source location; lines and columns count from 1."""

    file: str
    line: int
    column: int = 1

    def __str__(self):
        file = self.file.replace("\\", "\\\\").replace('"', '\\"')
        return f'loc("{file}":{self.line}:{self.column})'


class Value:
    """A result of an operation (`owner`), or a block argument (owner None). `hint`: preferred name in the text."""

    __slots__ = ("type", "owner", "hint")

    def __init__(self, type: Type, owner: Operation | None = None, hint: str | None = None):
        self.type, self.owner, self.hint = type, owner, hint


class Operation:
    """An operation. `attributes` maps names to MLIR text, or to the data that the printer of this operation expects."""

    __slots__ = ("name", "operands", "results", "attributes", "regions", "location")

    def __init__(self, name: str, operands: list[Value], types: list[Type], attributes: dict[str, Any] | None = None,
                 regions: list[Block] | None = None, location: Location | None = None):
        self.name, self.operands = name, list(operands)
        self.results = [Value(t, self) for t in types]
        self.attributes = attributes or {}
        self.regions = regions or []
        self.location = location

    @property
    def result(self) -> Value:
        """The only result. Raises ValueError if there are none or several."""
        (value,) = self.results
        return value


class Block:
    """A region of one block; its last operation is the terminator."""

    __slots__ = ("arguments", "operations")

    def __init__(self, types: list[Type] = ()):
        self.arguments = [Value(t) for t in types]
        self.operations: list[Operation] = []


@dataclasses.dataclass
class Port:
    """An argument or result of a function.

    `attributes` are its `dist.` attributes as MLIR text, by name without the prefix.
    """

    type: Type
    attributes: dict[str, str] = dataclasses.field(default_factory=dict)
    location: Location | None = None


class Function:
    """A function; `body` None makes it a declaration."""

    def __init__(self, name: str, arguments: list[Port]):
        self.name, self.arguments = name, arguments
        self.results: list[Port] = []
        self.body: Block | None = Block([port.type for port in arguments])  # None: a declaration
        self.private = False
        self.attributes: dict[str, str] = {}  # `dist.` attributes, as in Port
