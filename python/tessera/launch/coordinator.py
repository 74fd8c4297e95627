# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What node 0 decides for all nodes. No sockets and no clocks here: messages in, messages out.

A node says       join (its ranks), failed, stop (a signal), gone (its ranks have ended), done (all ended well), lost
and is told       start (ranks, restart), end (its ranks, why), restart (the same, then gone), leave (exit with a code)
"""

from __future__ import annotations

from .failure import describe, shell_code


class Coordinator:
    """`send(node, message)` is called for what a node is told; node 0 is told in the same way."""

    def __init__(self, nodes: int, max_restarts: int, send, report):
        self.nodes, self.max_restarts = nodes, max_restarts
        self._send, self._report = send, report
        self.counts: dict[int, int] = {}
        self.restart = 0
        self._gone: set[int] = set()
        self._done: set[int] = set()
        self._lost: set[int] = set()
        self._ending: dict | None = None  # why, once the job ends
        self._restarting = False
        self.finished = False

    def missing(self) -> list[int]:
        return [node for node in range(self.nodes) if node not in self.counts]

    def join(self, node: int, count: int) -> None:
        self.counts[node] = count
        if self._ending is not None:
            self._send(node, {"do": "leave", "code": self._code()})
        elif not self.missing():
            self._start()

    def _start(self) -> None:
        self._gone, self._done, self._restarting = set(), set(), False
        size, base = sum(self.counts.values()), 0
        for node in range(self.nodes):
            self._send(node, {"do": "start", "base": base, "size": size, "restart": self.restart})
            base += self.counts[node]

    def failed(self, node: int, failure: dict) -> None:
        """The first failure counts; what follows from it is not told."""
        if self._ending is not None or self._restarting:
            return
        if self.restart < self.max_restarts and "rank" in failure:
            self.restart += 1
            self._restarting, self._gone = True, set(self._lost)
            self._report(failure, f"start {self.restart} of at most {self.max_restarts} more follows")
            self._tell_all({"do": "restart", "failure": failure})
        else:
            self._end(failure, {"do": "end", "failure": failure})

    def stop(self, node: int, number: int) -> None:
        """A signal that a launcher got: all ranks get it."""
        why = {"signal": number}
        if self._ending is None:
            self._end(why, {"do": "stop", "signal": number})
        elif "signal" in self._ending:
            self._tell_all({"do": "stop", "signal": number})

    def lost(self, node: int, text: str) -> None:
        """A node that does not answer any more."""
        if node in self._lost or self.finished:
            return
        self._lost.add(node)
        self._gone.add(node)
        self.failed(node, {"text": text})
        self._restarting = False
        if self._ending is None:  # lost during a restart
            self._end({"text": text}, {"do": "end", "failure": {"text": text}})
        self._leave_if_gone()

    def gone(self, node: int) -> None:
        self._gone.add(node)
        if self._restarting and len(self._gone) == self.nodes:
            self._start()
        self._leave_if_gone()

    def done(self, node: int) -> None:
        self._done.add(node)
        if len(self._done) == self.nodes and self._ending is None:
            self._end({}, None)
        self._gone.add(node)
        self._leave_if_gone()

    def _end(self, why: dict, order: dict | None) -> None:
        self._ending = why
        if "rank" in why or "text" in why:
            self._report(why, None)
        if order:
            self._tell_all(order)

    def _code(self) -> int:
        why = self._ending or {}
        if "signal" in why:
            return 128 + why["signal"]
        return shell_code(why) if why else 0

    def _tell_all(self, message: dict) -> None:
        for node in sorted(self.counts):
            if node not in self._lost:
                self._send(node, message)

    def _leave_if_gone(self) -> None:
        if self._ending is not None and not self.finished and self._gone >= set(self.counts):
            self.finished = True
            self._tell_all({"do": "leave", "code": self._code()})


def text_of(failure: dict, then: str | None) -> str:
    """The one message of a failure."""
    return f"tessera: error: {describe(failure)}" + (f"\ntessera: {then}" if then else "")
