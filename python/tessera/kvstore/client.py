# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A worker's connections: a thread that sends requests, repeats them if a server is lost, and sends heartbeats."""

from __future__ import annotations

import collections
import socket
import threading
import time

import zmq

from ..errors import Error
from . import view as views
from . import wire
from .member import JobError, Member
from .store import StoreError
from .view import View

_REPEAT = 5.0  # seconds until a request without an answer is sent again


class Pending:
    """A request without an answer yet. `shard` is (key, index), or None for a request to the scheduler."""

    def __init__(self, number: int, shard, header: dict, frames):
        self.number, self.shard, self.header, self.frames = number, shard, header, frames
        self.answer: dict | None = None
        self.result: list[bytes] = []
        self.sent = 0.0


class Client:
    """The connections to the scheduler and the servers, for use by one thread.

    seconds: timeout of the connection and of each wait. Raises JobError if the scheduler does not answer.
    """

    def __init__(self, sockets: wire.Sockets, config, seconds: float, hello: dict):
        self._sockets, self._seconds = sockets, seconds
        self._member = Member(sockets, config, "worker", seconds, hello)
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)
        self._woken.setblocking(False)
        self._poller = zmq.Poller()
        self._poller.register(self._member.socket, zmq.POLLIN)
        self._poller.register(self._woken, zmq.POLLIN)
        self._servers: dict[int, zmq.Socket] = {}
        self._under_way: dict[int, Pending] = {}
        self._new: collections.deque[Pending] = collections.deque()
        self._number, self._failure, self._closing = 0, "", False
        self._changed = threading.Condition()
        self.view, self.welcome = View(0, (), (), 0), None
        self._thread = threading.Thread(target=self._run, name="tessera-kvstore", daemon=True)
        self._thread.start()
        try:
            self._wait_until(lambda: self.welcome is not None, None)
        except BaseException:
            self.close()
            raise
        self.rank = self.welcome["rank"]

    def request(self, shard, header: dict, frames=()) -> Pending:
        """Send a request, without waiting. Raises JobError if the job has failed."""
        with self._changed:
            self._check_failure()
            self._number += 1
            pending = Pending(self._number, shard, {**header, "request": self._number}, frames)
            self._new.append(pending)
        self._wake_thread()
        return pending

    def wait(self, requests, what: str) -> list[Pending]:
        """Wait for the answers to `requests` of the call `what`.

        Raises StoreError with the reason if one is refused, and JobError if the job fails or the timeout expires.
        """
        self._wait_until(lambda: all(each.answer is not None for each in requests), what)
        for each in requests:
            if each.answer["do"] == "refused":
                raise StoreError(str(each.answer.get("why"))[:4000])
        return requests

    def close(self) -> None:
        """Leave the job and end the thread."""
        self._closing = True
        self._wake_thread()
        self._thread.join(5)

    def _wake_thread(self) -> None:
        try:
            self._wake.send(b"x")
        except (BlockingIOError, OSError):
            pass

    def _check_failure(self) -> None:
        if self._failure:
            raise JobError(self._failure)

    def _wait_until(self, condition, what: str | None) -> None:
        deadline = None if what is None else time.monotonic() + self._seconds
        with self._changed:
            while not condition():
                self._check_failure()
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise JobError(f"{what} waited {self._seconds:g} s for the other workers of {list(self.view.workers)}; all workers must "
                                   "make the same calls")
                self._changed.wait(1.0 if left is None else min(left, 1.0))

    # Methods of the thread.

    def _run(self) -> None:
        try:
            while not self._closing:
                ready = dict(self._poller.poll(int(1000 * self._member.pause)))
                if self._woken.fileno() in ready:
                    self._woken.recv(4096)
                for header in self._member.receive():
                    self._handle(header)
                for server in list(self._servers.values()):
                    while self._receive(server):
                        pass
                while self._new:
                    pending = self._new.popleft()
                    self._under_way[pending.number] = pending
                    self._send(pending)
                limit = time.monotonic() - _REPEAT
                for pending in self._under_way.values():
                    if pending.sent < limit:
                        self._send(pending)
                self._member.tick()
            self._member.send({"do": "leave"})
        except (JobError, Error, zmq.ZMQError, wire.ProtocolError) as error:
            with self._changed:
                self._failure = str(error) or type(error).__name__
                self._changed.notify_all()
        finally:
            self._sockets.close()

    def _handle(self, header: dict) -> None:
        if header["do"] in ("view", "welcome"):
            view = views.read(header)
            if view.epoch > self.view.epoch:
                self._change(view)
            if header["do"] == "welcome":
                wire.number(header, "rank"), wire.number(header, "local_rank")
                with self._changed:
                    self.welcome = header
                    self._changed.notify_all()
        elif header["do"] in ("done", "refused"):
            self._finish(header, [])

    def _change(self, view: View) -> None:
        self.view = view
        for number in [number for number in self._servers if number not in view.addresses]:
            self._poller.unregister(self._servers[number])
            self._servers.pop(number).close()
        for number, address in view.servers:
            if number not in self._servers:
                self._servers[number] = self._sockets.connect(address, self._member.identity)
                self._poller.register(self._servers[number], zmq.POLLIN)
        for pending in self._under_way.values():
            if pending.shard is not None:
                self._send(pending)

    def _receive(self, server: zmq.Socket) -> bool:
        try:
            self._finish(*wire.unpack(server.recv_multipart(zmq.NOBLOCK)))
        except zmq.Again:
            return False
        except wire.ProtocolError:
            pass
        return True

    def _finish(self, header: dict, frames) -> None:
        pending = self._under_way.get(header.get("request"))
        if pending is None or header["do"] not in ("done", "refused", "value"):
            return
        del self._under_way[pending.number]
        with self._changed:
            pending.answer, pending.result, pending.frames = header, frames, ()
            self._changed.notify_all()

    def _send(self, pending: Pending) -> None:
        pending.sent = time.monotonic()
        if pending.shard is None:
            return self._member.send(pending.header)
        key, index = pending.shard
        owner = self.view.owners(key, index)[0]
        header = {**pending.header, "epoch": self.view.epoch, "rank": self.welcome["rank"], "key": key, "index": index}
        self._servers[owner].send_multipart(wire.pack(header, pending.frames))
        return None
