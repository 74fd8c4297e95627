# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What all formats are read into: devices, NUMA nodes, and the path between each two devices."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ..errors import Error


class TopologyFileError(Error):
    """`file:line:column: error: …`; lines and columns are counted from 1."""

    def __init__(self, path: str, line: int, column: int, message: str):
        super().__init__(f"{path}:{line}:{column}: error: {message}")
        self.line, self.column = line, column


@dataclasses.dataclass(frozen=True)
class Path:
    """Between two devices: the class of its slowest link, and bytes a second in one direction. A rate of 0: not connected."""

    kind: str
    rate: float


@dataclasses.dataclass
class Device:
    """numa: the number of its NUMA node, where the file says it. memory: bytes."""

    name: str
    numa: int | None = None
    place: str = ""  # bus id
    memory: float | None = None


@dataclasses.dataclass
class Numa:
    number: int
    cores: int | None = None
    memory: float | None = None  # bytes


@dataclasses.dataclass
class Machine:
    """Devices are numbered as they stand. `path` is symmetric. `notes` say what rates are assumed."""

    name: str
    format: str
    devices: list[Device]
    path: Callable[[int, int], Path]
    numa: list[Numa] = dataclasses.field(default_factory=list)
    adapters: list[str] = dataclasses.field(default_factory=list)  # network adapters, a text each
    notes: list[str] = dataclasses.field(default_factory=list)

    def rate(self, a: int, b: int) -> float:
        return self.path(a, b).rate

    def classes(self) -> dict[Path, list[tuple[int, int]]]:
        """The paths that occur, fastest first, with the pairs of devices that they join."""
        found: dict[Path, list[tuple[int, int]]] = {}
        for a in range(len(self.devices)):
            for b in range(a + 1, len(self.devices)):
                found.setdefault(self.path(a, b), []).append((a, b))
        return dict(sorted(found.items(), key=lambda each: (-each[0].rate, each[0].kind)))


def of_table(table: list[list[Path]]) -> Callable[[int, int], Path]:
    """Of each direction the slower counts: a ring may run either way."""
    return lambda a, b: min(table[a][b], table[b][a], key=lambda path: path.rate)
