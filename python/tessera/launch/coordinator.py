# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The decisions of node 0 for all nodes, as a state machine without sockets or clocks: messages in, messages out.

From a node    join (number of ranks), failed (a failure), stop (a signal), gone (all its ranks have exited),
               done (all have exited with 0), lost (the node does not answer)
To a node      start (first rank, number of ranks of the job, restart, places), end (end the ranks, for this failure),
               restart (the same; start follows once all nodes are gone), stop (forward a signal to the ranks), leave (exit code)

A place is the local rank that a rank has at the job's first start; with min_ranks, failed places stay empty.
"""

from __future__ import annotations

from .failure import describe, shell_code


class Coordinator:
    """The job's state.

    `send(node, message)` sends to a node, node 0 included; `report(failure, then)` prints a failure.
    """

    def __init__(self, nodes: int, max_restarts: int, send, report, min_ranks: int | None = None):
        self.nodes, self.max_restarts, self.min_ranks = nodes, max_restarts, min_ranks
        self._send, self._report = send, report
        self.places: dict[int, list[int]] = {}  # by node, ascending: the places that are started
        self.restart = 0
        self._gone: set[int] = set()
        self._done: set[int] = set()
        self._lost: set[int] = set()
        self._ending: dict | None = None  # the reason, once the job ends
        self._restarting = False
        self.finished = False

    def missing(self) -> list[int]:
        """Nodes that have not joined yet."""
        return [node for node in range(self.nodes) if node not in self.places]

    def join(self, node: int, count: int) -> None:
        """Handle a node that joins with `count` ranks; the job starts once all nodes have."""
        self.places[node] = list(range(count))
        if self._ending is not None:
            self._send(node, {"do": "leave", "code": self._code()})
        elif not self.missing():
            self._start()

    def _start(self) -> None:
        empty = {node for node, places in self.places.items() if not places}  # they have no rank that could exit
        self._gone, self._done, self._restarting = set(empty), empty, False
        size, base = self.size(), 0
        for node in sorted(set(range(self.nodes)) - self._lost):
            self._send(node, {"do": "start", "base": base, "size": size, "restart": self.restart, "places": self.places[node]})
            base += len(self.places[node])

    def size(self) -> int:
        """Number of ranks of the next start."""
        return sum(map(len, self.places.values()))

    def _restart(self, node: int, failure: dict, left: list[int]) -> bool:
        """Restart the ranks; with min_ranks, only the places `left` of this node.

        Returns False, and changes nothing, if that exceeds max_restarts or leaves fewer than min_ranks.
        """
        if self.restart >= self.max_restarts or self.missing():
            return False
        if self.min_ranks is not None:
            if self.size() - len(self.places[node]) + len(left) < self.min_ranks:
                return False
            self.places[node] = left
        self.restart += 1
        self._restarting, self._gone = True, set(self._lost)
        self._report(failure, f"restart {self.restart} of at most {self.max_restarts} follows"
                     + (f", with {self.size()} ranks" if self.min_ranks is not None else ""))
        self._broadcast({"do": "restart", "failure": failure})
        return True

    def failed(self, node: int, failure: dict) -> None:
        """Handle the failure of a rank. Only the first one counts; its consequences are not reported."""
        if self._ending is not None or self._restarting:
            return
        left = [place for place in self.places.get(node, ()) if place != failure.get("place")]
        if "rank" not in failure or not self._restart(node, failure, left):
            self._end(failure, {"do": "end", "failure": failure})

    def stop(self, node: int, number: int) -> None:
        """Forward a signal that a launcher received to all ranks."""
        why = {"signal": number}
        if self._ending is None:
            self._end(why, {"do": "stop", "signal": number})
        elif "signal" in self._ending:
            self._broadcast({"do": "stop", "signal": number})

    def lost(self, node: int, text: str) -> None:
        """Handle a node that does not answer any more."""
        if node in self._lost or self.finished:
            return
        self._lost.add(node)
        self._gone.add(node)
        failure = {"text": text}
        if self._ending is None and self.min_ranks is not None and self._restarting and self.size() - len(self.places[node]) >= self.min_ranks:
            self.places[node] = []
            self._report(failure, f"{self.size()} ranks remain")
            self._start_if_gone()
        elif self._ending is None and (self.min_ranks is None or self._restarting or not self._restart(node, failure, [])):
            self._restarting = False
            self._end(failure, {"do": "end", "failure": failure})
        self._leave_if_gone()

    def gone(self, node: int) -> None:
        """Handle the exit of all ranks of a node."""
        self._gone.add(node)
        self._start_if_gone()
        self._leave_if_gone()

    def _start_if_gone(self) -> None:
        if self._restarting and len(self._gone) == self.nodes:
            self._start()

    def done(self, node: int) -> None:
        """Handle the exit of all ranks of a node with code 0."""
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
            self._broadcast(order)

    def _code(self) -> int:
        why = self._ending or {}
        if "signal" in why:
            return 128 + why["signal"]
        return shell_code(why) if why else 0

    def _broadcast(self, message: dict) -> None:
        for node in sorted(self.places):
            if node not in self._lost:
                self._send(node, message)

    def _leave_if_gone(self) -> None:
        if self._ending is not None and not self.finished and self._gone >= set(self.places):
            self.finished = True
            self._broadcast({"do": "leave", "code": self._code()})


def text_of(failure: dict, then: str | None) -> str:
    """The message that reports a failure, and what follows if the job goes on."""
    return f"tessera: error: {describe(failure)}" + (f"\ntessera: {then}" if then else "")
