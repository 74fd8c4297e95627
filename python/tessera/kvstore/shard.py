# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of a shard on a server and its transitions, without sockets."""

from __future__ import annotations

import dataclasses

import numpy as np

from .. import dtypes
from . import compression, updates, wire
from .store import OPS, TYPES, combine

_MOST_SHARDS = 1 << 24


@dataclasses.dataclass(frozen=True)
class Spec:
    """The properties of a key, equal on all workers."""

    key: str
    dtype: str
    shape: tuple[int, ...]
    param_only: bool
    part: int  # number of elements of a shard; the last may have fewer
    staleness: int | None  # None: synchronous; -1: asynchronous, unbounded

    @property
    def type(self) -> np.dtype:
        return dtypes.dtype(self.dtype).numpy

    @property
    def count(self) -> int:
        """The number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def shards(self) -> int:
        """The number of shards."""
        return max(1, -(-self.count // self.part))

    def elements(self, index: int) -> int:
        """The number of elements of shard `index`."""
        return min(self.part, self.count - index * self.part)

    def header(self) -> dict:
        """The fields as JSON."""
        return dataclasses.asdict(self)

    def __str__(self):
        return (f"key {self.key} as {self.dtype} of shape {list(self.shape)}" + (" with param_only" if self.param_only else "")
                + ("" if self.staleness is None else f", asynchronous with staleness {self.staleness}" if self.staleness >= 0 else ", asynchronous"))


def read_spec(header) -> Spec:
    """The spec in a message's header. Raises ProtocolError if it is invalid."""
    if not isinstance(header, dict):
        raise wire.ProtocolError("spec")
    shape, staleness = header.get("shape"), header.get("staleness")
    if (header.get("dtype") not in TYPES or not isinstance(shape, list) or len(shape) > 32 or not isinstance(header.get("param_only"), bool)
            or not all(isinstance(n, int) and 0 <= n < 1 << 40 for n in shape)):
        raise wire.ProtocolError("spec")
    if staleness is not None:
        wire.number(header, "staleness", -1)
    spec = Spec(wire.text(header, "key"), header["dtype"], tuple(shape), header["param_only"], wire.number(header, "part", 1), staleness)
    if spec.part * spec.type.itemsize > wire.LARGEST_SHARD or spec.shards > _MOST_SHARDS:
        raise wire.ProtocolError("spec")
    return spec


