# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run a scheduler or a server until the job ends."""

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


def sockets(config: roles.Config) -> wire.Sockets:
    """The socket factory with the job token. Raises Error if there is no token and the scheduler is not on loopback."""
    token = nodes.token(None)
    if not token and not ports.is_loopback(config.host, "the scheduler's host"):
        raise Error(f"the scheduler's host is '{config.host}', which other hosts can reach, and there is no job token; give all processes "
                    "the same TESSERA_JOB_TOKEN or TESSERA_JOB_TOKEN_FILE, from openssl rand -hex 32")
    return wire.Sockets(token)


def scheduler(config: roles.Config, timeout: float = TIMEOUT, lost_after: float = LOST_AFTER, replicas: int = REPLICAS) -> None:
    """Run the scheduler until all workers have left.

    Raises Error if the job fails, after telling all processes the reason.

    timeout: seconds to wait for workers and servers at the start; lost_after: seconds of silence until a process counts
    as lost.
    """
    made = sockets(config)
    signal.signal(signal.SIGTERM, lambda number, _: (_ for _ in ()).throw(Error("SIGTERM ended the scheduler")))
    try:
        router, _ = made.listen(_numeric(config.host), config.port, "the scheduler's port")
        Scheduler(router, config.workers, config.servers, timeout, lost_after, replicas).run()
    finally:
        made.close()


def server(config: roles.Config, timeout: float = TIMEOUT, bind: str | None = None) -> None:
    """Run a server until the scheduler stops it.

    timeout: seconds to wait for the scheduler; bind: address to listen at. Raises Error.
    """
    made = sockets(config)
    try:
        host = _numeric(bind) if bind else _own_address(config)
        if not made.token and not ports.is_loopback(host, "--bind"):
            raise Error(f"--bind is '{host}', which other hosts can reach, and there is no job token; set TESSERA_JOB_TOKEN")
        router, port = made.listen(host, 0, "--bind")
        Server(made, Member(made, config, "server", timeout, {"address": wire.address(host, port)}), router).run()
    finally:
        made.close()


def _numeric(host: str) -> str:
    return ports.resolve("the scheduler's host", host)[1][0]


def _own_address(config: roles.Config) -> str:
    """The address of this host on the route to the scheduler."""
    family, address = ports.resolve("the scheduler's host", config.host, config.port)
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(address)
        return probe.getsockname()[0]
