# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Key-value stores: values that the workers of a job push to and pull from (docs/kvstore.md).

store       base class of all stores; local: stores in one process, and over collectives
worker      store of a job with servers; client: its connections
scheduler   membership of the job; server, shard: storage of values; run, command: start of these processes
view        a version of the membership, and the owners of a shard; wire: messages; roles: environment variables
updates     optimizers; compression: two bits per element
"""

from __future__ import annotations

import math
import sys

from ..errors import ArgumentError, Error
from . import local, roles
from .store import KVStore, Max, Min, StoreError, Sum

__all__ = ["KVStore", "Max", "Min", "StoreError", "Sum", "create"]

TYPES = ("local", "dist_sync", "dist_async", "dist_sync_device")
# Names of MXNet. Those with 'device' are equivalent: all stores first combine the values of a worker's devices.
_ALIASES = {"device": "local", "local_update_cpu": "local", "local_allreduce_cpu": "local", "local_allreduce_device": "local",
            "dist": "dist_sync", "dist_device_sync": "dist_sync_device", "dist_async_device": "dist_async"}


def create(name: str = "local", *, timeout: float = 120.0, staleness: int | None = None, shard_bytes: int = 1 << 20) -> KVStore:
    """Create a store.

    name: 'local' (this process), 'dist_sync' or 'dist_async' (with servers), or 'dist_sync_device' (without servers).
    Names are case-insensitive; MXNet's aliases are accepted.

    In a job with servers, TESSERA_ROLE or DMLC_ROLE sets the role of this process; in a scheduler or server, this call
    serves until the job ends and then exits the process.

    timeout: seconds that a worker waits for the scheduler, and in each call for other workers. staleness (dist_async):
    number of pushes to a key by which a worker that pulls may be ahead of the slowest; None for no limit. shard_bytes:
    arrays are split into shards of at most this size, which are distributed over the servers.

    Raises ArgumentError for an invalid argument, and Error if an environment variable is missing or invalid.
    """
    known = name.lower() if isinstance(name, str) else name
    known = _ALIASES.get(known, known) if isinstance(known, str) else known
    if known not in TYPES:
        raise ArgumentError(f"unknown store {name!r}; expected one of {', '.join(TYPES)}")
    name = known
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < math.inf:
        raise ArgumentError(f"timeout {timeout!r} is not a number of seconds above 0")
    if staleness is not None and (name != "dist_async" or isinstance(staleness, bool) or not isinstance(staleness, int) or staleness < 0):
        raise ArgumentError(f"staleness {staleness!r} of store {name!r}; expected a whole number, at least 0, with store 'dist_async'")
    if isinstance(shard_bytes, bool) or not isinstance(shard_bytes, int) or not 64 <= shard_bytes <= 4 << 20:
        raise ArgumentError(f"shard_bytes {shard_bytes!r} is not a whole number from 64 to {4 << 20}")
    if name == "local":
        return local.LocalStore()
    if name == "dist_sync_device":
        return local.DeviceStore()
    config = roles.read()
    try:
        from . import run, worker
    except ModuleNotFoundError as error:
        if error.name != "zmq":
            raise
        raise ImportError(f"store '{name}' needs the package 'pyzmq': pip install pyzmq", name="zmq") from None
    if config.role == "worker":
        return worker.DistStore(name, config, timeout, staleness, shard_bytes)
    try:
        run.scheduler(config, timeout) if config.role == "scheduler" else run.server(config, timeout)
    except Error as error:
        sys.exit(f"tessera: error: {error}")
    sys.exit(0)