class Shard:
    """A part of the array of a key. `version` counts completed rounds, `sequence` all changes."""

    def __init__(self, spec: Spec, index: int, value: np.ndarray, workers=()):
        self.spec, self.index, self.value = spec, index, value
        self.version = self.sequence = self.count = 0
        self.slots: dict[str, np.ndarray] = {}
        self.clocks: dict[int, int] = {rank: 0 for rank in workers}  # asynchronous: number of pushes of each worker
        self.failed: tuple[int, str] = (0, "")  # the last round whose ops differ, and the message
        self._pending: dict[int, dict[int, tuple[str, np.ndarray]]] = {}

    @property
    def asynchronous(self) -> bool:
        """Whether pushes are applied as they arrive, within the staleness of the key."""
        return self.spec.staleness is not None and not self.spec.param_only

    def read(self, header: dict, frames: list[bytes]) -> np.ndarray:
        """The contribution of a push. Raises ProtocolError if its size differs from this shard's."""
        count, kind = self.spec.elements(self.index), self.spec.type
        if "threshold" not in header:
            return np.frombuffer(wire.frame(frames, count * kind.itemsize), kind)
        limit = wire.real(header, "threshold")
        if limit <= 0 or kind.kind in "iu":
            raise wire.ProtocolError("threshold")
        return compression.decode(np.frombuffer(wire.frame(frames, compression.size(count)), np.uint8), count, kind, limit)

    def contribute(self, rank: int, number: int, op: str, value: np.ndarray) -> None:
        """Synchronous: record a worker's contribution to round `number`; no effect if the round is over."""
        if op not in OPS:
            raise wire.ProtocolError("op")
        if number > self.version:
            self._pending.setdefault(number, {})[rank] = op, value

    def advance(self, workers: tuple[int, ...], optimizer: dict | None) -> bool:
        """Synchronous: end the next round if all workers have contributed, combining in the order of ranks.

        Contributions of workers that are gone are dropped. Returns whether a round ended.
        """
        given = self._pending.get(self.version + 1, {})
        if not workers or any(rank not in given for rank in workers):
            return False
        del self._pending[self.version + 1]
        self.version, self.sequence = self.version + 1, self.sequence + 1
        ops = {rank: given[rank][0] for rank in workers}
        if len(set(ops.values())) > 1:
            listed = ", ".join(f"worker {rank} with {op}" for rank, op in ops.items())
            self.failed = self.version, f"the workers push to key {self.spec.key} with different ops: {listed}; its value is unchanged"
            return True
        self._change(combine(ops[workers[0]], [given[rank][1] for rank in workers]), optimizer)
        return True

    def step(self, rank: int, number: int, value: np.ndarray, optimizer: dict | None) -> bool:
        """Asynchronous: apply push `number` of a worker. Returns False if it was applied before."""
        if number <= self.clocks.get(rank, 0):
            return False
        self.clocks[rank], self.sequence, self.version = number, self.sequence + 1, self.version + 1
        self._change(value, optimizer)
        return True

    def _change(self, total: np.ndarray, optimizer: dict | None) -> None:
        if optimizer is None or self.spec.param_only:
            self.value = total
            return
        self.count += 1
        self.value = updates.apply(optimizer, self.value, total, self.slots, self.count)

    def join(self, rank: int, workers: tuple[int, ...]) -> int:
        """The number of rounds that a worker which joins now counts as having pushed."""
        if not self.asynchronous:
            return self.version
        return self.clocks.setdefault(rank, min((self.clocks[other] for other in workers if other in self.clocks), default=0))

    def may_read(self, number: int, workers: tuple[int, ...]) -> bool:
        """Whether a worker that has pushed `number` rounds may read the value now."""
        if not self.asynchronous:
            return self.version >= number
        return self.spec.staleness < 0 or all(self.clocks[rank] >= number - self.spec.staleness for rank in workers if rank in self.clocks)

    # Serialization for replicas.

    def header(self) -> dict:
        """What a replica needs besides the frames, as JSON."""
        return {"spec": self.spec.header(), "index": self.index, "version": self.version, "sequence": self.sequence, "count": self.count,
                "slots": sorted(self.slots), "clocks": sorted(self.clocks.items()), "failed": self.failed}

    def frames(self) -> list[bytes]:
        """The bytes of the value, then of the optimizer's slots by name."""
        return [self.value.tobytes(), *(self.slots[name].tobytes() for name in sorted(self.slots))]


def read_shard(header: dict, frames: list[bytes]) -> Shard:
    """The shard in a message of another server. Raises ProtocolError if it is invalid."""
    spec = read_spec(header.get("spec"))
    index = wire.number(header, "index", 0, spec.shards - 1)
    count, kind = spec.elements(index), spec.type
    names, clocks, failed = header.get("slots"), header.get("clocks"), header.get("failed")
    if not isinstance(names, list) or not set(map(str, names)) <= {"velocity", "m", "v"} or len(frames) != 1 + len(names):
        raise wire.ProtocolError("slots")
    if not isinstance(clocks, list) or not all(isinstance(each, list) and len(each) == 2 and all(isinstance(n, int) for n in each)
                                               for each in clocks):
        raise wire.ProtocolError("clocks")
    if not isinstance(failed, list) or len(failed) != 2 or not isinstance(failed[0], int) or not isinstance(failed[1], str):
        raise wire.ProtocolError("failed")
    made = Shard(spec, index, np.frombuffer(wire.frame(frames[:1], count * kind.itemsize), kind))
    made.version, made.sequence, made.count = (wire.number(header, name) for name in ("version", "sequence", "count"))
    wide = updates.wide(kind)
    made.slots = {name: np.frombuffer(wire.frame([data], count * wide.itemsize), wide) for name, data in zip(names, frames[1:])}
    made.clocks, made.failed = {rank: clock for rank, clock in clocks}, (failed[0], failed[1])
    return made
