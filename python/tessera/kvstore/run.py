# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a scheduler or a server until the job ends."""

from __future__ import annotations

import signal
import socket

from ..errors import Error
from ..launch import nodes, ports
from . import roles, wire
from .member import Member
from .scheduler import Scheduler
from .server import Server

TIMEOUT, LOST_AFTER, REPLICAS = 120.0, 10.0, 1


def sockets(place: roles.Place) -> wire.Sockets:
    """Sockets with the job's token; Error where the scheduler is not on loopback and there is none."""
    token = nodes.token(None)
    if not token and not ports.is_loopback(place.host, "the scheduler's host"):
        raise Error(f"the scheduler's host is '{place.host}', which other hosts reach, and there is no job token; give all processes the same "
                    "TESSERA_JOB_TOKEN or TESSERA_JOB_TOKEN_FILE, as of: openssl rand -hex 32")
    return wire.Sockets(token)



def scheduler(place: roles.Place, timeout: float = TIMEOUT, lost_after: float = LOST_AFTER, replicas: int = REPLICAS) -> None:
    """Returns when all workers have left. Error where the job failed, which all are told."""
    made = sockets(place)
    signal.signal(signal.SIGTERM, lambda number, _: (_ for _ in ()).throw(Error("the scheduler was ended by SIGTERM")))
    try:
        router, _ = made.listen(_numeric(place.host), place.port, "the scheduler's port")
        Scheduler(router, place.workers, place.servers, timeout, lost_after, replicas).run()
    finally:
        made.close()


def server(place: roles.Place, timeout: float = TIMEOUT, bind: str | None = None) -> None:
    """Returns when the scheduler says so."""
    made = sockets(place)
    try:
        host = _numeric(bind) if bind else _own_address(place)
        if not made.token and not ports.is_loopback(host, "--bind"):
            raise Error(f"--bind is '{host}', which other hosts reach, and there is no job token; set TESSERA_JOB_TOKEN")
        router, port = made.listen(host, 0, "--bind")
        Server(made, Member(made, place, "server", timeout, {"address": wire.address(host, port)}), router).run()
    finally:
        made.close()


def _numeric(host: str) -> str:
    return ports.resolve("the scheduler's host", host)[1][0]


def _own_address(place: roles.Place) -> str:
    """The address of this host on the way to the scheduler."""
    family, address = ports.resolve("the scheduler's host", place.host, place.port)
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(address)
        return probe.getsockname()[0]
