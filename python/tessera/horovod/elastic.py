# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elastic training: after the loss of a rank, the launcher restarts all ranks, and they continue from the last commit.

`commit` keeps a copy of the state in memory, and rank 0 writes it to a folder. When a rank is lost, the others end with
HorovodInternalError; `tessera launch --max_restarts N` restarts all, and `run` reads the commit on rank 0 and
broadcasts it. The folder is that of `run(folder=...)`, or a temporary one of the job, which is removed at its end.
"""

from __future__ import annotations

import copy
import functools
import os
import shutil
import tempfile
from collections.abc import Callable

import numpy as np

from .. import tree
from ..errors import ArgumentError
from . import basics
from .collectives import allreduce
from .exceptions import HorovodInternalError, HostsUpdatedInterrupt
from .functions import broadcast_object
from .job import Job, exchange
from .objects import decode, encode
from .reductions import Max

_FILE = "commit"


class State:
    """The state of a training.

    Subclasses implement save, restore and sync, and values and set_values for commits in files.
    """

    def __init__(self):
        self._folder: str | None = None
        self._callbacks: list[Callable] = []
        self._updated, self._skips_sync = False, False

    def register_reset_callbacks(self, callbacks) -> None:
        """Add functions to call when training resumes after a restart, before the state is broadcast."""
        self._callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """Run the reset callbacks and `reset`; called when training resumes after a restart."""
        for callback in self._callbacks:
            callback()
        self.reset()

    def on_hosts_updated(self, timestamp=None, update_res=None) -> None:
        """Record that hosts have changed; the next check raises HostsUpdatedInterrupt on all ranks."""
        self._updated = True

    def commit(self) -> None:
        """Save the state, in memory and to the folder, and check for host updates. All ranks call it."""
        self.save()
        if self._folder is not None and exchange().rank == 0:
            _write(os.path.join(self._folder, _FILE), encode(self.values()))
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Raise HostsUpdatedInterrupt on all ranks if on_hosts_updated was called on one. All ranks call it."""
        if allreduce(np.array([self._updated], np.int32), op=Max, name="host updates")[0]:
            self._updated = False
            raise HostsUpdatedInterrupt(self._skips_sync)

    def save(self) -> None:
        """Keep a copy of the state in memory."""
        raise NotImplementedError

    def restore(self) -> None:
        """Restore the copy in memory."""
        raise NotImplementedError

    def sync(self) -> None:
        """Broadcast the state of rank 0 to all ranks, and save it."""
        raise NotImplementedError

    def values(self):
        """The values that a commit holds."""
        raise NotImplementedError

    def set_values(self, values) -> None:
        """Set the values of a commit."""
        raise NotImplementedError

    def reset(self) -> None:
        """Hook after a change of the ranks, before sync."""


def _write(path: str, data: bytes) -> None:
    """Write a file atomically."""
    with open(f"{path}.new", "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)


class ObjectState(State):
    """A state whose attributes are its keyword arguments, for example state.epoch; values as in broadcast_object."""

    def __init__(self, bcast_object=None, get_rank=None, **kwargs):
        super().__init__()
        self._names = list(kwargs)
        for name, value in kwargs.items():
            if hasattr(self, name):
                raise ArgumentError(f"attribute '{name}' of a state has the name of one of its methods; rename it")
            setattr(self, name, value)
        self._saved = copy.deepcopy(kwargs)

    def save(self) -> None:
        self._saved = copy.deepcopy({name: getattr(self, name) for name in self._names})

    def restore(self) -> None:
        for name, value in copy.deepcopy(self._saved).items():
            setattr(self, name, value)

    def sync(self) -> None:
        self.set_values(broadcast_object(self.values(), 0, "state"))
        self.save()

    def values(self):
        return {name: getattr(self, name) for name in self._names}

    def set_values(self, values) -> None:
        for name, value in values.items():
            setattr(self, name, value)


class TesseraState(ObjectState):
    """A state with a `model` (a tree of tensors), an `optimizer` state (from init()), and other values."""

    def __init__(self, model=None, optimizer=None, **kwargs):
        super().__init__(model=model, optimizer=optimizer, **kwargs)

    def values(self):
        values = super().values()
        return {**values, "model": [leaf.value for leaf in tree.flatten(values["model"])[0]]}

    def set_values(self, values) -> None:
        super().set_values({**values, "model": tree.rebuild(self.model, values["model"])})


def run(function: Callable | None = None, *, folder=None):
    """Decorate function(state, ...) to resume from the last commit. All ranks call it, after init().

    folder: where rank 0 writes commits, from which a later job continues, too. Without it, only restarts by `tessera
    launch` continue from commits.
    """
    if function is None:
        return functools.partial(run, folder=folder)

    @functools.wraps(function)
    def wrapped(state: State, *args, **kwargs):
        if not isinstance(state, State):
            raise ArgumentError(f"the first argument of '{function.__name__}' is {type(state).__name__}; expected a State of tessera.horovod.elastic")
        place = _load_commit(state, folder)
        skips = False
        while True:
            if not skips:
                state.sync()
            try:
                result = function(state, *args, **kwargs)
                _remove_commits(place, folder)
                return result
            except HorovodInternalError:
                state.restore()
                if Job.exchange is None or Job.exchange.ended is not None:
                    raise  # the launcher restarts all ranks
                skips = False
            except HostsUpdatedInterrupt as interrupt:
                skips = interrupt.skip_sync
            state.on_reset()
    return wrapped


def _load_commit(state: State, folder) -> str | None:
    """Load an existing commit into the state. Returns the folder of commits on rank 0, None on others."""
    place = None
    if basics.rank() == 0:
        job = os.environ.get("TESSERA_LAUNCH_ID")
        if folder is not None:
            place = os.fsdecode(folder)
        elif job:
            place = os.path.join(tempfile.gettempdir(), f"tessera-elastic-{os.getuid()}-{job[:32]}")
    found = False
    if place is not None:
        os.makedirs(place, mode=0o700, exist_ok=True)
        path = os.path.join(place, _FILE)
        if os.path.exists(path):
            with open(path, "rb") as file:
                state.set_values(decode(file.read()))
            found = True
    state._folder = place
    if broadcast_object(found, 0, "commit"):
        state.on_reset()
    return place


def _remove_commits(place: str | None, folder) -> None:
    """Remove the temporary commits of a job that has succeeded."""
    if place is not None and folder is None:
        shutil.rmtree(place, ignore_errors=True)
