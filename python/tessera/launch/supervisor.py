# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two processes, so that nothing survives when either is killed: the command, which takes signals, and the worker under it, which
has the ranks as children.

Who ends            what ends the rest
the command         the kernel tells the worker, which ends all ranks in a second and a half at most
the worker          the kernel kills the ranks, the command adopts and kills what they had started
both                the kernel kills the ranks, the guard (guard.py) finds what they had started by a mark in the environment
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable

from . import processes
from .failure import exit_code

FORWARDED = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
_PATIENCE = 2.0  # seconds that the worker has to obey a second signal


def supervise(work: Callable[[int], int], mark: str) -> int:
    """Runs `work` in a process of its own, and returns its result as an exit code. Signals to this process are bytes on the
    descriptor that `work` gets; its end says that this process is gone. `mark`, NAME=VALUE, is in the environment of all that
    `work` starts, and of nothing else."""
    processes.adopt_orphans()
    guard = _start_guard(mark)
    signals, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    for number in (*FORWARDED, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    orders, tell = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    worker = os.fork()
    if worker == 0:
        _be_worker(work, parent, orders, (signals, wakeup, tell))
    os.close(orders)
    status = _wait(worker, signals, tell)
    processes.kill_descendants()  # the guard, too
    guard.close()
    code = exit_code(status)
    if os.WIFSIGNALED(status):
        print(f"tessera: error: the launcher's worker process {worker} was ended by signal {os.WTERMSIG(status)}; all ranks are ended",
              file=sys.stderr)
    return code


def _start_guard(mark: str):
    """The pipe that this process and the worker hold open. The program is passed as an open file, so that whoever kills by the
    name of this package does not find it."""
    wait, hold = os.pipe()
    with open(os.path.join(os.path.dirname(__file__), "guard.py"), "rb") as program:
        os.set_inheritable(program.fileno(), True)
        guard = subprocess.Popen([sys.executable, "-I", "-S", f"/dev/fd/{program.fileno()}", mark], stdin=wait, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, pass_fds=[program.fileno()], start_new_session=True, env={})
    guard.returncode = 0  # reaped with all other children
    os.close(wait)
    return os.fdopen(hold, "wb")


def _be_worker(work, parent: int, orders: int, theirs) -> None:
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for descriptor in theirs:
            os.close(descriptor)
        # The terminal signals the whole group: the command passes that on once.
        for number in (*FORWARDED, signal.SIGTTIN, signal.SIGTTOU):
            signal.signal(number, signal.SIG_IGN)
        # Also while a write of output waits for a reader.
        signal.signal(signal.SIGUSR1, lambda *_: end_at_once())
        processes.adopt_orphans()
        processes.end_with_parent(signal.SIGUSR1, parent)
        code = work(orders)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            processes.kill_descendants()
            os._exit(code)


def end_at_once() -> None:
    """The command was killed: SIGTERM to all, a second later SIGKILL."""
    for pid in processes.children():
        processes.signal_group(pid, signal.SIGTERM)
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline and processes.children():
        processes.reap()
        time.sleep(0.02)
    processes.kill_descendants()
    os._exit(137)


def _wait(worker: int, signals: int, tell: int) -> int:
    """waitpid's status of the worker, whose signals are passed on; what does not obey the second one is killed."""
    received, deadline = 0, None
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([signals], [], [], left)
        for number in os.read(signals, 64) if ready else b"":
            if number in FORWARDED:
                received += 1
                try:
                    os.write(tell, bytes([number]))
                except BrokenPipeError:
                    pass
                if received >= 2 and deadline is None:
                    deadline = time.monotonic() + _PATIENCE
        for pid, status in processes.reap():
            if pid == worker:
                return status
        if deadline is not None and time.monotonic() >= deadline:
            os.kill(worker, signal.SIGKILL)
            deadline = time.monotonic() + _PATIENCE
