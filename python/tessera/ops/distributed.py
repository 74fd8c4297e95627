# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Placement of tensors: shard_tensor, reshard, unshard; and stop_gradient."""

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
    """A traced tensor constrained to `sharding`."""
    return trace.constrained(x, sharding)


@op
def _move(trace, x, sharding):
    value = operand(trace, x)
    moved = trace.builder.op("dist.reshard", [value], [value.type], {"sharding": trace.text(sharding)}).result
    return trace.tensor(moved, sharding)


def reshard(x, mesh: ProcessMesh, placements: Sequence) -> Tensor:
    """The same value with other placements, possibly on another mesh.

    placements: one per mesh axis; missing ones are Replicate(). Raises PlacementError for invalid placements, MeshError
    if `mesh` is not a ProcessMesh.
    """
    x = tensor_of(x, "reshard")
    if not isinstance(mesh, ProcessMesh):
        raise refuse(MeshError, f"'reshard' takes a ProcessMesh, not {mesh!r}")
    sharding = check(Sharding(mesh, listed(placements)), x.shape, x.dtype.element, f"a tensor of shape {x.shape}")
    if x._scope is None and x.sharding is None:  # dense: no communication
        return from_array(x._concrete("reshard"), x.dtype, sharding)
    return _move(x, sharding)


class Unused:
    """Warns if all distributed tensors that hold this are deleted before one was used. function: that made them."""

    def __init__(self, function: str):
        self.function, self.place, self.used = function, location(), False

    def __del__(self):
        if not self.used and self.place is not None and warnings is not None:
            warnings.warn_explicit(f"the result of {self.function} is not used; it does not change its argument", TesseraWarning,
                                   self.place.file, self.place.line)


@entry
def shard_tensor(data, mesh: ProcessMesh, placements: Sequence, dtype=None) -> Tensor:
    """A distributed tensor of `data` (a tensor, an array or a list).

    placements: one per mesh axis, Replicate(), Shard(dim) or Partial(reduction); missing ones are Replicate(). With
    Partial, coordinate 0 holds the value and the others the identity of the reduction. In a traced function this
    constrains the sharding of the result.

    Raises PlacementError, naming the placement, and MeshError if a traced tensor is on another mesh.
    """
    if not isinstance(mesh, ProcessMesh):
        raise refuse(PlacementError, f"expected a ProcessMesh, got {mesh!r}")
    tensor = data if isinstance(data, Tensor) and dtype is None else Tensor(data, dtype) if not isinstance(data, Tensor) else data.astype(dtype)
    sharding = check(Sharding(mesh, listed(placements)), tensor.shape, tensor.dtype.element, f"a tensor of shape {tensor.shape}")
    tensor._used()
    if tensor._scope is not None:
        return constrain(tensor, sharding)
    if tensor.sharding is not None and tensor._array is not None:
        return reshard(tensor, mesh, sharding.placements)
    made = tensor._placed(sharding)
    made._unused = Unused("shard_tensor")
    return made


def unshard(x) -> Tensor:
    """The dense tensor with the same value; gathers a distributed one."""
    x = tensor_of(x, "unshard")
    if x.sharding is None:
        return x
    whole = reshard(x, x.sharding.mesh, [Replicate()] * len(x.sharding.mesh.shape))
    return whole if whole._scope is not None else from_array(whole._array, whole.dtype)


@op
def stop_gradient(trace, x):
    """x, treated as a constant by derivatives."""
    x = tensor_of(x, "stop_gradient")
    value = operand(trace, x)
    return trace.tensor(trace.builder.op("dist.stop_gradient", [value], [value.type]).result, x.sharding, weak=x._weak)
