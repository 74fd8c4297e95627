# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The worker process: runs the ranks of this node, passes on their output, and executes the coordinator's orders."""

from __future__ import annotations

import dataclasses
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable

from . import processes
from .coordinator import Coordinator, text_of
from .failure import status_code
from .hub import Hub
from .link import Connection, LinkError
from .logs import Lines, Output, log_path, write_all
from .supervisor import end_at_once


# Seconds in which a rank killed by a signal may be reaped after its peers, which exit because its connections end.
_SETTLING = 0.3


@dataclasses.dataclass
class Job:
    """The parameters of the worker.

    `command(local_rank)` and `environment(rank=, size=, ...)` return those of a rank. In a job of several nodes, node 0
    has `listener`, and `connect` connects another node to node 0. Times are in seconds.
    """

    node: int
    nodes: int
    count: int
    command: Callable[[int], list[str]]
    environment: Callable[..., dict[str, str]]
    first_rank: int = 0  # under mpirun: the rank of this process
    local_rank: int | None = None  # under mpirun: the local rank of this process, if known
    keep: tuple[int, ...] = ()  # file descriptors that ranks inherit
    max_restarts: int = 0
    min_ranks: int | None = None
    log_dir: str | None = None
    grace: float = 2.0
    stop_grace: float = 30.0
    timeout: float = 120.0
    token: bytes = b""
    listener: socket.socket | None = None
    connect: Callable[[Callable[[], None]], Connection] | None = None


@dataclasses.dataclass
class Rank:
    """A running rank."""

    rank: int
    local: int
    place: int  # local rank at the job's first start
    process: subprocess.Popen
    output: Output
    streams: dict[int, tuple[Lines, int]]  # by pipe: the lines, and the descriptor of this process they are written to
    code: int | None = None


