# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of the job in this process, shared by the modules of this package."""

from __future__ import annotations

from .calls import Call, Handle
from .exceptions import NotInitializedError
from .exchange import Exchange


class Job:
    """The job that init() has created."""

    exchange: Exchange | None = None
    is_own = False  # whether init() created the process group
    places: list[tuple[int, int]] = []  # by rank: local rank, node
    timeline = None  # after start_timeline


def exchange() -> Exchange:
    """The exchange of this process. Raises NotInitializedError before init()."""
    if Job.exchange is None:
        raise NotInitializedError("tessera.horovod is not initialized; call hvd.init() first")
    return Job.exchange


def submit(call: Call, finish) -> Handle:
    """Start a call. `finish(arrays, more)` converts its output to the result."""
    handle = Handle(call, finish)
    if Job.timeline is not None:
        handle.on_end = Job.timeline.begin(call)
    return exchange().submit(handle)
