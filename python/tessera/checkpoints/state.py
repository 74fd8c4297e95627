# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training state as named tensors: flatten trees of arrays of any library, and rebuild them from saved tensors."""

from __future__ import annotations

import dataclasses
import functools
import math
import sys
from collections.abc import Iterator, Sequence

import numpy as np

from .. import dtypes, tree
from ..dtypes import DType
from ..executable import to_host
from ..layout import layout
from ..sharding import Sharding
from ..tensor import Part, Tensor, asarray, from_array
from . import boxes
from .boxes import Box
from .errors import CheckpointError

_PIECE = 8 << 20  # bytes
_PLAIN = (bool, int, float, str, type(None))


class LocalTensor:
    """The part of a sharded tensor that one rank of a job holds.

    array: the part; shape, sharding: of the whole tensor; rank: of this process, a device of the sharding's mesh.
    Raises CheckpointError if the array does not have the shape of the part.
    """

    def __init__(self, array, shape: Sequence[int], sharding: Sharding, rank: int):
        self.array, self.shape, self.sharding, self.rank = np.asarray(array), tuple(shape), sharding, rank
        self.dtype = dtypes.dtype(self.array.dtype)
        found = layout(sharding, len(self.shape))
        if found.partial:
            raise CheckpointError("the sharding of a LocalTensor has a partial placement; reduce the value first")
        if rank not in sharding.mesh.devices:
            raise CheckpointError(f"rank {rank} is not in the mesh {list(sharding.mesh.devices)}")
        self.box = boxes.of_slices(found.box(self.shape, sharding.mesh, rank))
        if self.array.shape != boxes.extents(self.box):
            raise CheckpointError(f"the part of rank {rank} of a tensor of shape {self.shape} has shape {boxes.extents(self.box)}, and the array "
                                  f"has {self.array.shape}")

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype) if copy else np.asarray(self.array, dtype)

    def __repr__(self):
        return f"LocalTensor(shape={list(self.shape)}, dtype={self.dtype}, box={[list(each) for each in self.box]}, rank={self.rank})"


