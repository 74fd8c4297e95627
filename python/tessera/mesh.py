# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Process meshes of the public API."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence

from .errors import MeshError
from .sharding import Mesh
from .source import refuse


@dataclasses.dataclass(frozen=True, init=False, eq=False)
class ProcessMesh(Mesh):
    """An n-dimensional grid of processes.

    ids: nested lists or an array of distinct non-negative process ids, one nesting level per axis. dim_names: one name
    per axis, default "d0", "d1", ... name: the name of the mesh in reports.

    Raises MeshError for ragged or empty lists, for ids that are negative, not integers or duplicated, and for names
    that are duplicated or not one per axis.
    """

    def __init__(self, ids, dim_names: Sequence[str] | None = None, name: str = "mesh"):
        ids = ids.tolist() if hasattr(ids, "tolist") else ids
        shape, flat = _flatten(ids)
        for id in flat:
            if isinstance(id, bool) or not isinstance(id, int):
                raise refuse(MeshError, f"process id {id!r} is not an integer; a mesh is a grid of integers")
            if id < 0:
                raise refuse(MeshError, f"process id {id} is negative; ids count from 0")
        seen: set[int] = set()
        for id in flat:
            if id in seen:
                raise refuse(MeshError, f"duplicate process id {id}; each process has one place in the mesh")
            seen.add(id)
        if dim_names is None:
            dim_names = [f"d{i}" for i in range(len(shape))]
        dim_names = [dim_names] if isinstance(dim_names, str) else list(dim_names)
        if len(dim_names) != len(shape):
            raise refuse(MeshError, f"{len(dim_names)} names {dim_names} for a mesh of {len(shape)} axes; give one name per axis")
        for i, axis in enumerate(dim_names):
            if not isinstance(axis, str) or not axis:
                raise refuse(MeshError, f"axis name {axis!r} is not a string; give one name per axis")
            if axis in dim_names[:i]:
                raise refuse(MeshError, f"duplicate axis name '{axis}' in {dim_names}; each axis has its own name")
        for field, value in zip(("shape", "dim_names", "devices", "name"), (shape, tuple(dim_names), tuple(flat), name)):
            object.__setattr__(self, field, value)

    @property
    def process_ids(self) -> list[int]:
        """Process ids in row-major order."""
        return list(self.devices)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def coordinate(self, rank: int) -> tuple[int, ...]:
        """The coordinate of a process in the mesh. Raises MeshError if the process is not in the mesh."""
        if rank not in self.devices:
            raise refuse(MeshError, f"process {rank} is not in the mesh {self.process_ids}")
        return coordinate(self.shape, self.devices.index(rank))

    def axis(self, name: str) -> int:
        """The index of the axis called `name`. Raises MeshError if there is no such axis."""
        if name not in self.dim_names:
            raise refuse(MeshError, f"the mesh has no axis '{name}'; its axes are {list(self.dim_names)}")
        return self.dim_names.index(name)

    def _key(self):
        return self.shape, self.dim_names, self.devices

    def __eq__(self, other):
        return self is other or isinstance(other, ProcessMesh) and self._key() == other._key()

    def __hash__(self):
        return self._hash

    @functools.cached_property
    def _hash(self):  # cached: every call of a compiled function hashes the mesh of each of its tensors
        return hash(self._key())

    def __repr__(self):
        return f"ProcessMesh(shape={list(self.shape)}, process_ids={self.process_ids}, dim_names={list(self.dim_names)})"


def coordinate(shape: Sequence[int], position: int) -> tuple[int, ...]:
    """Row-major coordinate of a linear index: shape [2, 4], position 6 -> (1, 2)."""
    result = []
    for extent in reversed(shape):
        result.append(position % extent)
        position //= extent
    return tuple(reversed(result))


def _flatten(ids) -> tuple[tuple[int, ...], list]:
    """The shape and the flattened entries of nested lists."""
    if not isinstance(ids, (list, tuple, range)):
        raise refuse(MeshError, f"expected a list of process ids, got {ids!r}")
    if len(ids) == 0:
        raise refuse(MeshError, "a mesh has at least one process; a list in it is empty")
    if not any(isinstance(entry, (list, tuple, range)) for entry in ids):
        return (len(ids),), list(ids)
    parts = [_flatten(entry) if isinstance(entry, (list, tuple, range)) else ((), [entry]) for entry in ids]
    for i, (shape, _) in enumerate(parts):
        if shape != parts[0][0]:
            raise refuse(MeshError, f"the mesh is ragged: entry 0 has shape {list(parts[0][0])}, entry {i} has {list(shape)}; "
                                    "lists at one nesting level have equal lengths")
    shape = (len(ids), *parts[0][0])
    assert math.prod(shape) == sum(len(flat) for _, flat in parts)
    return shape, [entry for _, flat in parts for entry in flat]
