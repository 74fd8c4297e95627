# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Child processes that do not outlive this process (Linux)."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time

_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36
_libc = ctypes.CDLL(None, use_errno=True)
# Signals whose handling Python or a shell may have changed; ranks get the defaults back.
_DEFAULTS = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD, signal.SIGTTIN, signal.SIGTTOU, signal.SIGUSR1)


def adopt_orphans() -> None:
    """Make this process the parent of orphaned descendants, even of those in other sessions (a child subreaper)."""
    _libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_with_parent(number: int, parent: int) -> None:
    """Let the kernel send signal `number` to this process when its parent, process `parent`, ends."""
    _libc.prctl(_SET_PARENT_DEATH_SIGNAL, number, 0, 0, 0)
    if os.getppid() != parent:  # it has already ended
        os.kill(os.getpid(), number)


def start(command: list[str], environment: dict[str, str], stdin, stdout: int, stderr: int, keep: tuple[int, ...] = ()) -> subprocess.Popen:
    """Start a process in its own session, which the kernel kills when this process ends.

    keep: further file descriptors that it inherits. Raises OSError if the command cannot be executed.
    """
    parent = os.getpid()

    def prepare():
        os.setsid()
        for number in _DEFAULTS:
            signal.signal(number, signal.SIG_DFL)
        end_with_parent(signal.SIGKILL, parent)

    return subprocess.Popen(command, env=environment, stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=keep, preexec_fn=prepare)


def signal_group(pid: int, number: int) -> None:
    """Send signal `number` to the process group of a process that `start` returned."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def children() -> list[int]:
    """The children of this process, including adopted ones."""
    me, found = str(os.getpid()), []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                if file.read().rpartition(")")[2].split()[1] == me:
                    found.append(int(name))
        except (OSError, IndexError):
            continue
    return found


def reap() -> list[tuple[int, int]]:
    """Reap the children that have ended, without waiting. Returns (pid, waitpid status) of each."""
    ended = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append((pid, status))


def kill_descendants(seconds: float = 5, spare: int | None = None) -> None:
    """Kill all children but `spare`, and the orphans adopted from them, until none is left or `seconds` have passed."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        reap()
        left = [pid for pid in children() if pid != spare]
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)
