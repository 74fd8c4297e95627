# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The scheduler: manages the membership of the job and detects lost processes."""

from __future__ import annotations

import dataclasses
import sys
import time

import zmq

from ..errors import Error
from . import updates, wire
from .shard import Spec, read_spec
from .view import MOST_MEMBERS, View


@dataclasses.dataclass
class _Member:
    identity: bytes
    role: str
    host: str
    process: int
    address: str
    wanted: int | None  # the rank that its launcher assigned
    number: int = -1
    admitted: bool = False
    last_received: float = 0.0
    barrier: int | None = None  # the request number of the barrier it waits in
    passed: int = 0  # the request number of the last barrier that ended
    answered: int = 0  # the request number of the last declaration that was answered
    declares: tuple[int, Spec] | None = None

    def __str__(self):
        return f"{self.role} {self.number} (host {self.host}, process {self.process})"


class Scheduler:
    """The event loop of the scheduler. Times are in seconds.

    A change of the membership makes a new view. Servers then exchange shards; the view is settled when all have
    reported so.
    """

    def __init__(self, router: zmq.Socket, workers: int, servers: int, timeout: float, lost_after: float, replicas: int):
        self._router, self._workers, self._servers = router, workers, servers
        self._timeout, self._lost_after = timeout, lost_after
        self._members: dict[bytes, _Member] = {}
        self._gone: dict[bytes, str] = {}
        self._view = View(0, (), (), replicas)
        self._next_rank = self._next_server = 0
        self._settled: set[int] = set()
        self._is_settled = True
        self._specs: dict[str, Spec] = {}
        self._lost: list[str] = []
        self._last_is_lost = False  # whether the last worker that is gone was lost (did not leave)
        self._new: list[_Member] = []
        self._releases = False  # whether a barrier waits for the view to settle

    def run(self) -> None:
        """Serve until all workers have left. Raises Error if the job fails."""
        deadline = time.monotonic() + self._timeout
        try:
            while not self._is_over():
                if self._router.poll(int(100 * min(1.0, self._lost_after))):
                    for _ in range(256):
                        try:
                            identity, *frames = self._router.recv_multipart(zmq.NOBLOCK)
                            self._receive(identity, wire.unpack(frames)[0])
                        except wire.ProtocolError:
                            continue
                        except zmq.Again:
                            break
                self._check_silence()
                if self._view.epoch == 0 and time.monotonic() > deadline:
                    came = {role: sum(each.role == role for each in self._members.values()) for role in ("server", "worker")}
                    raise Error(f"the scheduler waited {self._timeout:g} s: {came['server']} of {self._servers} servers and {came['worker']} of "
                                f"{self._workers} workers joined")
        except (Error, KeyboardInterrupt) as error:
            self._broadcast({"do": "fail", "why": str(error) or "the scheduler was interrupted"})
            raise
        self._broadcast({"do": "stop"})

    def _is_over(self) -> bool:
        if self._view.epoch == 0 or self._view.workers or any(each.role == "worker" for each in self._members.values()):
            return False
        if self._last_is_lost:
            raise Error(f"all workers are gone; the last was {self._lost[-1]}")
        return True

    # Messages.

    def _send(self, member: _Member, header: dict) -> None:
        self._router.send_multipart([member.identity, *wire.pack(header)])

    def _broadcast(self, header: dict, role: str = "") -> None:
        for member in list(self._members.values()):
            if not role or member.role == role:
                self._send(member, header)

    def _receive(self, identity: bytes, header: dict) -> None:
        member, do = self._members.get(identity), header["do"]
        if member is None:
            if do == "join" and identity not in self._gone:
                self._join(identity, header)
            elif identity in self._gone and do != "leave":
                self._router.send_multipart([identity, *wire.pack({"do": "fail", "why": self._gone[identity]})])
            return
        member.last_received = time.monotonic()
        if do == "beat":
            self._send(member, {"do": "beat"})
        elif do == "settled" and member.role == "server" and header.get("epoch") == self._view.epoch:
            self._settled.add(member.number)
            self._settle()
        elif do == "leave":
            self._remove([member], None)
        elif member.role == "worker" and member.admitted:
            self._request(member, do, header)

    def _join(self, identity: bytes, header: dict) -> None:
        role, wanted = wire.text(header, "role"), header.get("wanted")
        if role not in ("server", "worker") or len(self._members) >= MOST_MEMBERS:
            raise wire.ProtocolError("role")
        if wanted is not None:
            wire.number(header, "wanted", 0, MOST_MEMBERS)
        member = self._members[identity] = _Member(identity, role, wire.text(header, "host"), wire.number(header, "process"),
                                                   wire.text(header, "address"), wanted, last_received=time.monotonic())
        if role == "server":
            member.number, self._next_server = self._next_server, self._next_server + 1
        self._send(member, {"do": "accepted", "lost_after": self._lost_after, "number": member.number})
        came = {role: [each for each in self._members.values() if each.role == role] for role in ("server", "worker")}
        if self._view.epoch == 0 and len(came["server"]) >= self._servers and len(came["worker"]) >= self._workers:
            self._admit()
        elif self._view.epoch and role == "server":
            self._release()

    def _request(self, member: _Member, do: str, header: dict) -> None:
        request = wire.number(header, "request")
        if do == "barrier":
            if request <= member.passed:
                return self._send(member, {"do": "done", "request": request})
            member.barrier = request
            self._release()
        elif do == "declare":
            if request > member.answered:
                member.declares = request, read_spec(header.get("spec"))
                self._answer_declarations()
        elif do == "optimizer":
            if not updates.is_known(header.get("optimizer")):
                raise wire.ProtocolError("optimizer")
            self._change(self._view.workers, self._view.servers, header["optimizer"])
            self._send(member, {"do": "done", "request": request})
        return None

    # Membership.

    def _check_silence(self) -> None:
        limit = time.monotonic() - self._lost_after
        lost = [member for member in self._members.values() if member.last_received < limit]
        if lost:
            self._remove(lost, f"was silent for {self._lost_after:g} s")

    def _remove(self, members: list[_Member], why: str | None) -> None:
        """Remove members. why: what shows that they are lost, or None if they left.

        Raises Error if no server remains.
        """
        for member in members:
            del self._members[member.identity]
            if member.role == "worker":
                self._last_is_lost = why is not None
            if why is not None:
                self._lost.append(f"{member}, which {why}")
                self._gone[member.identity] = f"{member} was declared lost: it {why}, and the job goes on without it"
                print(f"tessera: warning: {member} {why}; the job goes on without it", file=sys.stderr, flush=True)
        gone = {(member.role, member.number) for member in members if member.admitted}
        if not gone:
            return
        workers = tuple(rank for rank in self._view.workers if ("worker", rank) not in gone)
        servers = tuple(each for each in self._view.servers if ("server", each[0]) not in gone)
        if not servers:
            raise Error(f"no server with the keys is left; the last was {self._lost[-1] if self._lost else members[-1]}")
        self._change(workers, servers, self._view.optimizer)
        self._answer_declarations()
        self._release()

    def _change(self, workers, servers, optimizer) -> None:
        self._view = View(self._view.epoch + 1, tuple(sorted(workers)), tuple(sorted(servers)), self._view.replicas, optimizer)
        self._settled, self._is_settled = set(), False
        header = {"do": "view", **self._view.header()}
        for member in self._members.values():
            if member.admitted and (member.role == "server" or not self._releases):
                self._send(member, header)

    def _admit(self) -> None:
        """Admit the processes that have joined. The job's workers are idle now: in a barrier, or there are none yet."""
        came = [each for each in self._members.values() if each.role == "worker" and not each.admitted]
        taken = set(self._view.workers)
        for member in sorted(came, key=lambda each: (each.wanted is None, each.wanted or 0)):
            number = member.wanted
            if number is None or number in taken or number < self._next_rank and self._view.epoch:
                number = next(rank for rank in range(self._next_rank if self._view.epoch else 0, 2 * MOST_MEMBERS) if rank not in taken)
            member.number = number
            taken.add(number)
        self._next_rank = max([self._next_rank, *(rank + 1 for rank in taken)])
        for member in self._members.values():
            member.admitted = True
        servers = [(each.number, each.address) for each in self._members.values() if each.role == "server"]
        self._new, self._releases = came, True
        self._change(taken, servers, self._view.optimizer)

    def _settle(self) -> None:
        """Mark the view as settled once all servers have sent their shards to the new owners."""
        if self._is_settled or not set(self._view.addresses) <= self._settled:
            return
        self._is_settled = True
        self._broadcast({"do": "settled", "epoch": self._view.epoch}, "server")
        if self._releases:
            self._releases = False
            late = self._view.epoch > 1 and bool(self._specs or self._view.optimizer)
            for member in self._new:
                if member.identity in self._members:
                    local = sum(other.role == "worker" and other.admitted and other.host == member.host and other.number < member.number
                                for other in self._members.values())
                    self._send(member, {"do": "welcome", "rank": member.number, "local_rank": local, "late": late, **self._view.header()})
            for member in self._members.values():
                if member.role == "worker" and member not in self._new:
                    self._send(member, {"do": "view", **self._view.header()})
            self._new = []
            self._end_barrier()
        self._release()

    def _release(self) -> None:
        """End the barrier if all workers are in it; first admit the processes that joined since the last one."""
        inside = [each for each in self._members.values() if each.role == "worker" and each.admitted]
        if any(each.barrier is None for each in inside) or not self._is_settled:
            return
        came = {each.role for each in self._members.values() if not each.admitted}
        if "worker" in came or inside and came:
            self._admit()
            return
        self._end_barrier()

    def _end_barrier(self) -> None:
        for member in [each for each in self._members.values() if each.barrier is not None]:
            member.passed = member.barrier
            self._send(member, {"do": "done", "request": member.barrier})
            member.barrier = None

    def _answer_declarations(self) -> None:
        """Answer declarations of keys: at once if the key is known, else when all workers have made theirs."""
        inside = [each for each in self._members.values() if each.role == "worker" and each.admitted]
        for member in inside:
            if member.declares and (known := self._specs.get(member.declares[1].key)):
                request, spec = member.declares
                member.answered, member.declares = request, None
                self._send(member, {"do": "done", "request": request} if spec == known else {
                    "do": "refused", "request": request, "why": f"the job has {known}, and worker {member.number} initializes {spec}"})
        if not inside or any(each.declares is None for each in inside):
            return
        first = min(inside, key=lambda each: each.number)
        other = next((each for each in sorted(inside, key=lambda each: each.number) if each.declares[1] != first.declares[1]), None)
        if other is None:
            self._specs[first.declares[1].key] = first.declares[1]
        why = other and (f"the workers initialize different keys: worker {first.number} {first.declares[1]}, worker {other.number} "
                         f"{other.declares[1]}")
        for member in inside:
            request = member.answered = member.declares[0]
            member.declares = None
            self._send(member, {"do": "refused", "request": request, "why": why} if why else {"do": "done", "request": request})
