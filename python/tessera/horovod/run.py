# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""horovod.run: run a function as the ranks of a job on this host, from a script started without a launcher."""

from __future__ import annotations

import os
import pickle
import platform
import tempfile

from .. import distributed as dist
from ..core import whole
from ..errors import ArgumentError
from ..launch.environment import inherited, threads, variables
from ..launch.ports import free_port


def _rank(rank: int, folder: str, size: int, port: int, environment: dict, function, args: tuple, kwargs: dict) -> None:
    """A process of `run`."""
    os.environ.clear()
    os.environ.update(environment)
    os.environ.update(variables(rank=rank, size=size, local_rank=rank, local_size=size, node=0, nodes=1, address="127.0.0.1", port=port))
    result = function(*args, **kwargs)
    with open(os.path.join(folder, str(rank)), "wb") as file:
        pickle.dump(result, file)


def run(func, args=(), kwargs=None, np: int = 1, hosts: str | None = None, use_gloo: bool | None = None, use_mpi: bool | None = None,
        env: dict | None = None, verbose=None) -> list:
    """Start np processes on this host that call func(*args, **kwargs), and return their results by rank.

    func: a function of a module; arguments and results must be picklable. hosts: this host only, with at least np
    slots. use_gloo and verbose have no effect.

    Raises ArgumentError for other hosts and for use_mpi (use `tessera launch -np N -H HOSTS SCRIPT`), and SpawnError
    with rank and traceback if a process fails.
    """
    count = whole("np", np, 1, 4096)
    if not callable(func):
        raise ArgumentError(f"func {func!r} is not a function")
    if use_mpi:
        raise ArgumentError("use_mpi is not supported: run starts processes itself; use 'tessera launch -np N SCRIPT' for MPI")
    for each in (hosts or f"localhost:{count}").split(","):
        host, _, slots = each.partition(":")
        if host not in ("localhost", "127.0.0.1", platform.node()):
            raise ArgumentError(f"hosts names '{host}', and run starts processes on this host only; use 'tessera launch -np {count} "
                                f"-H {hosts} SCRIPT'")
        if "," not in (hosts or "") and slots and (not slots.isdigit() or int(slots) < count):
            raise ArgumentError(f"np is {count} and hosts '{hosts}' has {slots} slots")
    environment = inherited({**os.environ, **{name: str(value) for name, value in (env or {}).items()}})
    environment |= threads(count, environment)
    with tempfile.TemporaryDirectory(prefix="tessera-run-") as folder:
        dist.spawn(_rank, (folder, count, free_port(), environment, func, tuple(args), dict(kwargs or {})), nprocs=count)
        results = []
        for rank in range(count):
            with open(os.path.join(folder, str(rank)), "rb") as file:
                results.append(pickle.load(file))  # safe: written by a child of this process
        return results

