# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A server: keeps shards, combines what workers push, and sends each change to the replicas before it answers."""

from __future__ import annotations

import math

import numpy as np
import zmq

from . import view as views
from . import wire
from .member import Member
from .shard import Shard, Spec, read_shard, read_spec
from .view import View

_AHEAD = 1 << 10  # rounds that a worker may be ahead
_MOST_PARKED = 1 << 20


class _Held:
    """A shard with those who wait for it."""

    def __init__(self, shard: Shard):
        self.shard = shard
        self.acked: dict[int, int] = {}  # replica: the last sequence that it has
        self.answers: list = []  # (sequence, identity, request): sent when all replicas have that sequence
        self.pushes: dict[tuple[int, int], tuple] = {}  # (round, rank): (identity, request)
        self.pulls: dict[tuple[bytes, int], tuple] = {}  # (identity, request): (round, rank)


class Server:
    """`run` serves until the job ends."""

    def __init__(self, sockets: wire.Sockets, member: Member, router: zmq.Socket):
        self._sockets, self._member, self._router = sockets, member, router
        self._poller = zmq.Poller()
        for each in (member.socket, router):
            self._poller.register(each, zmq.POLLIN)
        self._number = -1
        self._view, self._settled = View(0, (), (), 0), View(0, (), (), 0)
        self._peers: dict[int, zmq.Socket] = {}
        self._held: dict[tuple[str, int], _Held] = {}
        self._forming: dict[tuple[str, int], dict[int, tuple]] = {}
        self._transfers: set[tuple[str, int, int]] = set()
        self._has_said_settled = True
        self._early: list[tuple] = []  # requests of a later view

    def run(self) -> None:
        while True:
            ready = dict(self._poller.poll(int(1000 * self._member.pause)))
            if self._member.socket in ready:
                for header in self._member.receive():
                    if header["do"] == "stop":
                        return
                    self._obey(header)
            for number, peer in list(self._peers.items()):
                while peer in ready and self._peers.get(number) is peer:
                    try:
                        self._acknowledged(number, *wire.unpack(peer.recv_multipart(zmq.NOBLOCK)))
                    except wire.Garbage:
                        continue
                    except zmq.Again:
                        break
            if self._router in ready:
                self._listen()
            self._member.tick()

    def _listen(self) -> None:
        for _ in range(256):  # the scheduler is heard in between
            try:
                identity, *frames = self._router.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            try:
                self._request(identity, *wire.unpack(frames))
            except wire.Garbage:
                continue

    # The scheduler.

    def _obey(self, header: dict) -> None:
        if header["do"] == "accepted":
            self._number = wire.number(header, "number")
        elif header["do"] == "view":
            self._change(views.read(header))
        elif header["do"] == "settled" and header.get("epoch") == self._view.epoch:
            self._settled = self._view
            for place in [place for place in self._held if self._number not in self._view.owners(*place)]:
                del self._held[place]

    def _change(self, view: View) -> None:
        """Another membership. The first of a shard's owners in the last settled view who is still there sends it to the new owners."""
        if view.epoch <= self._view.epoch:
            return
        self._view, self._has_said_settled = view, False
        for number in [number for number in self._peers if number not in view.addresses]:
            self._poller.unregister(self._peers[number])
            self._peers.pop(number).close()
        for number, address in view.servers:
            if number != self._number and number not in self._peers:
                self._peers[number] = self._sockets.connect(address, f"server-{self._number}-to-{number}".encode())
                self._poller.register(self._peers[number], zmq.POLLIN)
        self._transfers = set()
        for place, held in list(self._held.items()):
            held.acked = {}
            owners = view.owners(*place)
            responsible = next((each for each in self._settled.owners(*place) if each in view.addresses), None)
            if self._number in (responsible, owners[0] if owners else None):
                self._transfers |= {(*place, other) for other in owners if other != self._number}
                self._replicate(place, held)
            self._drop_dead(held)
            self._progress(place, held)
        for place in list(self._forming):
            self._form(place)
        early, self._early = self._early, []
        for each in early:
            try:
                self._request(*each)
            except wire.Garbage:
                continue
        self._say_settled()

    def _drop_dead(self, held: _Held) -> None:
        held.pulls = {request: wants for request, wants in held.pulls.items() if wants[1] in self._view.workers}
        held.pushes = {push: request for push, request in held.pushes.items() if push[1] in self._view.workers}

    def _say_settled(self) -> None:
        if not self._transfers and not self._has_said_settled:
            self._has_said_settled = True
            self._member.send({"do": "settled", "epoch": self._view.epoch})

    # Replicas.

    def _replicate(self, place: tuple[str, int], held: _Held) -> None:
        header = {"do": "replicate", "epoch": self._view.epoch, **held.shard.header()}
        for other in self._view.owners(*place):
            if other != self._number:
                self._peers[other].send_multipart(wire.pack(header, held.shard.frames()))

    def _acknowledged(self, number: int, header: dict, _frames) -> None:
        if header["do"] != "replicated" or header.get("epoch") != self._view.epoch:
            return
        place = wire.text(header, "key"), wire.number(header, "index")
        held = self._held.get(place)
        if held:
            held.acked[number] = max(held.acked.get(number, -1), wire.number(header, "sequence"))
            if held.acked[number] >= held.shard.sequence:
                self._transfers.discard((*place, number))
            self._flush(place, held)
        self._say_settled()

    def _take(self, identity: bytes, header: dict, frames: list[bytes]) -> None:
        """A shard of the primary; one of an earlier view is refused, so that a server that was taken for dead changes nothing."""
        if wire.number(header, "epoch") < self._view.epoch:
            return
        shard = read_shard(header, frames)
        place = shard.spec.key, shard.index
        held = self._held.get(place)
        is_new = held is None or shard.sequence > held.shard.sequence
        if held is None:
            held = self._held[place] = _Held(shard)
        elif is_new:
            held.shard = shard
        if is_new and self._view.owners(*place)[:1] == (self._number,):
            self._replicate(place, held)  # it became the primary before it had the shard; answers wait for what replicas confirm
        self._router.send_multipart([identity, *wire.pack({"do": "replicated", "epoch": header["epoch"], "key": place[0], "index": place[1],
                                                           "sequence": shard.sequence})])

    # Workers.

    def _request(self, identity: bytes, header: dict, frames: list[bytes]) -> None:
        if header["do"] == "replicate":
            return self._take(identity, header, frames)
        epoch, request, rank = (wire.number(header, name) for name in ("epoch", "request", "rank"))
        place = wire.text(header, "key"), wire.number(header, "index")
        if epoch > self._view.epoch:
            if len(self._early) < _MOST_PARKED:
                self._early.append((identity, header, frames))
            return None
        if rank not in self._view.workers or self._view.owners(*place)[:1] != (self._number,):
            return None  # the worker asks again when it has heard of this view
        if header["do"] == "init":
            return self._init(place, rank, identity, request, header, frames)
        held, number = self._held.get(place), wire.number(header, "round")
        if held is None:
            return self._answer(identity, {"do": "refused", "request": request, "why": f"a part of key {place[0]} is lost with the servers that "
                                           "had it; give the scheduler more --replicas"})
        if header["do"] == "push":
            return self._push(place, held, rank, number, identity, request, header, frames)
        if header["do"] == "pull":
            held.pulls[identity, request] = number, rank
            self._progress(place, held)
        return None

    def _init(self, place, rank, identity, request, header, frames) -> None:
        spec = read_spec(header.get("spec"))
        if spec.key != place[0] or place[1] >= spec.shards:
            raise wire.Garbage("spec")
        held = self._held.get(place)
        if held is not None:
            before = dict(held.shard.clocks)
            start = held.shard.join(rank, self._view.workers)
            if before != held.shard.clocks:
                self._changed(place, held)
            held.answers.append((held.shard.sequence, identity, {"do": "done", "request": request, "version": start}, None))
            return self._flush(place, held)
        value = np.frombuffer(wire.frame(frames, spec.elements(place[1]) * spec.type.itemsize), spec.type)
        self._forming.setdefault(place, {})[rank] = spec, value, identity, request
        return self._form(place)

    def _form(self, place) -> None:
        """Makes a shard when all workers have come, with the value of the lowest rank."""
        came = {rank: each for rank, each in self._forming[place].items() if rank in self._view.workers}
        if not came or any(rank not in came for rank in self._view.workers):
            return
        del self._forming[place]
        spec, value, _, _ = came[min(came)]
        if place in self._held:  # it came from another server meanwhile
            held = self._held[place]
        else:
            held = self._held[place] = _Held(Shard(spec, place[1], value, self._view.workers))
            self._changed(place, held)
        for _, _, identity, request in came.values():
            held.answers.append((held.shard.sequence, identity, {"do": "done", "request": request, "version": held.shard.version}, None))
        self._flush(place, held)

    def _push(self, place, held, rank, number, identity, request, header, frames) -> None:
        shard, value = held.shard, held.shard.read(header, frames)
        if shard.asynchronous:
            if shard.step(rank, number, value, self._view.optimizer):
                self._changed(place, held)
            held.answers.append((shard.sequence, identity, {"do": "done", "request": request}, None))
            return self._progress(place, held)
        if number > shard.version + _AHEAD:
            raise wire.Garbage("round")
        held.pushes[number, rank] = identity, request
        shard.contribute(rank, number, wire.text(header, "op"), value)
        return self._progress(place, held)

    def _changed(self, place, held: _Held) -> None:
        self._replicate(place, held)

    def _progress(self, place, held: _Held) -> None:
        """Ends rounds, and answers who waited for them."""
        shard, workers = held.shard, self._view.workers
        if self._view.owners(*place)[:1] != (self._number,):
            return
        while not shard.asynchronous and shard.advance(workers, self._view.optimizer):
            self._changed(place, held)
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
        self._flush(place, held)

    def _flush(self, place, held: _Held) -> None:
        """Sends the answers about what all replicas have."""
        replicas = [other for other in self._view.owners(*place) if other != self._number]
        safe = min((held.acked.get(other, -1) for other in replicas), default=math.inf)
        for sequence, identity, header, value in held.answers:
            if sequence <= safe:
                self._answer(identity, header, [] if value is None else [value.tobytes()])
        held.answers = [each for each in held.answers if each[0] > safe]

    def _answer(self, identity: bytes, header: dict, frames=()) -> None:
        self._router.send_multipart([identity, *wire.pack(header, frames)])
