# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A timeline of calls in the trace event format of Chrome and Perfetto."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable

from ..errors import ArgumentError
from .calls import Call
from .job import Job, exchange


class Timeline:
    """Writes one event per call of rank 0, from the call to its completion, with one row per name."""

    def __init__(self, file):
        self._file, self._lock, self._rows, self._start = file, threading.Lock(), {}, time.perf_counter()
        file.write("[\n")

    def begin(self, call: Call) -> Callable[[], None]:
        """Record the start of a call. Returns a function that records its end."""
        began = time.perf_counter()
        return lambda: self._write(call, began, time.perf_counter())

    def _write(self, call: Call, began: float, ended: float) -> None:
        with self._lock:
            if self._file.closed:
                return
            name = call.name or call.kind
            if name not in self._rows:
                self._rows[name] = len(self._rows)
                self._event({"name": "thread_name", "ph": "M", "args": {"name": name}}, name)
            micro = lambda seconds: round(seconds * 1e6, 3)
            self._event({"name": call.kind, "ph": "X", "ts": micro(began - self._start), "dur": micro(ended - began),
                         "args": {"bytes": sum(array.flat.nbytes for array in call.arrays)}}, name)

    def _event(self, event: dict, name: str) -> None:
        self._file.write(json.dumps({**event, "pid": 0, "tid": self._rows[name]}) + ",\n")

    def close(self) -> None:
        """Write the end of the file: a complete trace of Chrome's format."""
        with self._lock:
            self._file.write('{"name": "process_name", "ph": "M", "pid": 0, "args": {"name": "rank 0"}}\n]\n')
            self._file.close()


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Start recording the calls of rank 0 to a file for chrome://tracing or Perfetto; other ranks write nothing.

    mark_cycles has no effect, since there are no cycles. Raises ArgumentError if a timeline is already running.
    """
    here = exchange()
    if here.rank != 0:
        return
    if Job.timeline is not None:
        raise ArgumentError("a timeline is already running; call stop_timeline() first")
    Job.timeline = Timeline(open(file_path, "w", encoding="utf-8"))


def stop_timeline() -> None:
    """End the timeline, if there is one. shutdown() calls it."""
    timeline, Job.timeline = Job.timeline, None
    if timeline is not None:
        timeline.close()
