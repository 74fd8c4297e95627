# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The part of a tensor that each process holds: the placement algebra of lib/Sharding on NumPy arrays.

Several mesh axes that shard one dimension form one linear index, major first, and split the dimension into parts of
equal length, rounded up: 7 elements over 4 processes are 2, 2, 2, 1.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from .errors import PlacementError
from .mesh import ProcessMesh, coordinate
from .sharding import Mesh, Partial, Replicate, Shard, Sharding, quoted
from .source import refuse

# A part of a mesh axis: (axis, product of the extents of the more major parts of this axis, extent).
AxisPart = tuple[int, int, int]


@dataclasses.dataclass(frozen=True)
class Layout:
    """The axis parts that shard each dimension, major first, and the partial axis parts with their reduction."""

    dims: tuple[tuple[AxisPart, ...], ...]
    partial: tuple[tuple[AxisPart, str], ...] = ()

    def local_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Shape of the local buffer, equal on every process: extents are rounded up."""
        return tuple(-(-n // math.prod(size for _, _, size in parts)) for n, parts in zip(shape, self.dims))

    def box(self, shape: Sequence[int], mesh: Mesh, rank: int) -> tuple[slice, ...]:
        """The slice of each dimension that a process holds, in global indices; empty if no element is left for it."""
        place = coordinate(mesh.shape, mesh.devices.index(rank))
        box = []
        for n, length, parts in zip(shape, self.local_shape(shape), self.dims):
            begin = min(n, length * _index(parts, mesh, place))
            box.append(slice(begin, min(n, begin + length)))
        return tuple(box)


    def term(self, mesh: Mesh, rank: int) -> tuple[int, ...]:
        """Which term of a partial value a process holds: its coordinate along each partial axis."""
        place = coordinate(mesh.shape, mesh.devices.index(rank))
        return tuple(_index([part], mesh, place) for part, _ in self.partial)


def _index(parts, mesh, place) -> int:
    index = 0
    for axis, pre, size in parts:
        index = index * size + place[axis] // (mesh.shape[axis] // (pre * size)) % size
    return index


def layout(sharding: Sharding, rank: int) -> Layout:
    """The layout of a tensor of `rank` dimensions under a sharding."""
    if isinstance(sharding, SubAxisSharding):
        return sharding.layout
    mesh, dims, partial = sharding.mesh, [[] for _ in range(rank)], []
    for axis, placement in enumerate(sharding.placements):
        part = (axis, 1, mesh.shape[axis])
        if isinstance(placement, Shard):
            dims[placement.dim].append((placement.order if placement.order is not None else axis, part))
        elif isinstance(placement, Partial):
            partial.append((part, placement.reduction))
    return Layout(tuple(tuple(part for _, part in sorted(parts)) for parts in dims), tuple(partial))


@dataclasses.dataclass(frozen=True, repr=False)
class SubAxisSharding(Sharding):
    """A sharding over parts of mesh axes, which the compiler may choose.

    `layout` is exact; `placements` only approximate it.
    """

    layout: Layout = None

    def text(self, symbol: str) -> str:
        """The attribute `#dist.sharding` over the mesh with that symbol."""
        def part(p):
            axis, pre, size = p
            name = quoted(self.mesh.dim_names[axis])
            return name if size == self.mesh.shape[axis] else f"{name}:({pre}){size}"
        dims = ", ".join("[" + ", ".join(map(part, parts)) + "]" for parts in self.layout.dims)
        partial = ", ".join(f"{kind}({part(p)})" for p, kind in self.layout.partial)
        return f"#dist.sharding<@{symbol}, dims = [{dims}]" + (f", partial = [{partial}]" if partial else "") + ">"

    def __repr__(self):
        return self.text(self.mesh.name)


def from_home(text: str) -> Sharding | None:
    """The sharding in an artifact's description of an argument or result (docs/step-format.md); None for an empty text.
    """
    if not text:
        return None
    home = json.loads(text)
    m = home["mesh"]
    mesh = ProcessMesh(np.array(m["process_ids"]).reshape(m["shape"]), m["dim_names"], m["name"])
    dims = tuple(tuple(tuple(part) for part in dim["axes"]) for dim in home["layout"]["dims"])
    partial = tuple((tuple(p["axis"]), p["kind"]) for p in home["layout"].get("partial", ()))
    placements: list = [Replicate()] * len(mesh.shape)
    whole = True
    for d, parts in enumerate(dims):
        ordered = [axis for axis, _, _ in parts] != sorted(axis for axis, _, _ in parts)
        for i, (axis, _, size) in enumerate(parts):
            whole &= size == mesh.shape[axis]
            placements[axis] = Shard(d, i if ordered else None)
    for (axis, _, size), kind in partial:
        whole &= size == mesh.shape[axis]
        placements[axis] = Partial(kind)
    if whole:
        return Sharding(mesh, tuple(placements))
    return SubAxisSharding(mesh, tuple(placements), Layout(dims, partial))


class Placed(str):
    """A sharding as the text that reports show; `sharding` is the object, or None if the value is on no mesh."""

    sharding: Sharding | None

    def __new__(cls, text: str, meshes: Mapping[str, ProcessMesh]):
        made = super().__new__(cls, text)
        made.sharding = _from_text(text, meshes)
        return made


def _from_text(text: str, meshes: Mapping[str, ProcessMesh]) -> Sharding | None:
    match = re.fullmatch(r'#dist\.sharding<@("(?:[^"\\]|\\.)*"|[^,]+), (?:\[([^\[\]]*)\]|dims = \[(.*?)\](?:, partial = \[(.*)\])?)>', text)
    mesh = meshes.get(match[1].strip('"')) if match else None
    if mesh is None:
        return None
    if match[2] is not None:
        placements: list = []
        for kind, argument, order in re.findall(r"(replicate|shard|partial|\?)(?:\((\w+)(?:, order = (\d+))?\))?", match[2]):
            placements.append(Shard(int(argument), int(order) if order else None) if kind == "shard" else Partial(argument) if kind == "partial"
                              else Replicate())
        return Sharding(mesh, tuple(placements))

    def part(name: str, pre: str, size: str) -> AxisPart:
        axis = mesh.dim_names.index(name)
        return (axis, int(pre), int(size)) if pre else (axis, 1, mesh.shape[axis])
    axis = r'"([^"]*)"(?::\((\d+)\)(\d+))?'
    dims = tuple(tuple(part(*found) for found in re.findall(axis, dim)) for dim in re.findall(r"\[([^\[\]]*)\]", match[3]))
    partial = tuple((part(*found), kind) for kind, *found in re.findall(r"(\w+)\(" + axis + r"\)", match[4] or ""))
    placed = [Replicate()] * len(mesh.shape)
    for d, parts in enumerate(dims):
        for at, _, _ in parts:
            placed[at] = Shard(d)
    return SubAxisSharding(mesh, tuple(placed), Layout(dims, partial))


_IDENTITIES = {"sum": 0, "prod": 1}


def identity(reduction: str, dtype: np.dtype):
    """The identity of a reduction: the elements of a partial value on processes that do not contribute to it."""
    if reduction in _IDENTITIES:
        return _IDENTITIES[reduction]
    if np.dtype(dtype).kind in "fV":
        return -math.inf if reduction == "max" else math.inf
    if dtype == np.bool_:
        return reduction == "min"
    limits = np.iinfo(dtype)
    return limits.min if reduction == "max" else limits.max


def local_value(array: np.ndarray, sharding: Sharding, rank: int) -> np.ndarray:
    """The elements that process `rank` holds of a global array under `sharding`, without padding.

    Of a partial value, coordinate 0 of the partial axes holds the value and the others hold the identity of the
    reduction; for avg, which has no identity, all hold the value. Raises PlacementError if the process is not in the
    mesh.
    """
    if rank not in sharding.mesh.devices:
        raise refuse(PlacementError, f"process {rank} holds nothing: the tensor is on processes {list(sharding.mesh.devices)}")
    of = layout(sharding, array.ndim)
    part = array[of.box(array.shape, sharding.mesh, rank)]
    place = coordinate(sharding.mesh.shape, sharding.mesh.devices.index(rank))
    for axis_part, kind in of.partial:
        if kind != "avg" and _index([axis_part], sharding.mesh, place) != 0:
            return np.full_like(part, identity(kind, array.dtype))
    return part


def listed(placements) -> tuple:
    """Placements as a tuple. Raises PlacementError if they are not a list or tuple."""
    if not isinstance(placements, (list, tuple)):
        raise refuse(PlacementError, f"expected a list of placements, one per mesh axis, got {placements!r}")
    return tuple(placements)


def check(sharding: Sharding, shape: Sequence[int], element: str, what: str) -> Sharding:
    """The sharding with one placement per mesh axis and non-negative dimensions.

    Raises PlacementError if it is invalid.
    """
    if isinstance(sharding, SubAxisSharding):
        return sharding
    mesh, rank, given = sharding.mesh, len(shape), tuple(sharding.placements)
    if len(given) > len(mesh.shape):
        raise refuse(PlacementError, f"{len(given)} placements {list(given)} for {what} on a mesh of {len(mesh.shape)} axes; "
                                     "give at most one per axis")
    placements = []
    for axis, placement in enumerate([*given, *[Replicate()] * (len(mesh.shape) - len(given))]):
        if isinstance(placement, Shard):
            if isinstance(placement.dim, bool) or not isinstance(placement.dim, int):
                raise refuse(PlacementError, f"Shard({placement.dim!r}) of {what}: the dimension is an integer")
            if not -rank <= placement.dim < rank:
                raise refuse(PlacementError, f"Shard({placement.dim}) of {what}, which has rank {rank}; "
                                             + (f"dimensions are {-rank} to {rank - 1}" if rank else "it has no dimension"))
            placement = Shard(placement.dim % rank, placement.order)
        elif isinstance(placement, Partial):
            if placement.reduction not in ("sum", "avg", "max", "min", "prod"):
                raise refuse(PlacementError, f"Partial('{placement.reduction}') of {what}; reductions are sum, avg, max, min, prod")
            if placement.reduction == "avg" and element[0] == "i":
                raise refuse(PlacementError, f"Partial('avg') of {what}: integers have no average; use float")
            if element == "i1" and placement.reduction in ("sum", "prod"):
                raise refuse(PlacementError, f"Partial('{placement.reduction}') of {what}: reductions of bool are max and min")
        elif not isinstance(placement, Replicate) and type(placement).__name__ != "Open":
            raise refuse(PlacementError, f"{placement!r} for {what} on axis '{mesh.dim_names[axis]}' is not a placement; "
                                         "use Replicate(), Shard(dim) or Partial(reduction)")
        placements.append(placement)
    kinds = sorted({p.reduction for p in placements if isinstance(p, Partial)} - {"avg"} | (
        {"sum"} if any(isinstance(p, Partial) and p.reduction == "avg" for p in placements) else set()))
    if len(kinds) > 1:
        raise refuse(PlacementError, f"{what} is partial by {' and '.join(kinds)}; a value has one reduction")
    orders: dict[int, list] = {}
    for p in placements:
        if isinstance(p, Shard):
            orders.setdefault(p.dim, []).append(p.order)
    for dim, order in orders.items():
        if any(o is not None for o in order) and sorted(order, key=str) != list(range(len(order))):
            raise refuse(PlacementError, f"orders {order} of the axes that shard dimension {dim} of {what}; give 0 to "
                                         f"{len(order) - 1}, each once")
    return Sharding(mesh, tuple(placements))
