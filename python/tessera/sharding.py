# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Meshes and shardings, and their syntax in the `dist` dialect."""

from __future__ import annotations

import dataclasses
import math


def quoted(text: str) -> str:
    """The string as an MLIR string literal; bytes outside printable ASCII, quotes and backslashes are escaped as \\XX.
    """
    return '"' + "".join(chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:02X}" for c in text.encode()) + '"'


@dataclasses.dataclass(frozen=True)
class Mesh:
    """A grid of devices. `devices` are their ids in row-major order, default 0, 1, ..."""

    shape: tuple[int, ...]
    dim_names: tuple[str, ...]
    devices: tuple[int, ...] | None = None
    name: str = "mesh"

    def __post_init__(self):
        if len(self.shape) != len(self.dim_names):
            raise ValueError(f"mesh '{self.name}' has {len(self.shape)} extents and {len(self.dim_names)} names; give one name per axis")
        if self.devices is not None and len(self.devices) != self.size:
            raise ValueError(f"mesh '{self.name}' of {self.size} places has {len(self.devices)} devices; give one device per place")

    @property
    def size(self) -> int:
        """The number of devices."""
        return math.prod(self.shape)

    @property
    def definition(self) -> str:
        """The text after `dist.process_mesh @name`."""
        names = ", ".join(map(quoted, self.dim_names))
        ids = ""
        if self.devices is not None and self.devices != tuple(range(self.size)):
            ids = f", process_ids = {list(self.devices)}"
        return f"(shape = {list(self.shape)}, dim_names = [{names}]{ids})"


@dataclasses.dataclass(frozen=True)
class Replicate:
    """Every device along the mesh axis holds the whole value."""

    def __str__(self):
        return "replicate"


@dataclasses.dataclass(frozen=True)
class Shard:
    """Splits dimension `dim` over the mesh axis.

    If several axes split one dimension, `order` 0 is the major one; None: mesh order.
    """

    dim: int
    order: int | None = None

    def __repr__(self):
        return f"Shard({self.dim})" if self.order is None else f"Shard({self.dim}, order={self.order})"

    def __str__(self):
        return f"shard({self.dim})" if self.order is None else f"shard({self.dim}, order = {self.order})"


@dataclasses.dataclass(frozen=True)
class Partial:
    """Each device along the mesh axis holds a term; the value is their reduction: sum, avg, max, min or prod."""

    reduction: str = "sum"

    def __repr__(self):
        return "Partial()" if self.reduction == "sum" else f"Partial('{self.reduction}')"

    def __str__(self):
        return f"partial({self.reduction})"


@dataclasses.dataclass(frozen=True)
class Open:
    """Leaves the placement on the mesh axis to the compiler."""

    def __str__(self):
        return "?"


Placement = Replicate | Shard | Partial | Open


@dataclasses.dataclass(frozen=True)
class Sharding:
    """The placement of a tensor on a mesh: one Placement per mesh axis; missing trailing ones are Replicate()."""

    mesh: Mesh
    placements: tuple[Placement, ...]

    def text(self, symbol: str) -> str:
        """The attribute of the `dist` dialect, on the mesh called `symbol`."""
        missing = len(self.mesh.shape) - len(self.placements)
        if missing < 0:
            raise ValueError(f"{len(self.placements)} placements on mesh '{self.mesh.name}' of {len(self.mesh.shape)} "
                             "axes; give at most one per axis")
        placements = [*self.placements, *[Replicate()] * missing]
        return f"#dist.sharding<@{symbol}, [{', '.join(map(str, placements))}]>"

    def __str__(self):
        return self.text(self.mesh.name)