@dataclasses.dataclass(frozen=True)
class Item:
    """A tensor to save. `array` is the global value, or only the part in `box`."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    sharding: Sharding | None
    array: np.ndarray
    box: Box | None

    def part(self, box: Box) -> np.ndarray:
        """The values of a box that this process has, little-endian and contiguous."""
        return np.concatenate([piece.reshape(-1) for piece in self.pieces(box)]).reshape(boxes.extents(box))

    def pieces(self, box: Box) -> Iterator[np.ndarray]:
        """The same in consecutive pieces: a view if the memory already is so, else copies of a few rows."""
        if not boxes.volume(box):
            yield np.empty(boxes.extents(box), self.array.dtype)
            return
        whole = self.box if self.box is not None else boxes.whole(self.shape)
        part = self.array[boxes.inside(box, whole)] if box != whole else self.array
        part = np.asarray(part).reshape(boxes.extents(box))
        if part.dtype.byteorder != ">" and part.flags.c_contiguous:
            yield part
            return
        rows = max(1, _PIECE // max(1, part.nbytes // len(part))) if part.ndim else 1
        for piece in (part[i:i + rows] for i in range(0, len(part), rows)) if part.ndim else (part,):
            yield np.ascontiguousarray(piece, piece.dtype.newbyteorder("<"))


def is_plain(value) -> bool:
    """Whether a leaf is a number, string or None rather than a tensor."""
    return isinstance(value, _PLAIN) and not tree.is_array(value)  # numpy.float64 is a subclass of float


def _is_leaf(value) -> bool:
    return tree.is_array(value) or isinstance(value, _PLAIN)


def named(state) -> list[tuple[str, object]]:
    """The (name, leaf) pairs of a state: tensors, and plain values in containers.

    Raises CheckpointError for duplicate names.
    """
    found: dict[str, object] = {}
    for leaf in tree.state_leaves(state, _is_leaf):
        name = leaf.known[0] or "value"
        if name in found:
            raise CheckpointError(f"two entries of the state are called '{name}'; rename one")
        found[name] = leaf.value
    return list(found.items())


def other_names(state) -> dict[str, tuple[str, ...]]:
    """Further names under which a tensor is loaded, by its name in `named`.

    They are names of tied weights in imported modules, and its path.
    """
    return {leaf.known[0]: leaf.known[1:] for leaf in tree.state_leaves(state, _is_leaf) if len(leaf.known) > 1}


def unsaved(state) -> set[str]:
    """The names in `named` of leaves that are not saved: constants of imported modules, which the import provides."""
    return {leaf.known[0] for leaf in tree.state_leaves(state, _is_leaf) if not leaf.names}


def _tied_names(state) -> dict[str, tuple[str, ...]]:
    """Further names under which a tensor is saved, by its name in `named`."""
    return {leaf.names[0]: leaf.names[1:] for leaf in tree.state_leaves(state, _is_leaf) if len(leaf.names) > 1}


def _host(name: str, value) -> tuple[DType, np.ndarray]:
    if isinstance(value, Tensor):
        value._used()
        return value.dtype, value._concrete("save_checkpoint")
    if isinstance(value, LocalTensor):
        return value.dtype, value.array
    array = to_host(value, name)
    return dtypes.bfloat16 if str(value.dtype).endswith("bfloat16") else dtypes.dtype(array.dtype), array


def _key(array: np.ndarray, dtype: DType):
    """A key that is equal for arrays that share their memory (tied weights)."""
    return (array.__array_interface__["data"][0], array.shape, array.strides, dtype.name) if array.size else object()


def _part(value, rank: int | None) -> Part | None:
    """The part of a tensor, sharded over the devices of the job, that rank `rank` holds.

    Returns None if the tensor is to be saved as a whole. Raises CheckpointError if the part is not that of `rank`.
    """
    if rank is None or not isinstance(value, Tensor) or value._data is not None or value._source is None:
        return None
    part = value._source.part()
    if part is None:
        return None
    value._used()
    if not part.fits(held(value.shape, part.sharding, rank)):
        raise CheckpointError(f"this process is rank {rank} of the job and holds {part.boxes} of a tensor with sharding {part.sharding}, by which "
                              f"rank {rank} holds {held(value.shape, part.sharding, rank)}; use the launcher's ranks")
    return part


def held(shape: Sequence[int], sharding: Sharding, rank: int) -> list[Box]:
    """The boxes (one, or none) that a rank holds of a tensor sharded over the devices of the job."""
    if rank not in sharding.mesh.devices:
        return []
    return [boxes.of_slices(layout(sharding, len(shape)).box(shape, sharding.mesh, rank))]


def extract(state, rank: int | None = None) -> tuple[list[Item], dict[str, str], dict[str, object]]:
    """Flatten a state into tensors, aliases of tensors, and plain values by name.

    rank: of this process in a job; tensors sharded over the job's devices then give only the part of this rank.
    """
    items, aliases, values, first, tied, left_out = [], {}, {}, {}, _tied_names(state), unsaved(state)
    for name, value in named(state):
        if name in left_out:
            continue
        if is_plain(value):
            values[name] = _encode(value)
            continue
        part = _part(value, rank)
        dtype, array = (value.dtype, part.array) if part is not None else _host(name, value)
        key = _key(array, dtype) if part is None else id(value)  # `array` is a new copy on each call
        aliases |= {other: first.get(key, name) for other in tied.get(name, ())}
        if key in first:
            aliases[name] = first[key]
            continue
        first[key] = name
        local = isinstance(value, LocalTensor)
        if part is not None:
            nothing = tuple((0, 0) for _ in value.shape)
            array = np.empty(boxes.extents(nothing), value.dtype.numpy) if array is None else array
            items.append(Item(name, dtype, tuple(value.shape), part.sharding, array, part.boxes[0] if part.boxes else nothing))
            continue
        sharding = value.sharding if local or isinstance(value, Tensor) else None
        items.append(Item(name, dtype, tuple(value.shape), sharding, array, value.box if local else None))
    return items, aliases, values


def _encode(value):
    return {"float": repr(value)} if isinstance(value, float) and not math.isfinite(value) else value


def decode(value):
    """A plain value from the manifest, where `_encode` has written infinities and NaN as objects."""
    return float(value["float"]) if isinstance(value, dict) and isinstance(value.get("float"), str) else value


@functools.lru_cache(maxsize=4096)
def owners(shape: tuple[int, ...], sharding: Sharding | None) -> tuple[tuple[int, Box], ...]:
    """The (device, box) of each part of a tensor; of replicas, the lowest device owns the part.

    Axes with a partial placement are treated as replicated: the value that is saved is the reduced one.
    """
    if sharding is None:
        return ((0, boxes.whole(shape)),)
    of, found = layout(sharding, len(shape)), {}
    for device in sorted(sharding.mesh.devices):
        box = boxes.of_slices(of.box(shape, sharding.mesh, device))
        if boxes.volume(box) or not math.prod(shape):
            found.setdefault(box if math.prod(shape) else boxes.whole(shape), device)
    return tuple((device, box) for box, device in found.items())


def ties(state) -> dict[str, list[str]]:
    """Groups of names of tied tensors, by each name."""
    groups: dict = {}
    kept = []  # keeps arrays alive, so that no address is reused
    for name, value in named(state):
        if is_plain(value):
            continue
        array = value._data if isinstance(value, Tensor) else value.array if isinstance(value, LocalTensor) else to_host(value, name)
        kept.append(array)
        key = _key(array, dtypes.dtype(value.dtype) if isinstance(value, (Tensor, LocalTensor)) else dtypes.dtype(array.dtype)) \
            if array is not None else id(value)
        groups.setdefault(key, []).append(name)
    return {name: group for group in groups.values() if len(group) > 1 for name in group}


def like(leaf, array: np.ndarray, dtype: DType):
    """An array as the type of `leaf`: a Tensor or LocalTensor with its sharding, a PyTorch tensor, or a NumPy array."""
    if isinstance(leaf, Tensor):
        return from_array(array, dtype, leaf.sharding)
    if isinstance(leaf, LocalTensor):
        return LocalTensor(array, leaf.shape, leaf.sharding, leaf.rank)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(leaf, torch.Tensor):
        made = torch.from_numpy(array.view(np.int16)).view(torch.bfloat16) if dtype is dtypes.bfloat16 else torch.from_numpy(array)
        return torch.nn.Parameter(made, leaf.requires_grad) if isinstance(leaf, torch.nn.Parameter) else made
    return array


def dtype_of(leaf) -> DType:
    """The element type of a leaf: a tensor, a NumPy array or a tensor of PyTorch."""
    name = str(leaf.dtype).removeprefix("torch.")
    return dtypes.bfloat16 if name.endswith("bfloat16") else dtypes.dtype(leaf.dtype if isinstance(leaf.dtype, DType) else name)


def cast(array: np.ndarray, dtype: DType, wanted: DType) -> np.ndarray:
    """An array converted to dtype `wanted`, by the rules of tessera."""
    return asarray(from_array(array, dtype).numpy(), wanted)._concrete("cast")


def rebuild(state, leaves: dict[str, object]):
    """A copy of a tree with the leaves replaced, by name."""
    return tree.rebuild(state, [leaves[name] for name, _ in named(state)], _is_leaf)
