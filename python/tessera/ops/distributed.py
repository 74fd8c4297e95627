# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where values lie: constraints, moves; and what derivatives do not pass."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import MeshError
from ..layout import check, listed
from ..mesh import ProcessMesh
from ..sharding import Replicate, Sharding
from ..source import location, refuse
from ..tensor import Tensor, from_array
from .base import op, operand, tensor_of


@op
def constrain(trace, x, sharding):
    """A traced value that lies as `sharding` says."""
    if x.mesh is not None and x.mesh != sharding.mesh:
        raise refuse(MeshError, f"shard_tensor of a tensor on {x.mesh!r} to {sharding.mesh!r}; another mesh is reached by reshard")
    value = operand(trace, x)
    constrained = trace.builder.shard(value, trace.text(sharding))
    trace.sharded.append((constrained, location()))
    return trace.tensor(constrained, sharding)


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
