# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The connection of a server or worker to the scheduler."""

from __future__ import annotations

import os
import secrets
import socket
import time

import zmq

from ..errors import Error
from . import roles, wire


class JobError(Error, RuntimeError):
    """The job has failed: the scheduler or too many servers are lost, or the scheduler dropped this process as lost."""


class Member:
    """A connection to the scheduler: a join message, then heartbeats in both directions. seconds: timeout of the join."""

    def __init__(self, sockets: wire.Sockets, config: roles.Config, role: str, seconds: float, hello: dict):
        self.identity = f"{role}-{secrets.token_hex(8)}".encode()
        self._config, self._role, self._seconds = config, role, seconds
        self.lost_after, self._beat = seconds, 0.0
        self._hello = {"do": "join", "role": role, "host": socket.gethostname(), "process": os.getpid(), **hello}
        self.socket = sockets.connect(wire.address(config.host, config.port), self.identity)
        self.last_received, self.welcomed = time.monotonic(), False
        self.send(self._hello)

    def send(self, header: dict) -> None:
        self.socket.send_multipart(wire.pack(header))

    def receive(self):
        """Yield the headers that have arrived. Raises JobError if the job has failed."""
        while True:
            try:
                header, _ = wire.unpack(self.socket.recv_multipart(zmq.NOBLOCK))
            except zmq.Again:
                return
            except wire.ProtocolError:
                continue
            self.last_received = time.monotonic()
            if header["do"] == "accepted" and not self.welcomed:
                self.welcomed, self.lost_after = True, max(0.1, wire.real(header, "lost_after"))
            if header["do"] == "fail":
                raise JobError(str(header.get("why"))[:4000])
            yield header

    def tick(self) -> None:
        """Send a heartbeat when due; called periodically. Raises JobError if the scheduler is silent for too long."""
        now = time.monotonic()
        where = wire.address(self._config.host, self._config.port)
        if not self.welcomed and now > self.last_received + self._seconds:
            raise JobError(f"this {self._role} waited {self._seconds:g} s for the scheduler at {where}; start it there (python -m tessera.kvstore "
                           "scheduler), with the same job token, or raise the timeout")
        if self.welcomed and now > self.last_received + self.lost_after:
            raise JobError(f"the scheduler at {where} is lost: it was silent for {self.lost_after:g} s; the job ends")
        if self.welcomed and now > self._beat + self.pause:
            self._beat = now
            self.send({"do": "beat"})

    @property
    def pause(self) -> float:
        """Seconds between heartbeats."""
        return min(1.0, self.lost_after / 5)
