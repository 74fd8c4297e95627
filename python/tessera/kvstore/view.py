# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views: versions of the job's membership (as in view change protocols), and the servers that own a shard."""

from __future__ import annotations

import dataclasses
import functools
import hashlib

from . import updates, wire

MOST_MEMBERS = 1 << 16


@dataclasses.dataclass(frozen=True)
class View:
    """The membership of the job at an epoch. The scheduler creates views with ascending epochs."""

    epoch: int
    workers: tuple[int, ...]  # ranks, ascending
    servers: tuple[tuple[int, str], ...]  # (number, address), ascending
    replicas: int
    optimizer: dict | None = dataclasses.field(default=None, compare=False)

    @functools.cached_property
    def addresses(self) -> dict[int, str]:
        """Server addresses by number."""
        return dict(self.servers)

    @functools.cached_property
    def _owners(self) -> dict:
        return {}

    def owners(self, key: str, index: int) -> tuple[int, ...]:
        """The servers of a shard: the primary, then its replicas.

        Rendezvous hashing (Thaler and Ravishankar, 1998): if the primary is lost, the first replica becomes the
        primary, and other shards do not move.
        """
        if (key, index) not in self._owners:
            def weight(server: int) -> bytes:
                return hashlib.blake2b(f"{key}/{index}/{server}".encode(), digest_size=8).digest()
            ranked = sorted((number for number, _ in self.servers), key=weight, reverse=True)
            self._owners[key, index] = tuple(ranked[:1 + self.replicas])
        return self._owners[key, index]

    def header(self) -> dict:
        """The view as JSON, for messages."""
        return {"epoch": self.epoch, "workers": self.workers, "servers": self.servers, "replicas": self.replicas, "optimizer": self.optimizer}


def read(header: dict) -> View:
    """The view in a message's header. Raises ProtocolError if it is invalid."""
    workers, servers = header.get("workers"), header.get("servers")
    if not isinstance(workers, list) or not isinstance(servers, list) or max(len(workers), len(servers)) > MOST_MEMBERS:
        raise wire.ProtocolError("view")
    if not all(isinstance(rank, int) for rank in workers) or not all(
            isinstance(each, list) and len(each) == 2 and isinstance(each[0], int) and isinstance(each[1], str) for each in servers):
        raise wire.ProtocolError("view")
    optimizer = header.get("optimizer")
    if optimizer is not None and not updates.is_known(optimizer):
        raise wire.ProtocolError("optimizer")
    return View(wire.number(header, "epoch"), tuple(workers), tuple((each[0], each[1]) for each in servers),
                wire.number(header, "replicas", 0, 64), optimizer)
