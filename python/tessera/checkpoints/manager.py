# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints of a training loop: restored at the start, saved every N steps, and saved on SIGTERM."""

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
from . import coordination, folder as folders
from .errors import CheckpointError, located
from .loading import Checkpoint, load_checkpoint
from .saving import Save, save_checkpoint

STOP = ".stop"
TERMINATED = 128 + signal.SIGTERM


class CheckpointManager:
    """The checkpoints of one training loop in `folder`, saved every `every` steps:

        manager = CheckpointManager("run", every=100)
        loaded = manager.restore(state)                      # None if there is no checkpoint
        state, begin = (loaded.state, loaded.step) if loaded else (state, 0)
        for step in range(begin, steps):
            state = train(state, batch(step))
            manager.after(step + 1, state)

    Every rank of a job creates one and makes the same calls. `options` are those of save_checkpoint. The manager
    handles SIGTERM: the next call of `after` on which all ranks agree saves and raises SystemExit(143), the exit code
    of a process that SIGTERM ended. Ranks agree through their process group, or else through a file in the folder. The
    file requires ranks that are at most one step apart (as with a collective in each step) and a file system that shows
    new files at once.

    Raises ArgumentError for `every` below 1.
    """

    @entry
    def __init__(self, folder, every: int = 1, **options):
        if type(every) is not int or every < 1:
            raise refuse(ArgumentError, f"every {every!r} of CheckpointManager is not a positive number of steps")
        self.folder, self.every, self._options = os.path.abspath(os.fspath(folder)), every, options
        self._requested, self._before, self._stop = False, None, os.path.join(self.folder, STOP)
        if coordination.job(False).rank == 0:  # of a killed job; the other ranks look for it only after the first step
            self._remove_stop_file()
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGTERM, self._on_sigterm)

    def _on_sigterm(self, *_) -> None:
        self._requested = True

    def close(self) -> None:
        """Restore the previous handler of SIGTERM."""
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
        """Load the newest checkpoint, with the options of load_checkpoint. Returns None if there is none."""
        return load_checkpoint(self.folder, like, **options) if folders.checkpoints(self.folder) else None

    @entry
    @located
    def after(self, step: int, state, **options) -> Save | None:
        """Save after step number `step` if it is due; if SIGTERM has arrived, save and exit the process."""
        stops = self._should_stop(step)
        saved = None
        if stops or step % self.every == 0:
            saved = save_checkpoint(self.folder, state, step, **{**self._options, **options})
        if stops:
            saved.wait()
            if coordination.job(False).rank == 0:
                self._remove_stop_file()
            sys.exit(TERMINATED)
        return saved

    def _should_stop(self, step: int) -> bool:
        """Whether all ranks stop after this step."""
        job = coordination.job(False)
        if job.size == 1:
            return self._requested
        if job.group:
            requested = np.array([self._requested], np.int32)
            distributed.all_reduce(requested, distributed.ReduceOp.MAX)
            return bool(requested[0])
        if self._requested and not os.path.exists(self._stop):
            # The others may be in the next step already, and see the file after it.
            _create(self._stop, str(step + 1))
        last = _read(self._stop)
        if last is None or step < last:
            return False
        if step > last:
            raise CheckpointError(f"{self.folder}: {job.label} is at step {step}, and another rank stops after step {last}; synchronize the ranks in "
                                  "each step, or call init_process_group")
        return True

    def _remove_stop_file(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._stop)


def _create(path: str, text: str) -> None:
    """Create a file atomically with its content; no effect if it exists."""
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
