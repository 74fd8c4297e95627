# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints of a training loop: restored at the start, saved every so many steps, and saved once more when SIGTERM asks to stop."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import sys
import threading

import numpy as np

from .. import distributed
from ..errors import ArgumentError
from ..source import entry, refuse
from . import folder as folders, meeting
from .errors import CheckpointError, located
from .loading import Checkpoint, load_checkpoint
from .saving import Save, save_checkpoint

STOP = ".stop"
TERMINATED = 128 + signal.SIGTERM


class CheckpointManager:
    """The checkpoints of one training loop in `folder`:

        manager = CheckpointManager("run", every=100)
        loaded = manager.restore(state)                      # None where there is no checkpoint
        state, begin = (loaded.state, loaded.step) if loaded else (state, 0)
        for step in range(begin, steps):
            state = train(state, batch(step))
            manager.after(step + 1, state)

    Every rank of a job makes one and calls it alike. `options` are those of save_checkpoint. SIGTERM is caught while the manager
    lives: the next call of `after` on which all ranks agree saves, and raises SystemExit(143), the code of a process that SIGTERM
    ended. Ranks agree by their process group where there is one, else by a file in the folder; the file needs ranks that are
    at most one step apart, as a collective in each step makes them, and a file system that shows new files at once.

    Raises ArgumentError for `every` below 1.
    """

    @entry
    def __init__(self, folder, every: int = 1, **options):
        if type(every) is not int or every < 1:
            raise refuse(ArgumentError, f"every {every!r} of CheckpointManager is not a positive number of steps")
        self.folder, self.every, self._options = os.path.abspath(os.fspath(folder)), every, options
        self._asked, self._before, self._stop = False, None, os.path.join(self.folder, STOP)
        if meeting.job(False).rank == 0:  # of a job that was killed while it stopped; other ranks look behind the first step
            self._forget()
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, *_) -> None:
        self._asked = True

    def close(self) -> None:
        """Hands SIGTERM back to whoever had it."""
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)
            self._before = None

    def __enter__(self) -> CheckpointManager:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    @entry
    @located
    def restore(self, like, **options) -> Checkpoint | None:
        """The newest checkpoint, as load_checkpoint; None where there is none."""
        return load_checkpoint(self.folder, like, **options) if folders.checkpoints(self.folder) else None

    @entry
    @located
    def after(self, step: int, state, **options) -> Save | None:
        """Called behind step number `step`: saves when it is due, and saves and ends the process when SIGTERM has come."""
        stops = self._stops(step)
        saved = None
        if stops or step % self.every == 0:
            saved = save_checkpoint(self.folder, state, step, **{**self._options, **options})
        if stops:
            saved.wait()
            if meeting.job(False).rank == 0:
                self._forget()
            sys.exit(TERMINATED)
        return saved

    def _stops(self, step: int) -> bool:
        """Whether all ranks stop behind this step."""
        job = meeting.job(False)
        if job.size == 1:
            return self._asked
        if job.group:
            asked = np.array([self._asked], np.int32)
            distributed.all_reduce(asked, distributed.ReduceOp.MAX)
            return bool(asked[0])
        if self._asked and not os.path.exists(self._stop):
            # The others may be in the next step already, and see the file behind it.
            _create(self._stop, str(step + 1))
        last = _read(self._stop)
        if last is None or step < last:
            return False
        if step > last:
            raise CheckpointError(f"{self.folder}: {job.me} is at step {step}, and another rank stops behind step {last}; let ranks meet in each step, "
                                  "or call init_process_group")
        return True

    def _forget(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._stop)


def _create(path: str, text: str) -> None:
    """A file whose content is there when its name is; the first one to come makes it."""
    part = f"{path}.{secrets.token_hex(4)}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(part, "x", encoding="ascii") as file:
        file.write(text)
    with contextlib.suppress(FileExistsError):
        os.link(part, path)
    os.unlink(part)


def _read(path: str) -> int | None:
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except FileNotFoundError:
        return None
