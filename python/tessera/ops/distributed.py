# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where values lie: constraints, moves; and what derivatives do not pass."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from ..errors import MeshError, PlacementError, TesseraWarning
from ..layout import check, listed
from ..mesh import ProcessMesh
from ..sharding import Replicate, Sharding
from ..source import entry, location, refuse
from ..tensor import Tensor, from_array
from .base import op, operand, tensor_of


@op
def constrain(trace, x, sharding):
    """A traced value that lies as `sharding` says."""
    return trace.constrained(x, sharding)


@op
def _move(trace, x, sharding):
    value = operand(trace, x)
    moved = trace.builder.op("dist.reshard", [value], [value.type], {"sharding": trace.text(sharding)}).result
    return trace.tensor(moved, sharding)


def reshard(x, mesh: ProcessMesh, placements: Sequence) -> Tensor:
    """The same value, placed otherwise, also on another mesh. Placements left out are Replicate().

    Raises PlacementError before anything is communicated.
    """
    x = tensor_of(x, "reshard")
    if not isinstance(mesh, ProcessMesh):
        raise refuse(MeshError, f"'reshard' takes a ProcessMesh, not {mesh!r}")
    sharding = check(Sharding(mesh, listed(placements)), x.shape, x.dtype.element, f"a tensor of shape {x.shape}")
    if x._scope is None and x.sharding is None:  # dense: whole everywhere
        return from_array(x._concrete("reshard"), x.dtype, sharding)
    return _move(x, sharding)


class _Unused:
    """Warns when a distributed tensor goes before anybody used it."""

    def __init__(self):
        self.place, self.used = location(), False

    def __del__(self):
        if not self.used and self.place is not None and warnings is not None:
            warnings.warn_explicit("the result of shard_tensor is not used; it does not change its argument", TesseraWarning,
                                   self.place.file, self.place.line)


@entry
def shard_tensor(data, mesh: ProcessMesh, placements: Sequence, dtype=None) -> Tensor:
    """A distributed tensor of `data` (a tensor, an array, a list).

    placements: one a mesh axis, Replicate(), Shard(dim) or Partial(reduction); axes left out are replicated. Of Partial the
    value lives on coordinate 0, others hold the identity. In a traced function it demands that the value lies so.

    Raises PlacementError, which names the placement, and MeshError.
    """
    if not isinstance(mesh, ProcessMesh):
        raise refuse(PlacementError, f"the mesh is a ProcessMesh, not {mesh!r}")
    tensor = data if isinstance(data, Tensor) and dtype is None else Tensor(data, dtype) if not isinstance(data, Tensor) else data.astype(dtype)
    sharding = check(Sharding(mesh, listed(placements)), tensor.shape, tensor.dtype.element, f"a tensor of shape {tensor.shape}")
    tensor._used()
    if tensor._scope is not None:
        return constrain(tensor, sharding)
    if tensor.sharding is not None and tensor._array is not None:
        return reshard(tensor, mesh, sharding.placements)
    made = tensor._placed(sharding)
    made._unused = _Unused()
    return made


def unshard(x) -> Tensor:
    """The dense tensor of the same value."""
    x = tensor_of(x, "unshard")
    if x.sharding is None:
        return x
    whole = reshard(x, x.sharding.mesh, [Replicate()] * len(x.sharding.mesh.shape))
    return whole if whole._scope is not None else from_array(whole._array, whole.dtype)


@op
def stop_gradient(trace, x):
    """x, which derivatives take for a constant."""
    x = tensor_of(x, "stop_gradient")
    value = operand(trace, x)
    return trace.tensor(trace.builder.op("dist.stop_gradient", [value], [value.type]).result, x.sharding, weak=x._weak)
