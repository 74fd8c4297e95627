# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model of a machine, common to all formats: devices, NUMA nodes, and paths between devices."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ..errors import Error


class TopologyFileError(Error):
    """An invalid topology file: `file:line:column: error: …`; lines and columns count from 1."""

    def __init__(self, path: str, line: int, column: int, message: str):
        super().__init__(f"{path}:{line}:{column}: error: {message}")
        self.line, self.column = line, column


@dataclasses.dataclass(frozen=True)
class Path:
    """A path between two devices: the class of its slowest link, and its rate.

    rate: bytes per second in one direction; 0 if the devices are not connected.
    """

    kind: str
    rate: float


@dataclasses.dataclass
class Device:
    """A device. Fields that the file does not give are None."""

    name: str
    numa: int | None = None  # number of its NUMA node
    place: str = ""  # bus id
    memory: float | None = None  # bytes


@dataclasses.dataclass
class Numa:
    """A NUMA node. Fields that the file does not give are None."""

    number: int
    cores: int | None = None
    memory: float | None = None  # bytes


@dataclasses.dataclass
class Machine:
    """A machine. Devices are numbered by their index; `path` is symmetric; `notes` list the rates that are assumed."""

    name: str
    format: str
    devices: list[Device]
    path: Callable[[int, int], Path]
    numa: list[Numa] = dataclasses.field(default_factory=list)
    adapters: list[str] = dataclasses.field(default_factory=list)  # descriptions of network adapters
    notes: list[str] = dataclasses.field(default_factory=list)

    def rate(self, a: int, b: int) -> float:
        """Bytes per second of the best path between two devices."""
        return self.path(a, b).rate

    def classes(self) -> dict[Path, list[tuple[int, int]]]:
        """The distinct paths, fastest first, with the pairs of devices that they connect."""
        found: dict[Path, list[tuple[int, int]]] = {}
        for a in range(len(self.devices)):
            for b in range(a + 1, len(self.devices)):
                found.setdefault(self.path(a, b), []).append((a, b))
        return dict(sorted(found.items(), key=lambda each: (-each[0].rate, each[0].kind)))


def path_function(table: list[list[Path]]) -> Callable[[int, int], Path]:
    """The path function of a matrix of paths: the slower of both directions, since a ring may run either way."""
    return lambda a, b: min(table[a][b], table[b][a], key=lambda path: path.rate)
