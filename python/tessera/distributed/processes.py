# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Start the processes of a job from a script: `spawn`."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import tempfile
import time
import traceback

from ..core import whole
from ..errors import ArgumentError, Error

_GRACE = 5  # seconds between SIGTERM and SIGKILL
_SETTLING = 0.3  # seconds after a failure until the process that caused it has ended, too
_MOST = 4096


class SpawnError(Error, RuntimeError):
    """A process of `spawn` failed; `rank` is its rank, and the message has its traceback or signal."""

    def __init__(self, rank: int, text: str):
        super().__init__(text)
        self.rank = rank


def _main(fn, rank: int, args, path: str) -> None:
    try:
        fn(rank, *args)
    except KeyboardInterrupt:
        os._exit(130)
    except BaseException as error:  # the parent raises it as SpawnError
        if isinstance(error, SystemExit) and not error.code:
            return
        with open(path, "w", encoding="utf-8") as file:
            file.write(traceback.format_exc())
        os._exit(1)


class Processes:
    """The processes that `spawn` has started."""

    def __init__(self, fn, args, nprocs: int, daemon: bool):
        context = multiprocessing.get_context("spawn")
        self._folder = tempfile.TemporaryDirectory(prefix="tessera-spawn-")
        self.processes = [context.Process(target=_main, args=(fn, rank, tuple(args), self._path(rank)), daemon=daemon)
                          for rank in range(nprocs)]
        for process in self.processes:
            process.start()

    def _path(self, rank: int) -> str:
        return os.path.join(self._folder.name, str(rank))

    def pids(self) -> list[int]:
        """The process ids, by rank."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None) -> bool:
        """Wait until all processes have ended, for at most `timeout` seconds. Returns whether they have.

        Raises SpawnError if one fails, after ending the others.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while running := [process for process in self.processes if process.is_alive()]:
            if self._failed():
                time.sleep(_SETTLING)
                failed = self._failed()
                self._end()
                self._raise(failed)
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return False
            multiprocessing.connection.wait([process.sentinel for process in running], left)
        self._raise(self._failed())
        return True

    def _raise(self, failed: tuple[int, str] | None) -> None:
        self._folder.cleanup()
        if failed:
            raise SpawnError(*failed)

    def _failed(self) -> tuple[int, str] | None:
        """The rank and reason of the first failure: a signal, else the first exception, else an exit code."""
        codes = {rank: process.exitcode for rank, process in enumerate(self.processes) if process.exitcode}
        reported = [rank for rank in range(len(self.processes)) if os.path.exists(self._path(rank))]
        killed = [rank for rank in codes if codes[rank] < 0]
        if killed:
            return killed[0], f"rank {killed[0]} was ended by {signal.Signals(-codes[killed[0]]).name}"
        if reported and codes:
            rank = min(reported, key=lambda rank: os.stat(self._path(rank)).st_mtime_ns)
            with open(self._path(rank), encoding="utf-8") as file:
                return rank, f"rank {rank} failed:\n{file.read().rstrip()}"
        return next(((rank, f"rank {rank} ended with exit code {code}") for rank, code in codes.items()), None)

    def _end(self) -> None:
        for process in self.processes:
            process.terminate()
        deadline = time.monotonic() + _GRACE
        for process in self.processes:
            process.join(max(deadline - time.monotonic(), 0))
            if process.is_alive():
                process.kill()
                process.join()


def spawn(fn, args=(), nprocs: int = 1, join: bool = True, daemon: bool = True) -> Processes | None:
    """Start `nprocs` processes that call fn(rank, *args), and wait for them.

    Each calls init_process_group itself, for example with a file:// method and nprocs ranks. fn: a function of a
    module; in the main script, guard the call of spawn with `if __name__ == "__main__"`. join=False: return the
    Processes without waiting. Raises SpawnError if one fails.
    """
    if not callable(fn):
        raise ArgumentError(f"{fn!r} is not a function")
    processes = Processes(fn, args, whole("nprocs", nprocs, 1, _MOST), daemon)
    if not join:
        return processes
    processes.join()
    return None
