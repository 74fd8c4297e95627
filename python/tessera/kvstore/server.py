# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A server: stores shards, combines the workers' pushes, and replicates each change before it answers."""

from __future__ import annotations

import math

import numpy as np
import zmq

from . import view as views
from . import wire
from .member import Member
from .shard import Shard, Spec, read_shard, read_spec
from .view import View

_AHEAD = 1 << 10  # number of rounds that a worker may be ahead
_MOST_PARKED = 1 << 20


class _HeldShard:
    """A shard and the requests that wait for it."""

    def __init__(self, shard: Shard):
        self.shard = shard
        self.acked: dict[int, int] = {}  # replica: the last sequence that it has
        self.answers: list = []  # (sequence, identity, request): sent when all replicas have that sequence
        self.pushes: dict[tuple[int, int], tuple] = {}  # (round, rank): (identity, request)
        self.pulls: dict[tuple[bytes, int], tuple] = {}  # (identity, request): (round, rank)


class Server:
    """The event loop of a server. A shard is identified by (key, index)."""

    def __init__(self, sockets: wire.Sockets, member: Member, router: zmq.Socket):
        self._sockets, self._member, self._router = sockets, member, router
        self._poller = zmq.Poller()
        for each in (member.socket, router):
            self._poller.register(each, zmq.POLLIN)
        self._number = -1
        self._view, self._settled = View(0, (), (), 0), View(0, (), (), 0)
        self._peers: dict[int, zmq.Socket] = {}
        self._held: dict[tuple[str, int], _HeldShard] = {}
        self._forming: dict[tuple[str, int], dict[int, tuple]] = {}
        self._transfers: set[tuple[str, int, int]] = set()
        self._has_reported_settled = True
        self._early: list[tuple] = []  # requests sent under a later view than this server's

    def run(self) -> None:
        """Serve until the job ends. Raises JobError if it fails."""
        while True:
            ready = dict(self._poller.poll(int(1000 * self._member.pause)))
            if self._member.socket in ready:
                for header in self._member.receive():
                    if header["do"] == "stop":
                        return
                    self._handle(header)
            for number, peer in list(self._peers.items()):
                while peer in ready and self._peers.get(number) is peer:
                    try:
                        self._acknowledged(number, *wire.unpack(peer.recv_multipart(zmq.NOBLOCK)))
                    except wire.ProtocolError:
                        continue
                    except zmq.Again:
                        break
            if self._router in ready:
                self._listen()
            self._member.tick()

    def _listen(self) -> None:
        for _ in range(256):  # then messages of the scheduler are received
            try:
                identity, *frames = self._router.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            try:
                self._request(identity, *wire.unpack(frames))
            except wire.ProtocolError:
                continue

    # The scheduler.

    def _handle(self, header: dict) -> None:
        if header["do"] == "accepted":
            self._number = wire.number(header, "number")
        elif header["do"] == "view":
            self._change(views.read(header))
        elif header["do"] == "settled" and header.get("epoch") == self._view.epoch:
            self._settled = self._view
            for shard_id in [shard_id for shard_id in self._held if self._number not in self._view.owners(*shard_id)]:
                del self._held[shard_id]

    def _change(self, view: View) -> None:
        """Change to a new view.

        The first owner of a shard in the last settled view that remains sends it to the new owners.
        """
        if view.epoch <= self._view.epoch:
            return
        self._view, self._has_reported_settled = view, False
        for number in [number for number in self._peers if number not in view.addresses]:
            self._poller.unregister(self._peers[number])
            self._peers.pop(number).close()
        for number, address in view.servers:
            if number != self._number and number not in self._peers:
                self._peers[number] = self._sockets.connect(address, f"server-{self._number}-to-{number}".encode())
                self._poller.register(self._peers[number], zmq.POLLIN)
        self._transfers = set()
        for shard_id, held in list(self._held.items()):
            held.acked = {}
            owners = view.owners(*shard_id)
            responsible = next((each for each in self._settled.owners(*shard_id) if each in view.addresses), None)
            if self._number in (responsible, owners[0] if owners else None):
                self._transfers |= {(*shard_id, other) for other in owners if other != self._number}
                self._replicate(shard_id, held)
            self._drop_dead(held)
            self._progress(shard_id, held)
        for shard_id in list(self._forming):
            self._form(shard_id)
        early, self._early = self._early, []
        for each in early:
            try:
                self._request(*each)
            except wire.ProtocolError:
                continue
        self._report_settled()

    def _drop_dead(self, held: _HeldShard) -> None:
        held.pulls = {request: wants for request, wants in held.pulls.items() if wants[1] in self._view.workers}
        held.pushes = {push: request for push, request in held.pushes.items() if push[1] in self._view.workers}

    def _report_settled(self) -> None:
        if not self._transfers and not self._has_reported_settled:
            self._has_reported_settled = True
            self._member.send({"do": "settled", "epoch": self._view.epoch})

    # Replicas.

    def _replicate(self, shard_id: tuple[str, int], held: _HeldShard) -> None:
        header = {"do": "replicate", "epoch": self._view.epoch, **held.shard.header()}
        for other in self._view.owners(*shard_id):
            if other != self._number:
                self._peers[other].send_multipart(wire.pack(header, held.shard.frames()))

    def _acknowledged(self, number: int, header: dict, _frames) -> None:
        if header["do"] != "replicated" or header.get("epoch") != self._view.epoch:
            return
        shard_id = wire.text(header, "key"), wire.number(header, "index")
        held = self._held.get(shard_id)
        if held:
            held.acked[number] = max(held.acked.get(number, -1), wire.number(header, "sequence"))
            if held.acked[number] >= held.shard.sequence:
                self._transfers.discard((*shard_id, number))
            self._flush(shard_id, held)
        self._report_settled()

    def _store_replica(self, identity: bytes, header: dict, frames: list[bytes]) -> None:
        """Store a shard that its primary sent.

        Ignores those of an earlier view, so that a server declared lost changes nothing.
        """
        if wire.number(header, "epoch") < self._view.epoch:
            return
        shard = read_shard(header, frames)
        shard_id = shard.spec.key, shard.index
        held = self._held.get(shard_id)
        is_new = held is None or shard.sequence > held.shard.sequence
        if held is None:
            held = self._held[shard_id] = _HeldShard(shard)
        elif is_new:
            held.shard = shard
        if is_new and self._view.owners(*shard_id)[:1] == (self._number,):
            # This server became the primary before it had the shard. Answers wait for the replicas.
            self._replicate(shard_id, held)
        self._router.send_multipart([identity, *wire.pack({"do": "replicated", "epoch": header["epoch"], "key": shard_id[0], "index": shard_id[1],
                                                           "sequence": shard.sequence})])

    # Workers.

    def _request(self, identity: bytes, header: dict, frames: list[bytes]) -> None:
        if header["do"] == "replicate":
            return self._store_replica(identity, header, frames)
        epoch, request, rank = (wire.number(header, name) for name in ("epoch", "request", "rank"))
        shard_id = wire.text(header, "key"), wire.number(header, "index")
        if epoch > self._view.epoch:
            if len(self._early) < _MOST_PARKED:
                self._early.append((identity, header, frames))
            return None
        if rank not in self._view.workers or self._view.owners(*shard_id)[:1] != (self._number,):
            return None  # the worker repeats the request when it receives this view
        if header["do"] == "init":
            return self._init(shard_id, rank, identity, request, header, frames)
        held, number = self._held.get(shard_id), wire.number(header, "round")
        if held is None:
            return self._answer(identity, {"do": "refused", "request": request, "why": f"a part of key {shard_id[0]} is lost with the servers that "
                                           "stored it; give the scheduler more --replicas"})
        if header["do"] == "push":
            return self._push(shard_id, held, rank, number, identity, request, header, frames)
        if header["do"] == "pull":
            held.pulls[identity, request] = number, rank
            self._progress(shard_id, held)
        return None

    def _init(self, shard_id, rank, identity, request, header, frames) -> None:
        spec = read_spec(header.get("spec"))
        if spec.key != shard_id[0] or shard_id[1] >= spec.shards:
            raise wire.ProtocolError("spec")
        held = self._held.get(shard_id)
        if held is not None:
            before = dict(held.shard.clocks)
            start = held.shard.join(rank, self._view.workers)
            if before != held.shard.clocks:
                self._changed(shard_id, held)
            held.answers.append((held.shard.sequence, identity, {"do": "done", "request": request, "version": start}, None))
            return self._flush(shard_id, held)
        value = np.frombuffer(wire.frame(frames, spec.elements(shard_id[1]) * spec.type.itemsize), spec.type)
        self._forming.setdefault(shard_id, {})[rank] = spec, value, identity, request
        return self._form(shard_id)

    def _form(self, shard_id) -> None:
        """Create a shard, with the value of the lowest rank, once all workers have sent theirs."""
        came = {rank: each for rank, each in self._forming[shard_id].items() if rank in self._view.workers}
        if not came or any(rank not in came for rank in self._view.workers):
            return
        del self._forming[shard_id]
        spec, value, _, _ = came[min(came)]
        if shard_id in self._held:  # another server has sent it meanwhile
            held = self._held[shard_id]
        else:
            held = self._held[shard_id] = _HeldShard(Shard(spec, shard_id[1], value, self._view.workers))
            self._changed(shard_id, held)
        for _, _, identity, request in came.values():
            held.answers.append((held.shard.sequence, identity, {"do": "done", "request": request, "version": held.shard.version}, None))
        self._flush(shard_id, held)

    def _push(self, shard_id, held, rank, number, identity, request, header, frames) -> None:
        shard, value = held.shard, held.shard.read(header, frames)
        if shard.asynchronous:
            if shard.step(rank, number, value, self._view.optimizer):
                self._changed(shard_id, held)
            held.answers.append((shard.sequence, identity, {"do": "done", "request": request}, None))
            return self._progress(shard_id, held)
        if number > shard.version + _AHEAD:
            raise wire.ProtocolError("round")
        held.pushes[number, rank] = identity, request
        shard.contribute(rank, number, wire.text(header, "op"), value)
        return self._progress(shard_id, held)

    def _changed(self, shard_id, held: _HeldShard) -> None:
        self._replicate(shard_id, held)

    def _progress(self, shard_id, held: _HeldShard) -> None:
        """End complete rounds and answer the requests that waited for them."""
        shard, workers = held.shard, self._view.workers
        if self._view.owners(*shard_id)[:1] != (self._number,):
            return
        while not shard.asynchronous and shard.advance(workers, self._view.optimizer):
            self._changed(shard_id, held)
        for push in sorted(push for push in held.pushes if push[0] <= shard.version):
            identity, request = held.pushes.pop(push)
            answer = {"do": "done", "request": request}
            if shard.failed[0] == push[0]:
                answer = {"do": "refused", "request": request, "why": shard.failed[1]}
            held.answers.append((shard.sequence, identity, answer, None))
        for (identity, request), (number, _) in list(held.pulls.items()):
            if shard.may_read(number, workers):
                del held.pulls[identity, request]
                held.answers.append((shard.sequence, identity, {"do": "value", "request": request}, shard.value))
        self._flush(shard_id, held)

    def _flush(self, shard_id, held: _HeldShard) -> None:
        """Send the answers whose changes all replicas have acknowledged."""
        replicas = [other for other in self._view.owners(*shard_id) if other != self._number]
        safe = min((held.acked.get(other, -1) for other in replicas), default=math.inf)
        for sequence, identity, header, value in held.answers:
            if sequence <= safe:
                self._answer(identity, header, [] if value is None else [value.tobytes()])
        held.answers = [each for each in held.answers if each[0] > safe]

    def _answer(self, identity: bytes, header: dict, frames=()) -> None:
        self._router.send_multipart([identity, *wire.pack(header, frames)])
