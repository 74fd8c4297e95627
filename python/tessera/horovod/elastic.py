# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training that goes on after a rank was lost: the launcher starts all ranks again, and they go on from the last commit.

`commit` keeps a copy of the state in memory, and rank 0 writes it to a folder. When a rank is lost, the others end with
HorovodInternalError; `tessera launch --max_restarts N` starts all again, and `run` reads the commit on rank 0 and sends it to all. The
folder is that of `run(folder=...)`, or one of the job in the folder for temporary files, which is removed at the end.
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
    """What training changes. Subclasses write save, restore, sync, and values and set_values for commits in files."""

    def __init__(self):
        self._folder: str | None = None
        self._callbacks: list[Callable] = []
        self._updated, self._skips_sync = False, False

    def register_reset_callbacks(self, callbacks) -> None:
        """Functions to call when training goes on after a restart, before the state is sent to all."""
        self._callbacks.extend(callbacks)

    def on_reset(self) -> None:
        for callback in self._callbacks:
            callback()
        self.reset()

    def on_hosts_updated(self, timestamp=None, update_res=None) -> None:
        """Says that hosts changed; the next check of all ranks raises HostsUpdatedInterrupt."""
        self._updated = True

    def commit(self) -> None:
        """Saves the state, to the folder too, and checks hosts. All ranks call it."""
        self.save()
        if self._folder is not None and exchange().rank == 0:
            _write(os.path.join(self._folder, _FILE), encode(self.values()))
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Raises HostsUpdatedInterrupt on all ranks when on_hosts_updated was called on one. All ranks call it."""
        if allreduce(np.array([self._updated], np.int32), op=Max, name="host updates")[0]:
            self._updated = False
            raise HostsUpdatedInterrupt(self._skips_sync)

    def save(self) -> None:
        raise NotImplementedError

    def restore(self) -> None:
        raise NotImplementedError

    def sync(self) -> None:
        raise NotImplementedError

    def values(self):
        """What a commit holds."""
        raise NotImplementedError

    def set_values(self, values) -> None:
        raise NotImplementedError

    def reset(self) -> None:
        pass


def _write(path: str, data: bytes) -> None:
    """All of it or nothing, also where the process is killed."""
    with open(f"{path}.new", "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)


class ObjectState(State):
    """Its arguments are its attributes: state.epoch, state.batch. Values are those of broadcast_object."""

    def __init__(self, bcast_object=None, get_rank=None, **kwargs):
        super().__init__()
        self._names = list(kwargs)
        for name, value in kwargs.items():
            if hasattr(self, name):
                raise ArgumentError(f"a state has no attribute '{name}': it is the name of one of its methods")
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
    """`model`, a tree of tensors (a Module, a dictionary), and `optimizer`, the state that init() returned, beside other values."""

    def __init__(self, model=None, optimizer=None, **kwargs):
        super().__init__(model=model, optimizer=optimizer, **kwargs)

    def values(self):
        values = super().values()
        return {**values, "model": [leaf.value for leaf in tree.flatten(values["model"])[0]]}

    def set_values(self, values) -> None:
        super().set_values({**values, "model": tree.rebuild(self.model, values["model"])})


def run(function: Callable | None = None, *, folder=None):
    """Wraps function(state, ...), which goes on where the state says. All ranks call it, after init().

    folder: where rank 0 writes commits; a job that is started later goes on from there, too. Without it commits are for restarts by
    `tessera launch` alone."""
    if function is None:
        return functools.partial(run, folder=folder)

    @functools.wraps(function)
    def wrapped(state: State, *args, **kwargs):
        if not isinstance(state, State):
            raise ArgumentError(f"the first argument of '{function.__name__}' is {type(state).__name__}; it is a State of tessera.horovod.elastic")
        place = _place(state, folder)
        skips = False
        while True:
            if not skips:
                state.sync()
            try:
                result = function(state, *args, **kwargs)
                _forget(place, folder)
                return result
            except HorovodInternalError:
                state.restore()
                if Job.exchange is None or Job.exchange.ended is not None:
                    raise  # the launcher starts all ranks again
                skips = False
            except HostsUpdatedInterrupt as interrupt:
                skips = interrupt.skip_sync
            state.on_reset()
    return wrapped


def _place(state: State, folder) -> str | None:
    """The folder of commits, which is read where there is one already. Only rank 0 has it."""
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


def _forget(place: str | None, folder) -> None:
    """Removes the commits of a job that has ended well, where the user named no folder."""
    if place is not None and folder is None:
        shutil.rmtree(place, ignore_errors=True)
