# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The background thread of each process, which exchanges calls and runs those that all ranks of a set have made.

It works in rounds. In each, all ranks exchange their new calls. All ranks keep the same table of calls by key, and so
run the same calls in the same order, even if ranks make named calls in different orders.
"""

from __future__ import annotations

import dataclasses
import json
import threading
import time

import numpy as np

from ..distributed import DistributedError, ProcessGroup, all_gather, all_gather_into_tensor
from . import execution
from .calls import Call, Handle, differ, disagreement

_LONGEST_REST = 0.004  # longest pause between rounds without calls, in seconds
UNNAMED = "unnamed "  # prefix of the keys of calls without a name
_DEADLOCK = 2  # seconds after which ranks that all wait for each other fail


@dataclasses.dataclass
class _Entry:
    """The calls with one key by rank, and the seconds that ranks have waited for it."""

    calls: dict[int, Call] = dataclasses.field(default_factory=dict)
    waits: dict[int, int] = dataclasses.field(default_factory=dict)


class Exchange:
    """The thread of this process and its table of calls. control: a group of all ranks, used only for the rounds."""

    def __init__(self, control: ProcessGroup):
        self.control, self.rank, self.size = control, control.global_rank, control.size()
        self.sets: dict[int, ProcessGroup | None] = {0: control}
        self.members: dict[int, list[int]] = {0: list(control.ranks)}
        self.ended: str | None = None  # the reason, once rounds have ended
        self._counts: dict[int, int] = {}
        self._lock, self._wake = threading.Lock(), threading.Event()
        self._new: list[Handle] = []
        self._handles: dict[tuple[int, str], Handle] = {}
        self._reported: dict[tuple[int, str], int] = {}
        self._entries: dict[tuple[int, str], _Entry] = {}
        self._joined: dict[int, int] = {}  # in the order of joining: rank -> number of unnamed calls it has made
        self._stopping = False
        self._thread = threading.Thread(target=self._main, name="tessera.horovod", daemon=True)
        self._thread.start()

    def submit(self, handle: Handle) -> Handle:
        """Submit a call of this rank. Returns its handle."""
        call = handle.call
        with self._lock:
            if not call.key:
                self._counts[call.set] = self._counts.get(call.set, 0) + 1
                call.key = f"{UNNAMED}{self._counts[call.set]}"
            if self.ended is not None:
                handle.fail(self.ended, lost=True)
                return handle
            if (call.set, call.key) in self._handles:
                handle.fail(f"a call '{call.name}' is already pending; concurrent calls must have different names")
                return handle
            self._handles[call.set, call.key] = handle
            self._new.append(handle)
        self._wake.set()
        return handle

    def unnamed(self) -> int:
        """The number of calls without a name that this rank has made."""
        return self._counts.get(0, 0)

    def stop(self) -> None:
        """End the rounds of all ranks."""
        self._stopping = True
        self._wake.set()
        self._thread.join()

    # Methods of the thread.

    def _main(self) -> None:
        idle = 0
        try:
            while self.ended is None:
                busy = self._round()
                idle = 0 if busy else idle + 1
                if not busy and not self._new:
                    self._wake.wait(min(0.0005 * (1 + idle // 8), _LONGEST_REST))
                self._wake.clear()
        except DistributedError as error:
            self._end(str(error))
        except BaseException as error:  # otherwise callers would wait forever
            self._end(f"{type(error).__name__}: {error}")

    def _end(self, reason: str) -> None:
        with self._lock:
            self.ended = reason
            handles, self._handles = list(self._handles.values()), {}
        for handle in handles:
            handle.fail(f"{handle.call}: {reason}", lost=True)

    def _round(self) -> bool:
        """Run one round. Returns whether any rank sent a message."""
        own = self._message()
        sizes = np.zeros(self.size, np.int64)
        all_gather_into_tensor(sizes, np.array([len(own)]), group=self.control)
        if not sizes.any():
            return False
        parts = [np.empty(size, np.uint8) for size in sizes]
        all_gather(parts, np.frombuffer(own, np.uint8), group=self.control)
        messages = [json.loads(part.tobytes()) if part.size else {} for part in parts]
        for rank, message in enumerate(messages):
            self._receive(rank, message)
        self._run_complete()
        self._fail_stalled()
        stopping = [rank for rank, message in enumerate(messages) if message.get("stops")]
        if stopping:
            self._end(f"rank {stopping[0]} has shut down")
        return True

    def _message(self) -> bytes:
        with self._lock:
            new, self._new = self._new, []
            handles = list(self._handles.items())
        message: dict = {}
        if new:
            message["new"] = [handle.call.message() for handle in new]
        now, waits = time.monotonic(), []
        for key, handle in handles:
            seconds = int(now - handle.waiting_since) if handle.waiting_since is not None else 0
            if seconds > self._reported.get(key, 0):
                self._reported[key] = seconds
                waits.append([*key, seconds])
        if waits:
            message["waits"] = waits
        if self._stopping:
            message["stops"] = True
        return json.dumps(message).encode() if message else b""

    def _receive(self, rank: int, message: dict) -> None:
        for fields in message.get("new", ()):
            call = Call(**{"kind": "", "key": "", **fields})
            if rank == self.rank:
                call = self._handles[call.set, call.key].call
            if call.kind == "join":
                self._joined[rank] = call.root
            else:
                self._entries.setdefault((call.set, call.key), _Entry()).calls[rank] = call
        for set_, key, seconds in message.get("waits", ()):
            if (set_, key) in self._entries:
                self._entries[set_, key].waits[rank] = seconds

    def _run_complete(self) -> None:
        for key, entry in list(self._entries.items()):
            members = self.members.get(key[0], [])
            if all(rank in entry.calls or rank in self._joined for rank in members):
                del self._entries[key]
                self._run(key, entry.calls, [rank for rank in members if rank not in entry.calls])
        if len(self._joined) == self.size:
            last = list(self._joined)[-1]
            with self._lock:
                self._counts[0] = max(self._joined.values())
            self._joined = {}
            self._remove((0, "join")).complete([], {"last": last})

    def _remove(self, key) -> Handle | None:
        self._reported.pop(key, None)
        with self._lock:
            return self._handles.pop(key, None)

    def _fail(self, keys, text: str) -> None:
        for key in keys:
            del self._entries[key]
            if handle := self._remove(key):
                handle.fail(text)
            if key[1].startswith(UNNAMED):  # ranks continue counting after it
                with self._lock:
                    self._counts[key[0]] = max(self._counts.get(key[0], 0), int(key[1].removeprefix(UNNAMED)))

    def _run(self, key, calls: dict[int, Call], joined: list[int]) -> None:
        handle = self._remove(key)
        wrong = disagreement(calls) or execution.refusal(calls, self.members[key[0]], joined)
        if wrong:
            if handle:
                handle.fail(wrong)
            return
        call = calls[min(calls)]
        if call.kind == "add_process_set":
            handle.complete([], {"set": self._add(call.ranks)})
        elif call.kind == "remove_process_set":
            removed = self.sets.pop(call.root, None)
            self.members.pop(call.root, None)
            if removed:
                removed.handle.close()
            handle.complete([], {})
        elif self.rank in self.members[key[0]]:
            try:
                output, more = execution.run(calls, self.rank, self.sets[key[0]])
            except DistributedError as error:
                if handle:
                    handle.fail(f"{call}: {error}", lost=True)
                raise
            if handle:
                handle.complete(output, more)

    def _add(self, ranks: list[int]) -> int:
        for number, members in self.members.items():
            if members == ranks:
                return number
        with ProcessGroup.errors():
            made = self.control.handle.make(ranks, self.control.timeout)
        number = max(self.members) + 1
        self.members[number] = ranks
        self.sets[number] = None if made is None else ProcessGroup(made, self.rank, self.control.backend, self.control.timeout)
        return number

    def _fail_stalled(self) -> None:
        """Fail calls that cannot complete, because all ranks wait for calls of each other, and calls past the timeout."""
        waiting: dict[int, tuple] = {}
        for key, entry in self._entries.items():
            for rank, seconds in entry.waits.items():
                if seconds >= _DEADLOCK and rank in entry.calls:
                    waiting.setdefault(rank, key)
        if self._entries and len(waiting) + len(self._joined) == self.size:
            text = differ({rank: self._entries[key].calls[rank] for rank, key in waiting.items()})
            self._fail(set(waiting.values()), text)
        for key, entry in list(self._entries.items()):
            if max(entry.waits.values(), default=0) >= self.control.timeout:
                missing = [rank for rank in self.members[key[0]] if rank not in entry.calls and rank not in self._joined]
                text = f"{entry.calls[min(entry.calls)]}: it took too long; ranks {', '.join(map(str, missing))} have not called it"
                self._fail([key], text)