class Node:
    """The event loop of the worker. It ends when the coordinator orders this node to leave with exit code `code`."""

    def __init__(self, job: Job, signals: int):
        self.job, self._signals = job, signals
        self._selector = selectors.DefaultSelector()
        self._ranks: dict[int, Rank] = {}  # by process
        self._coordinator: Coordinator | None = None
        self._hub = None
        self._link: Connection | None = None
        self._ending = self._mute = False
        self._kill_at: float | None = None
        self._failure: tuple[float, dict] | None = None  # the deadline for sending it, and the failure
        self._stops = 0
        self._waiting_since = time.monotonic()
        self._next_alive = 0.0
        self._keyboard: int | None = None
        self.code: int | None = None

    # --- the loop -----------------------------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Run until the coordinator orders this node to leave. Returns the exit code."""
        children, wakeup = os.pipe()
        os.set_blocking(children, False)
        os.set_blocking(wakeup, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        self._selector.register(self._signals, selectors.EVENT_READ, self._on_signals)
        self._selector.register(children, selectors.EVENT_READ, lambda _events: os.read(children, 4096))
        if self.job.node == 0:
            self._start_coordinator()
        else:
            self._connect()
        while self.code is None:
            for key, events in self._selector.select(self._pause()):
                if key.fileobj in self._selector.get_map():  # an earlier event may have closed it
                    key.data(events)
            self._reap()
            self._tick()
        self._flush()
        return self.code

    def _pause(self) -> float:
        soon = 1.0
        for when in (self._kill_at, self._failure and self._failure[0]):
            if when is not None:
                soon = min(soon, max(0.0, when - time.monotonic()))
        return soon

    def _tick(self) -> None:
        now, job = time.monotonic(), self.job
        if self._failure is not None and now >= self._failure[0]:
            self._send_failure()
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = None
            for pid in self._ranks:
                processes.signal_group(pid, signal.SIGKILL)
        if now >= self._next_alive:
            self._next_alive = now + min(10.0, job.timeout / 8)
            if self._link:
                self._link.send({"say": "alive"})
                self._watch_link()
            if self._hub:
                self._hub.alive()
        if self._hub:
            self._hub.tick()
            if self._coordinator.missing() and self._waiting_since is not None and now > self._waiting_since + job.timeout:
                self._waiting_since = None
                absent = ", ".join(map(str, self._coordinator.missing()))
                self._coordinator.failed(0, {"text": f"waited {job.timeout:g} s for the launchers of nodes {absent} of {job.nodes}; start "
                                                     "them, or raise --timeout"})
                self._coordinator.gone(0)
        if self._link and now > self._link.last_received + job.timeout:
            self._lose_coordinator(f"was silent for {job.timeout:g} s")

    # --- messages -----------------------------------------------------------------------------------------------------------------

    def _start_coordinator(self) -> None:
        self._coordinator = Coordinator(self.job.nodes, self.job.max_restarts, self._send, self._report, self.job.min_ranks)
        if self.job.listener is not None:
            self._hub = Hub(self.job.listener, self.job.token, self._coordinator, self._selector, self.job.timeout)
        self._coordinator.join(0, self.job.count)

    def _connect(self) -> None:
        self._link = self.job.connect(self._stop_if_signalled)
        self._selector.register(self._link.socket, selectors.EVENT_READ, self._receive)
        self._receive(selectors.EVENT_READ)  # messages that arrived with the end of the handshake

    def _send(self, node: int, message: dict) -> None:
        if node == 0:
            self._execute(message)
        elif self._hub:
            self._hub.send(node, message)

    def _report(self, failure: dict, then: str | None) -> None:
        print(text_of(failure, then), file=sys.stderr, flush=True)

    def _notify(self, kind: str, **more) -> None:
        if self._coordinator:
            getattr(self._coordinator, kind)(0, *more.values())
        elif self._link:
            self._link.send({"say": kind, **more})
            self._watch_link()

    def _watch_link(self) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._link.wants_to_write else 0)
        self._selector.modify(self._link.socket, events, self._receive)

    def _receive(self, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._link.flush()
            self._watch_link()
        try:
            messages = self._link.receive()
        except LinkError as error:
            return self._lose_coordinator(f"ended unexpectedly ({error})")
        for message in messages:
            self._execute(message)
        return None

    def _lose_coordinator(self, why: str) -> None:
        self._selector.unregister(self._link.socket)
        self._link.close()
        self._link = None
        if self.code is None:
            self._report({"text": f"the launcher of node 0 {why}; all ranks of node {self.job.node} end"}, None)
            self._end_ranks(signal.SIGTERM, self.job.grace)
            if not self._ranks:
                self.code = 1

    def _execute(self, message: dict) -> None:
        """Execute an order of the coordinator (coordinator.py lists them)."""
        order = message.get("do")
        if order == "start":
            self._start(message["base"] + self.job.first_rank, message["size"], message["restart"], message["places"])
        elif order in ("end", "restart"):
            if self.job.node:
                self._report(message["failure"], None)
            self._end_ranks(signal.SIGTERM, self.job.grace)
            self._check_exited()
        elif order == "stop":
            self._stops += 1
            self._end_ranks(message["signal"], self.job.stop_grace if self._stops == 1 else 0)
            self._check_exited()
        elif order == "leave":
            self.code = message["code"]

    def _on_signals(self, _events: int) -> None:
        numbers = os.read(self._signals, 64)
        if not numbers:
            end_at_once()
        for number in numbers:
            if self._coordinator and self._coordinator.missing():
                self._coordinator.stop(0, number)
                self._coordinator.gone(0)
            elif self._coordinator or self._link:
                self._notify("stop", signal=number)

    def _stop_if_signalled(self) -> None:
        """Raise KeyboardInterrupt(signal) if a signal arrived before this node is connected to node 0."""
        if select.select([self._signals], [], [], 0)[0]:
            numbers = os.read(self._signals, 64)
            raise KeyboardInterrupt(numbers[0] if numbers else signal.SIGKILL)

    # --- ranks --------------------------------------------------------------------------------------------------------------------

    def _start(self, base: int, size: int, restart: int, places: list[int]) -> None:
        job = self.job
        self._ending, self._kill_at = False, None
        for local, place in enumerate(places):
            rank = base + local
            streams = [os.pipe(), os.pipe()]
            environment = job.environment(rank=rank, size=size, local_rank=local, restart=restart, places=places)
            command = job.command(local)
            try:
                output = Output(rank, job.log_dir and log_path(job.log_dir, rank, restart))
                process = processes.start(command, environment, self._stdin(rank), streams[0][1], streams[1][1], job.keep)
            except (OSError, subprocess.SubprocessError) as error:
                for end in (*streams[0], *streams[1]):
                    os.close(end)
                text = f"rank {rank} (host {socket.gethostname()}) could not be started: {command[0]}: {getattr(error, 'strerror', None) or error}"
                self._notify("failed", failure={"text": text})
                return
            self._ranks[process.pid] = each = Rank(rank, local, place, process, output, {})
            for (source, target), descriptor in zip(streams, (1, 2)):
                os.close(target)
                os.set_blocking(source, False)
                each.streams[source] = Lines(), descriptor
                self._selector.register(source, selectors.EVENT_READ,
                                        lambda _events, each=each, source=source: self._read(each, source))
            if process.stdin:
                self._pump(process.stdin.fileno())

    def _stdin(self, rank: int):
        """The `stdin` of a rank: this command's for rank 0, nothing for others.

        A terminal is read here and piped to rank 0, since only the foreground process group may read it.
        """
        if rank or self.job.node:
            return subprocess.DEVNULL
        try:
            os.fstat(0)
        except OSError:
            return subprocess.DEVNULL
        return subprocess.PIPE if os.isatty(0) else None

    def _pump(self, target: int) -> None:
        def forward(_events: int) -> None:
            try:
                data = os.read(0, 4096)  # at most a terminal's line, which fits the pipe
                if data:
                    write_all(target, data)
                    return
            except OSError:
                pass
            self._selector.unregister(0)
            self._keyboard = None
            for each in self._ranks.values():
                if each.process.stdin and each.process.stdin.fileno() == target:
                    each.process.stdin.close()
        os.set_blocking(target, False)
        if self._keyboard is not None:
            self._selector.unregister(0)
        self._keyboard = target
        self._selector.register(0, selectors.EVENT_READ, forward)

    def _read(self, each: Rank, source: int) -> bool:
        """Read and pass on the output of a rank. Returns whether there was any."""
        try:
            data = os.read(source, 1 << 16)
        except (BlockingIOError, InterruptedError):
            return False
        lines, descriptor = each.streams[source]
        self._write(each, descriptor, lines.feed(data) if data else lines.end())
        if not data:
            self._close(each, source)
        return bool(data)

    def _drain(self, each: Rank) -> None:
        for source in list(each.streams):
            while source in each.streams and self._read(each, source):
                pass

    def _write(self, each: Rank, descriptor: int, lines: list[bytes]) -> None:
        try:
            each.output.write(None if self._mute else descriptor, lines)
        except BrokenPipeError:
            self._mute = True
            self._notify("failed", failure={"text": "the output of the ranks has no reader any more", "code": -signal.SIGPIPE})

    def _close(self, each: Rank, source: int) -> None:
        self._selector.unregister(source)
        os.close(source)
        del each.streams[source]

    def _reap(self) -> None:
        for pid, status in processes.reap():
            each = self._ranks.get(pid)
            if each is None:
                continue  # an adopted process
            each.code = each.process.returncode = status_code(status)
            self._drain(each)
            if each.code and not self._ending:
                local_rank = each.local if self.job.local_rank is None else self.job.local_rank
                self._fail({"rank": each.rank, "node": self.job.node, "host": socket.gethostname(), "local_rank": local_rank, "pid": pid,
                            "place": each.place, "code": each.code, "lines": each.output.last()})
        self._check_exited()

    def _fail(self, failure: dict) -> None:
        """Send the failure that caused the others to the coordinator.

        When a signal kills a rank, its peers see its connections end and may exit, and be reaped, before it. So a
        failure with an exit code waits for `_SETTLING`; one by a signal replaces it and is sent at once.
        """
        if self._failure is None or failure["code"] < 0 <= self._failure[1]["code"]:
            self._failure = time.monotonic() + _SETTLING, failure
        if failure["code"] < 0:
            self._send_failure()

    def _send_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure[1], None
            self._notify("failed", failure=failure)

    def _end_ranks(self, number: int, grace: float) -> None:
        self._ending, self._failure = True, None
        self._kill_at = time.monotonic() + grace
        for pid, each in self._ranks.items():
            if each.code is None:
                processes.signal_group(pid, number)

    def _check_exited(self) -> None:
        if any(each.code is None for each in self._ranks.values()):
            return
        if not self._ranks and not self._ending:
            return
        if self._failure is not None:
            return self._send_failure()  # the coordinator's order then calls this method again
        had = bool(self._ranks)
        good = all(each.code == 0 for each in self._ranks.values())
        processes.kill_descendants()  # processes that the ranks left behind
        for each in self._ranks.values():
            self._drain(each)
            for source, (lines, descriptor) in list(each.streams.items()):
                self._write(each, descriptor, lines.end())
                self._close(each, source)
            each.output.close()
            if each.process.stdin:
                each.process.stdin.close()
        self._ranks = {}
        if self.job.node and not self._link:
            self.code = 1
        elif self._ending:
            self._ending = False
            self._notify("gone")
        elif had and good:
            self._notify("done")

    def _flush(self) -> None:
        if self._hub:
            self._hub.flush(2.0)
        if self._link:
            self._link.close()
