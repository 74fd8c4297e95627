# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversion of JAX's shardings.

Dimensions without an entry in a PartitionSpec are replicated. `None` in place of a sharding leaves it to the compiler,
as do UNCONSTRAINED dimensions the mesh axes that their spec does not use.
"""

from __future__ import annotations

import jax
from jax.sharding import NamedSharding, PartitionSpec

from ..ir import Location
from ..sharding import Mesh, Open, Replicate, Shard, Sharding
from .errors import ImportFailure


class ShardingReader:
    """Converts the shardings of one program, which are on one mesh. `mesh`: that of bare PartitionSpecs."""

    def __init__(self, mesh=None):
        self.mesh: Mesh | None = _mesh(mesh) if mesh is not None else None

    def convert(self, sharding, rank: int, what: str, location: Location | None = None) -> Sharding | None:
        """The Sharding; None if it is left to the compiler. `what` names the value in errors. Raises ImportFailure."""
        if sharding is None or type(sharding).__name__ == "UnspecifiedValue":
            return None
        if isinstance(sharding, PartitionSpec):
            if self.mesh is None:
                raise ImportFailure(f"{what} has {sharding} without a mesh; use NamedSharding or pass mesh=", location)
            spec = sharding
        elif isinstance(sharding, NamedSharding):
            spec = sharding.spec
            self.use(sharding.mesh, what, location)
        else:
            raise ImportFailure(f"{what} has a {type(sharding).__name__}; shardings are NamedSharding or PartitionSpec", location)
        return self._placements(spec, rank, what, location)

    def use(self, mesh, what, location):
        """Makes `mesh` the program's. Raises ImportFailure if it has another one."""
        used = _mesh(mesh)
        if self.mesh is None:
            self.mesh = used
        same = (used.dim_names, used.shape) == (self.mesh.dim_names, self.mesh.shape)
        if not same or (None not in (used.devices, self.mesh.devices) and used.devices != self.mesh.devices):
            raise ImportFailure(f"{what} is on mesh {_show(used)}, the program on {_show(self.mesh)}; all shardings must use one mesh",
                              location)
        if self.mesh.devices is None:
            self.mesh = used

    def _placements(self, spec, rank, what, location):
        if len(spec) > rank:
            raise ImportFailure(f"{what} of rank {rank} has {spec} of {len(spec)} entries; give at most one per dimension", location)
        names = self.mesh.dim_names
        open_rest = any(entry is PartitionSpec.UNCONSTRAINED for entry in spec)
        placements = [Open() if open_rest else Replicate() for _ in names]
        for dim, entry in enumerate(spec):
            if entry is None or entry is PartitionSpec.UNCONSTRAINED:
                continue
            axes = entry if isinstance(entry, tuple) else (entry,)
            for axis in axes:
                if axis not in names:
                    raise ImportFailure(f"{what} has {spec}: the mesh has no axis '{axis}', only {list(names)}", location)
            positions = [names.index(axis) for axis in axes]
            for order, position in enumerate(positions):
                if isinstance(placements[position], Shard):
                    raise ImportFailure(f"{what} has {spec}: axis '{names[position]}' is used twice", location)
                placements[position] = Shard(dim, None if positions == sorted(positions) else order)
        return Sharding(self.mesh, tuple(placements))


def _mesh(mesh) -> Mesh:
    if isinstance(mesh, Mesh):
        return mesh
    if not hasattr(mesh, "axis_names") or not hasattr(mesh, "axis_sizes"):
        raise ImportFailure(f"mesh is a {type(mesh).__name__}; expected a jax.sharding.Mesh, an AbstractMesh or a tessera.ProcessMesh")
    devices = tuple(int(d.id) for d in mesh.devices.flat) if isinstance(mesh, jax.sharding.Mesh) else None
    return Mesh(tuple(mesh.axis_sizes), tuple(mesh.axis_names), devices)


def _show(mesh: Mesh) -> str:
    shape = ", ".join(f"{n}={s}" for n, s in zip(mesh.dim_names, mesh.shape))
    return f"({shape})" + (f" of devices {list(mesh.devices)}" if mesh.devices is not None else "")
