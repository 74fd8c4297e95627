# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The store of a worker in a job with servers."""

from __future__ import annotations

import atexit

import numpy as np

from .. import ranks
from ..errors import ArgumentError, Error
from . import compression, run, wire
from .client import Client
from .member import JobError
from .shard import Spec
from .store import Entry, KVStore

DEFAULT_SHARD = 1 << 20


class DistStore(KVStore):
    """A store on servers.

    dist_sync: the pushes of all workers form a round. dist_async: each push changes the value at once.
    """

    def __init__(self, type: str, config, timeout: float, staleness: int | None, shard_bytes: int):
        super().__init__()
        self.type, self._shard_bytes = type, shard_bytes
        self._staleness = None if type == "dist_sync" else -1 if staleness is None else staleness
        launched = ranks.read()
        self._client = Client(run.sockets(config), config, timeout,
                              {"address": "", "wanted": None if launched.source == "no launcher" else launched.rank})
        welcome = self._client.welcome
        self.rank = welcome["rank"]
        self.local_rank = welcome["local_rank"] if launched.local_rank is None else launched.local_rank
        self._late = self._has_optimizer = bool(welcome.get("late"))
        self._specs: dict[int | str, Spec] = {}
        self._rounds: dict[int | str, int] = {}
        self._pushes: dict[int | str, list] = {}
        self._failed: dict[int | str, str] = {}
        atexit.register(self.close)

    @property
    def num_workers(self) -> int:
        """The current number of workers."""
        return len(self._client.view.workers)

    @property
    def num_servers(self) -> int:
        """The current number of servers."""
        return len(self._client.view.servers)

    @property
    def joined_late(self) -> bool:
        """Whether this worker joined after the start of the job. Its keys then have the values of the others."""
        return self._late

    def version(self, key) -> int:
        """The number of pushes of this worker to the key; if it joined late, plus the rounds before."""
        self._entry("version", key)
        return self._rounds[key]

    def _init(self, key, value, entry):
        part = max(1, self._shard_bytes // entry.dtype.itemsize)
        spec = Spec(repr(key), entry.dtype.name, entry.shape, entry.param_only, part, self._staleness)
        what = f"init of key {key!r}"
        self._client.wait([self._client.request(None, {"do": "declare", "spec": spec.header()})], what)
        flat = value.reshape(-1)
        requests = [self._client.request((spec.key, index), {"do": "init", "spec": spec.header()},
                                         [flat[index * part:index * part + spec.elements(index)].tobytes()]) for index in range(spec.shards)]
        self._client.wait(requests, what)
        self._specs[key], self._pushes[key] = spec, []
        self._rounds[key] = max(int(each.answer.get("version", 0)) for each in requests)

    def _push(self, key, value, op, entry):
        spec = self._specs[key]
        if spec.staleness is not None and not entry.param_only and not self._client.view.optimizer:
            raise ArgumentError(f"push to key {key!r} of store 'dist_async' without an optimizer; call set_optimizer, or initialize the key with "
                                "param_only=True")
        codes = self._codes(key, value, op, entry)
        self._rounds[key] += 1
        self._drop_answered(key)
        header = {"do": "push", "round": self._rounds[key], "op": op}
        flat = value.reshape(-1)
        if codes is not None:
            header["threshold"] = self._limit
            flat = compression.decode(codes, entry.count, entry.dtype, self._limit)
        for index in range(spec.shards):
            part = flat[index * spec.part:index * spec.part + spec.elements(index)]
            data = part.tobytes() if codes is None else _codes_of(part, self._limit).tobytes()
            self._pushes[key].append(self._client.request((spec.key, index), header, [data]))

    def _drop_answered(self, key) -> None:
        self._pushes[key] = [each for each in self._pushes[key] if each.answer is None or each.answer["do"] == "refused"]

    def _pull(self, key, entry):
        spec = self._specs[key]
        header = {"do": "pull", "round": self._rounds[key]}
        requests = [self._client.request((spec.key, index), header) for index in range(spec.shards)]
        self._client.wait(requests, f"pull of key {key!r}")
        self._acknowledge([key], f"pull of key {key!r}")
        data = b"".join(each.result[0] if each.result else b"" for each in requests)
        if len(data) != entry.count * entry.dtype.itemsize:
            raise JobError(f"servers sent {len(data)} bytes for key {key!r}, which has {entry.count * entry.dtype.itemsize}")
        return np.frombuffer(data, entry.dtype).reshape(entry.shape).copy()

    def _acknowledge(self, keys, what: str) -> None:
        """Wait until servers and replicas have this worker's pushes."""
        for key in keys:
            pushes, self._pushes[key] = self._pushes[key], []
            self._client.wait(pushes, what)

    def _steps(self, entry):
        return not entry.param_only and self._client.view.optimizer is not None

    def barrier(self):
        """Wait until all workers have called it and their pushes are done.

        Admits workers and servers that have joined.
        """
        self._acknowledge(list(self._pushes), "barrier")
        self._client.wait([self._client.request(None, {"do": "barrier"})], "barrier")

    def _optimizer(self, description):
        if self._has_optimizer and self._client.view.optimizer:
            self._has_optimizer = False  # the others have set it
            return
        self.barrier()
        if self.rank == min(self._client.view.workers):
            self._client.wait([self._client.request(None, {"do": "optimizer", "optimizer": description})], "set_optimizer")
        self.barrier()

    def close(self):
        """Wait for the pushes in progress, then leave the job. Errors of pushes are ignored."""
        atexit.unregister(self.close)
        client, self._closed = self._client, True
        try:
            self._acknowledge(list(self._pushes), "close")
        except (Error, KeyError):
            pass
        client.close()


def _codes_of(part: np.ndarray, limit: float) -> np.ndarray:
    """The codes of a gradient that `decode` returned."""
    return compression.encode(part, np.zeros(part.size, part.dtype), limit)
