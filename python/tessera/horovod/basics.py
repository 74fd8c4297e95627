# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Start and end of the job, and queries of its ranks."""

from __future__ import annotations

import atexit
import os

from .. import distributed as dist, ranks as launched
from ..errors import ArgumentError
from .exchange import Exchange
from .job import Job, exchange
from .process_sets import add_process_set
from .timeline import stop_timeline


def init(comm=None, process_sets=None, *, backend: str | None = None, timeout: float = 120.0) -> None:
    """Join the job as the rank that the launcher gave, and wait for all others. A second call does nothing.

    comm: the list of all ranks, or None. process_sets: ProcessSets or lists of ranks to create. backend, timeout: as in
    tessera.distributed.init_process_group; an existing process group is used instead. Raises ArgumentError.
    """
    if Job.exchange is not None and Job.exchange.ended is None:
        return
    shutdown()
    Job.is_own = not dist.is_initialized()
    if Job.is_own:
        dist.init_process_group(backend, timeout=timeout)
    if comm is not None and list(comm if isinstance(comm, (list, tuple, range)) else []) != list(range(dist.get_world_size())):
        raise ArgumentError(f"comm {comm!r} is not the list of all {dist.get_world_size()} ranks; give subsets as process_sets")
    control = dist.new_group()
    Job.places = _places(control)
    Job.exchange = Exchange(control)
    atexit.register(shutdown)
    for each in process_sets or ():
        add_process_set(each)


def _places(control) -> list:
    """The (local rank, node) of each rank.

    If local ranks repeat on a host, several nodes run on it (a test of a cluster).
    """
    self, node = launched.read(), os.environ.get("TESSERA_NODE_RANK")
    found = [None] * control.size()
    dist.all_gather_object(found, [control.handle.host(control.global_rank), self.local_rank, node], control)
    local, names, seen = launched.local_ranks([host for host, *_ in found]), [], {}
    for rank, (host, given, number) in enumerate(found):
        given = local[rank][0] if given is None else given
        count = seen[host, given] = seen.get((host, given), -1) + 1
        names.append((given, number if number is not None else f"{host} {count}"))
    order = list(dict.fromkeys(node for _, node in names))
    return [(given, order.index(node)) for given, node in names]


def shutdown() -> None:
    """End the job for all ranks: further calls of other ranks fail. Called automatically when the process exits."""
    atexit.unregister(shutdown)
    if Job.exchange is None:
        return
    Job.exchange.stop()
    Job.exchange = None
    stop_timeline()
    if Job.is_own and dist.is_initialized():
        dist.destroy_process_group()


def is_initialized() -> bool:
    """Whether init() has been called."""
    return Job.exchange is not None


def rank() -> int:
    """The rank of this process in the job. Raises NotInitializedError before init()."""
    return exchange().rank


def size() -> int:
    """The number of ranks of the job. Raises NotInitializedError before init()."""
    return exchange().size


def local_rank() -> int:
    """This process's rank within its node, which is the number of its device."""
    exchange()
    return Job.places[rank()][0]


def local_size() -> int:
    """The number of ranks on this node."""
    exchange()
    return sum(node == Job.places[rank()][1] for _, node in Job.places)


def cross_rank() -> int:
    """The index of this node among the nodes that have a rank with this local rank."""
    exchange()
    local, node = Job.places[rank()]
    return sum(other < node for place, other in Job.places if place == local)


def cross_size() -> int:
    """The number of nodes that have a rank with this local rank."""
    exchange()
    return sum(place == local_rank() for place, _ in Job.places)


def is_homogeneous() -> bool:
    """Whether all nodes have the same number of ranks."""
    exchange()
    nodes = [node for _, node in Job.places]
    return len({nodes.count(node) for node in nodes}) == 1


def mpi_built(verbose: bool = False) -> bool:
    """Whether the backend `mpi` is available."""
    return "mpi" in dist.backends()


def mpi_enabled() -> bool:
    """Whether the job uses the backend `mpi`."""
    return exchange().control.backend == "mpi"


def mpi_threads_supported() -> bool:
    """Whether other threads may call MPI concurrently with this package."""
    return mpi_enabled()


def nccl_built(verbose: bool = False) -> int:
    """0, since calls work on host memory."""
    return 0


def _unsupported(name: str):
    def query(verbose: bool = False) -> bool:
        return False
    query.__name__ = query.__qualname__ = name
    query.__doc__ = "False, since this package has its own transports (tessera.distributed.backends())."
    return query


gloo_built, gloo_enabled, ddl_built, ccl_built, cuda_built, rocm_built = map(
    _unsupported, ("gloo_built", "gloo_enabled", "ddl_built", "ccl_built", "cuda_built", "rocm_built"))
