# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of a job's ranks: each process computes on its own values; means over ranks are collectives of the program.

Such a program is compiled for the mesh of all ranks with every value replicated, but the ranks' values may differ. A
mean over ranks treats each rank's value as a term, `partial(avg)`, and reduces it: one all-reduce, which the compiler
fuses and schedules as any other. All ranks run one program; its fingerprints are compared when it is loaded.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

import numpy as np

from . import distributed as dist
from . import ranks as launched
from .errors import ArgumentError
from .ir.core import Value
from .mesh import ProcessMesh
from .sharding import Partial, Replicate, Sharding
from .source import refuse
from .tensor import Tensor
from .trace import Trace

BACKENDS = ("tcp", "mpi")  # of groups, and of programs with one process per device


class RankMesh(ProcessMesh):
    """The mesh of all ranks of the job: axes node and local, or one axis if nodes have different numbers of ranks.

    If each rank has several devices, a last axis "device": rank r has the device ids from r * devices_each on.
    """

    devices_each = 1

    @property
    def rank_names(self) -> tuple[str, ...]:
        """The axes of ranks, along which values may differ."""
        return tuple(self.dim_names[:-1] if self.devices_each > 1 else self.dim_names)

    def _key(self):
        return "ranks", *super()._key()


def is_between_processes() -> bool:
    """Whether this process is a rank of a job with a process group."""
    return dist.is_initialized()


def mesh_of_job(devices_each: int = 1) -> RankMesh | None:
    """The mesh of the group's ranks and their devices; None for a group of one rank.

    Collective on the first call per number of devices.

    Raises ArgumentError for groups of threads, and for ranks that differ from the launcher's.
    """
    group = dist.group.world()
    if group.size() == 1:
        return None
    known = group.__dict__.setdefault("rank_meshes", {})
    if devices_each not in known:
        _check(group)
        nodes = [None] * group.size()
        dist.all_gather_object(nodes, os.environ.get("TESSERA_NODE_RANK") or dist.get_host(group.global_rank))
        rows = [[rank for rank, node in enumerate(nodes) if node == each] for each in dict.fromkeys(nodes)]
        even = len({len(row) for row in rows}) == 1
        ids, names = rows if even else group.ranks, ["node", "local"] if even else ["rank"]
        if devices_each > 1:
            ids, names = np.array(ids)[..., None] * devices_each + np.arange(devices_each), [*names, "device"]
        known[devices_each] = RankMesh(ids, names, "ranks")
        known[devices_each].devices_each = devices_each
    return known[devices_each]


def _check(group) -> None:
    if group.backend not in BACKENDS:
        raise refuse(ArgumentError, f"the group's backend is '{group.backend}'; programs between processes need {' or '.join(BACKENDS)}")
    launcher = launched.read()
    if (launcher.rank, launcher.size) != (group.global_rank, group.size()):
        raise refuse(ArgumentError, f"this is rank {group.global_rank} of {group.size()}, and the environment says "
                                    f"rank {launcher.rank} of {launcher.size}; "
                                    "programs between processes need a launcher (tessera launch, torchrun, mpirun, srun)")


def backend_of(wanted: str, devices_each: int = 1) -> str:
    """The backend that executes a program of ranks: "cuda" if wanted, else that of the group.

    Raises ArgumentError for other ones.
    """
    group = dist.group.world()
    if devices_each > 1 and (group.backend != "tcp" or wanted not in ("threads", "tcp")):
        raise refuse(ArgumentError, f"each rank has {devices_each} devices, on backend '{wanted if wanted == 'cuda' else group.backend}'; several devices "
                                    "per process need backend 'tcp'")
    if wanted == "cuda":
        return wanted
    if wanted not in ("threads", group.backend):
        raise refuse(ArgumentError, f"backend '{wanted}' of jit in a job whose group uses '{group.backend}'; use "
                                    f"'{group.backend}' or 'cuda'")
    return group.backend


def check_programs(name: str, arguments: Sequence[tuple[str, Tensor]], text: str) -> None:
    """Raises ArgumentError on all ranks unless they recorded the same program.

    Collective, before the program is loaded.
    """
    by_rank: list = [None] * dist.get_world_size()
    mine = [hashlib.sha256(text.encode()).hexdigest(), [f"'{each}' {tensor.dtype} {tensor.shape}" for each, tensor in arguments]]
    dist.all_gather_object(by_rank, mine)
    for rank, (print_, described) in enumerate(by_rank):
        for first, other in zip([*by_rank[0][1], "nothing"], [*described, "nothing"]):
            if first != other:
                raise refuse(ArgumentError, f"'{name}' differs between ranks: rank 0 has {first} where rank {rank} has {other}; ranks run one program, "
                                            "on batches of one shape")
        if print_ != by_rank[0][0]:
            raise refuse(ArgumentError, f"'{name}' differs between ranks: rank {rank} records other operations than "
                                        "rank 0; pass what differs between "
                                        "ranks as an argument, not as a constant or a branch")


def mean(trace: Trace, value: Value, mesh: RankMesh, axes: Sequence[str] | None = None) -> Value:
    """The mean of the ranks' values over axes of the mesh, by default all axes of ranks."""
    shared = mesh.rank_names if axes is None else axes
    return _reduced(trace, value, mesh, [Partial("avg") if name in shared else Replicate() for name in mesh.dim_names])


def of_first(trace: Trace, value: Value, mesh: RankMesh) -> Value:
    """Rank 0's value, as a partial sum in which the other ranks hold zeros."""
    return _reduced(trace, value, mesh, [Partial("sum")] * mesh.ndim)


def _reduced(trace, value, mesh, placements) -> Value:
    whole = trace.text(Sharding(mesh, (Replicate(),) * mesh.ndim))
    for text in (whole, trace.text(Sharding(mesh, tuple(placements))), whole):
        value = trace.builder.shard(value, text)
    return value


class Own:
    """Attached to a mean over ranks: `tensor`, this rank's term, and its `mesh`.

    held: as a result of a program the term is returned unreduced; on a tensor with a value: it is unreduced.
    """

    __slots__ = ("tensor", "mesh", "held")

    def __init__(self, tensor: Tensor | None, mesh: RankMesh, held: bool):
        self.tensor, self.mesh, self.held = tensor, mesh, held


def averaged(trace: Trace, tensor: Tensor, mesh: RankMesh, held: bool = False) -> Tensor:
    """The mean of a traced tensor over ranks.

    It is not reduced where only sums with other means, or held results, use it.
    """
    made = trace.tensor(mean(trace, trace.value(tensor), mesh))
    made._own = Own(tensor, mesh, held)
    return made


def settled(tensor: Tensor) -> Tensor:
    """The same traced mean, reduced for every use."""
    made = tensor._scope.trace.tensor(tensor._value)
    made._scope = tensor._scope
    return made
