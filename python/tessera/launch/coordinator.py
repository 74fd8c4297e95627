# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What node 0 decides for all nodes. No sockets and no clocks here: messages in, messages out.

A node says       join (its ranks), failed, stop (a signal), gone (its ranks have ended), done (all ended well), lost
and is told       start (ranks, which of the node's places have one, restart), end (its ranks, why), restart (the same, then gone), leave (exit with a code)
"""

from __future__ import annotations

from .failure import describe, shell_code


class Coordinator:
    """`send(node, message)` is called for what a node is told; node 0 is told in the same way."""

    def __init__(self, nodes: int, max_restarts: int, send, report, min_ranks: int | None = None):
        self.nodes, self.max_restarts, self.min_ranks = nodes, max_restarts, min_ranks
        self._send, self._report = send, report
        self.places: dict[int, list[int]] = {}  # by node, of the ranks that start: 0, 1, ... without those that failed
        self.restart = 0
        self._gone: set[int] = set()
        self._done: set[int] = set()
        self._lost: set[int] = set()
        self._ending: dict | None = None  # why, once the job ends
        self._restarting = False
        self.finished = False

    def missing(self) -> list[int]:
        return [node for node in range(self.nodes) if node not in self.places]

    def join(self, node: int, count: int) -> None:
        self.places[node] = list(range(count))
        if self._ending is not None:
            self._send(node, {"do": "leave", "code": self._code()})
        elif not self.missing():
            self._start()

    def _start(self) -> None:
        empty = {node for node, places in self.places.items() if not places}  # they have nothing to wait for
        self._gone, self._done, self._restarting = set(empty), empty, False
        size, base = self.size(), 0
        for node in sorted(set(range(self.nodes)) - self._lost):
            self._send(node, {"do": "start", "base": base, "size": size, "restart": self.restart, "places": self.places[node]})
            base += len(self.places[node])

    def size(self) -> int:
        """Ranks of the next start."""
        return sum(map(len, self.places.values()))

    def _goes_on(self, node: int, failure: dict, left: list[int]) -> bool:
        """Starts the ranks again, of this node those in `left` where fewer will do; False where too few would be left, or too often."""
        if self.restart >= self.max_restarts or self.missing():
            return False
        if self.min_ranks is not None:
            if self.size() - len(self.places[node]) + len(left) < self.min_ranks:
                return False
            self.places[node] = left
        self.restart += 1
        self._restarting, self._gone = True, set(self._lost)
        self._report(failure, f"start {self.restart} of at most {self.max_restarts} more follows"
                     + (f", with {self.size()} ranks" if self.min_ranks is not None else ""))
        self._tell_all({"do": "restart", "failure": failure})
        return True

    def failed(self, node: int, failure: dict) -> None:
        """The first failure counts; what follows from it is not told."""
        if self._ending is not None or self._restarting:
            return
        left = [place for place in self.places.get(node, ()) if place != failure.get("place")]
        if "rank" not in failure or not self._goes_on(node, failure, left):
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
        failure = {"text": text}
        if self._ending is None and self.min_ranks is not None and self._restarting and self.size() - len(self.places[node]) >= self.min_ranks:
            self.places[node] = []
            self._report(failure, f"{self.size()} ranks are left")
            self._start_if_gone()
        elif self._ending is None and (self.min_ranks is None or self._restarting or not self._goes_on(node, failure, [])):
            self._restarting = False
            self._end(failure, {"do": "end", "failure": failure})
        self._leave_if_gone()

    def gone(self, node: int) -> None:
        self._gone.add(node)
        self._start_if_gone()
        self._leave_if_gone()

    def _start_if_gone(self) -> None:
        if self._restarting and len(self._gone) == self.nodes:
            self._start()

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
        for node in sorted(self.places):
            if node not in self._lost:
                self._send(node, message)

    def _leave_if_gone(self) -> None:
        if self._ending is not None and not self.finished and self._gone >= set(self.places):
            self.finished = True
            self._tell_all({"do": "leave", "code": self._code()})


def text_of(failure: dict, then: str | None) -> str:
    """The one message of a failure."""
    return f"tessera: error: {describe(failure)}" + (f"\ntessera: {then}" if then else "")
