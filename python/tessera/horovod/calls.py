# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The description of a call that ranks exchange, and its comparison between ranks."""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from collections.abc import Callable

from .arrays import Array
from .exceptions import CallError, HorovodInternalError

_BY_ROWS = ("allgather", "grouped_allgather", "alltoall")  # the first dimension may differ between ranks


@dataclasses.dataclass
class Call:
    """A call of one rank. All fields but `arrays` are sent to the others. error: why its arguments are invalid."""

    kind: str
    key: str  # identifies the same call on other ranks
    name: str = ""  # given by the user
    set: int = 0
    types: list[str] = dataclasses.field(default_factory=list)
    shapes: list[list[int]] = dataclasses.field(default_factory=list)
    op: str = ""
    root: int = -1
    prescale: float = 1.0
    postscale: float = 1.0
    splits: list[int] | None = None
    ranks: list[int] | None = None
    error: str = ""
    arrays: list[Array] = dataclasses.field(default_factory=list)

    def message(self) -> dict:
        """The fields that differ from their defaults, as sent to other ranks."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "arrays"}
        return {name: value for name, value in fields.items() if value != getattr(_DEFAULT, name, None)}

    def signature(self) -> str:
        """The part of a call that must be equal on all ranks."""
        fields = self.message() | {"key": "", "splits": None}
        if self.kind in _BY_ROWS:
            fields["shapes"] = [shape[1:] for shape in self.shapes]
        return json.dumps(fields, sort_keys=True)

    def __str__(self):
        text = f"{self.kind} '{self.name}'" if self.name else self.kind
        if self.types:
            parts = [f"{'x'.join(map(str, shape)) or 'scalar'} {kind}" for shape, kind in zip(self.shapes, self.types)]
            text += " of " + ", ".join(parts[:4]) + (f" and {len(parts) - 4} more" if len(parts) > 4 else "")
        if self.op:
            text += f" by {self.op}"
        if self.root >= 0:
            text += f" from rank {self.root}"
        if self.ranks is not None:
            text += f" of ranks {self.ranks}"
        scales = [f"{name} {value}" for name, value in (("prescale_factor", self.prescale), ("postscale_factor", self.postscale)) if value != 1]
        return text + (f" ({', '.join(scales)})" if scales else "")


_DEFAULT = Call("", "")


def disagreement(calls: dict[int, Call]) -> str | None:
    """Why the calls of ranks with the same key fail, as a message: an invalid argument or a difference.

    Returns None if they agree.
    """
    for rank, call in sorted(calls.items()):
        if call.error:
            return f"rank {rank}: {call.kind}{f' {call.name!r}' if call.name else ''}: {call.error}"
    if len({call.signature() for call in calls.values()}) > 1:
        return differ(calls)
    return None


def differ(calls: dict[int, Call]) -> str:
    """The message for calls that differ between ranks."""
    return "the ranks make different calls: " + "; ".join(f"rank {rank}: {call}" for rank, call in sorted(calls.items()))


class Handle:
    """A pending call; `synchronize` waits for its result."""

    def __init__(self, call: Call, finish: Callable[[list[Array], dict], object]):
        self.call, self._finish, self._done = call, finish, threading.Event()
        self._output, self._error, self._lock, self.waiting_since = None, None, threading.Lock(), None
        self._result, self._is_finished = None, False
        self.on_end: Callable[[], None] | None = None  # called once, by the exchange's thread

    def complete(self, arrays: list[Array], more: dict) -> None:
        """Set the result. Called by the exchange's thread."""
        self._output = arrays, more
        self._end()

    def fail(self, text: str, lost: bool = False) -> None:
        """Set an error. lost: the cause is the loss of a rank (HorovodInternalError instead of CallError)."""
        self._error = HorovodInternalError if lost else CallError, text
        self._end()

    def _end(self) -> None:
        if self.on_end:
            self.on_end()
        self._done.set()

    def is_completed(self) -> bool:
        """Whether the call has ended, also by an error. Does not wait."""
        return self._done.is_set()

    def wait(self):
        """Wait for the call and return its result. Raises CallError or HorovodInternalError."""
        if not self._done.is_set():
            self.waiting_since = time.monotonic()
        self._done.wait()
        if self._error:
            kind, text = self._error
            raise kind(text)
        with self._lock:
            if not self._is_finished:
                self._result, self._is_finished = self._finish(*self._output), True
        return self._result

    def __repr__(self):
        return f"<Handle of {self.call}, {'completed' if self.is_completed() else 'pending'}>"
