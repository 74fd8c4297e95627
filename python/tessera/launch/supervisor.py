# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The two processes of the launcher: the command, which receives signals, and the worker, the parent of the ranks.

No process of the job survives when one of them is killed:

killed          cleanup
the command     the kernel signals the worker, which ends all ranks within 1.5 s
the worker      the kernel kills the ranks; the command adopts and kills the processes that they started
both            the kernel kills the ranks; the guard (guard.py) kills the processes with the job's mark in their environment
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
_PATIENCE = 2.0  # seconds that the worker has to end after a second signal, and the guard after all others have ended


def supervise(work: Callable[[int], int], mark: str) -> int:
    """Run `work` in a child process and return its result, an exit code.

    `work` gets a file descriptor: each byte is a signal that this process received; end of file means that this process
    has ended. mark: NAME=VALUE in the environment of all processes that `work` starts, and of no others.
    """
    processes.adopt_orphans()
    guard, hold = _start_guard(mark)
    signals, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    for number in (*FORWARDED, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    forwarded, forward = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    worker = os.fork()
    if worker == 0:
        _be_worker(work, parent, forwarded, (signals, wakeup, forward))
    os.close(forwarded)
    status = _wait(worker, signals, forward)
    # The guard lives longest: this process may be killed while it kills the others.
    processes.kill_descendants(spare=guard.pid)
    hold.close()
    _end_guard(guard)
    code = exit_code(status)
    if os.WIFSIGNALED(status):
        print(f"tessera: error: signal {os.WTERMSIG(status)} ended the launcher's worker process {worker}; all ranks are ended",
              file=sys.stderr)
    return code


def _start_guard(mark: str):
    """Start the guard.

    Returns it and the write end of its standard input, which this process and the worker hold open.

    The program is passed as an open file, so that killing processes by the name of this package does not hit the guard.
    """
    wait, hold = os.pipe()
    with open(os.path.join(os.path.dirname(__file__), "guard.py"), "rb") as program:
        os.set_inheritable(program.fileno(), True)
        guard = subprocess.Popen([sys.executable, "-I", "-S", f"/dev/fd/{program.fileno()}", mark], stdin=wait, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, pass_fds=[program.fileno()], start_new_session=True, env={})
    os.close(wait)
    return guard, os.fdopen(hold, "wb")


def _end_guard(guard: subprocess.Popen) -> None:
    try:
        guard.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        guard.kill()
        guard.wait()


def _be_worker(work, parent: int, forwarded: int, theirs) -> None:
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for descriptor in theirs:
            os.close(descriptor)
        # A terminal signals the whole process group; the command forwards the signal once.
        for number in (*FORWARDED, signal.SIGTTIN, signal.SIGTTOU):
            signal.signal(number, signal.SIG_IGN)
        # A handler also interrupts a blocked write of output.
        signal.signal(signal.SIGUSR1, lambda *_: end_at_once())
        processes.adopt_orphans()
        processes.end_with_parent(signal.SIGUSR1, parent)
        code = work(forwarded)
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
    """End all ranks after the command was killed: SIGTERM, then SIGKILL one second later."""
    for pid in processes.children():
        processes.signal_group(pid, signal.SIGTERM)
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline and processes.children():
        processes.reap()
        time.sleep(0.02)
    processes.kill_descendants()
    os._exit(137)


def _wait(worker: int, signals: int, forward: int) -> int:
    """Forward signals to the worker until it ends; kill it if it does not end after the second.

    Returns its waitpid status.
    """
    received, deadline = 0, None
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([signals], [], [], left)
        for number in os.read(signals, 64) if ready else b"":
            if number in FORWARDED:
                received += 1
                try:
                    os.write(forward, bytes([number]))
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
