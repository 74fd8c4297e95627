# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Key-value stores: values that the workers of a job push to and pull from (docs/kvstore.md).

store       what all stores share; local: in one process, and over collectives
worker      the store of a job with servers; client: its connections
scheduler   who is in the job; server, shard: who keeps the values; run, command: how they start
view        a membership, and the owners of a shard; wire: messages; roles: environment
updates     optimizers; compression: two bits an element
"""

from __future__ import annotations

import math
import sys

from ..errors import ArgumentError, Error
from . import local, roles
from .store import KVStore, Max, Min, StoreError, Sum

__all__ = ["KVStore", "Max", "Min", "StoreError", "Sum", "create"]

TYPES = ("local", "dist_sync", "dist_async", "dist_sync_device")
# Names of MXNet for what is the same here: values of several devices of a worker are combined first in all stores.
_ALIASES = {"device": "local", "local_update_cpu": "local", "local_allreduce_cpu": "local", "local_allreduce_device": "local",
            "dist": "dist_sync", "dist_device_sync": "dist_sync_device", "dist_async_device": "dist_async"}


def create(name: str = "local", *, timeout: float = 120.0, staleness: int | None = None, shard_bytes: int = 1 << 20) -> KVStore:
    """A store by its name: 'local' in this process, 'dist_sync' and 'dist_async' with servers, 'dist_sync_device' without. Names have no
    case; MXNet's other names of these are known, too.

    With servers the role of the process is that of TESSERA_ROLE or DMLC_ROLE; a scheduler or server works here until the job ends,
    and the process with it. timeout: seconds that a worker waits for the scheduler, and in a call for others. staleness: of
    dist_async, by how many pushes to a key a worker may be ahead of the slowest when it pulls; without it any number. Arrays are
    cut into shards of at most `shard_bytes`, which are spread over the servers.

    Raises ArgumentError for another name, and Error where the environment does not say what is needed."""
    known = name.lower() if isinstance(name, str) else name
    known = _ALIASES.get(known, known) if isinstance(known, str) else known
    if known not in TYPES:
        raise ArgumentError(f"no store {name!r}; there are {', '.join(TYPES)}")
    name = known
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < math.inf:
        raise ArgumentError(f"timeout {timeout!r} is not a number of seconds above 0")
    if staleness is not None and (name != "dist_async" or isinstance(staleness, bool) or not isinstance(staleness, int) or staleness < 0):
        raise ArgumentError(f"staleness {staleness!r} of store {name!r}; it is a whole number from 0, of dist_async")
    if isinstance(shard_bytes, bool) or not isinstance(shard_bytes, int) or not 64 <= shard_bytes <= 4 << 20:
        raise ArgumentError(f"shard_bytes {shard_bytes!r} is not a whole number from 64 to {4 << 20}")
    if name == "local":
        return local.LocalStore()
    if name == "dist_sync_device":
        return local.DeviceStore()
    place = roles.read()
    try:
        from . import run, worker
    except ModuleNotFoundError as error:
        if error.name != "zmq":
            raise
        raise ImportError(f"store '{name}' needs the package 'pyzmq': pip install pyzmq", name="zmq") from None
    if place.role == "worker":
        return worker.DistStore(name, place, timeout, staleness, shard_bytes)
    try:
        run.scheduler(place, timeout) if place.role == "scheduler" else run.server(place, timeout)
    except Error as error:
        sys.exit(f"tessera: error: {error}")
    sys.exit(0)
