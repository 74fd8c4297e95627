# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that do not outlive the one that started them (Linux)."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time

_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36
_libc = ctypes.CDLL(None, use_errno=True)
# What a Python program or a shell may have changed for us and programs expect unchanged.
_DEFAULTS = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD, signal.SIGTTIN, signal.SIGTTOU, signal.SIGUSR1)


def adopt_orphans() -> None:
    """Descendants whose parent ends become children of this process, also those that left its session."""
    _libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_with_parent(number: int, parent: int) -> None:
    """The kernel sends `number` to this process when `parent`, its parent, ends."""
    _libc.prctl(_SET_PARENT_DEATH_SIGNAL, number, 0, 0, 0)
    if os.getppid() != parent:  # it ended before
        os.kill(os.getpid(), number)


def start(command: list[str], environment: dict[str, str], stdin, stdout: int, stderr: int, keep: tuple[int, ...] = ()) -> subprocess.Popen:
    """A process in a session of its own, which the kernel kills when this one ends; it has the descriptors `keep`, too. OSError where
    it cannot be executed."""
    parent = os.getpid()

    def prepare():
        os.setsid()
        for number in _DEFAULTS:
            signal.signal(number, signal.SIG_DFL)
        end_with_parent(signal.SIGKILL, parent)

    return subprocess.Popen(command, env=environment, stdin=stdin, stdout=stdout, stderr=stderr, pass_fds=keep, preexec_fn=prepare)


def signal_group(pid: int, number: int) -> None:
    """To a process that `start` made and what it started."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def children() -> list[int]:
    """Of this process, adopted ones too."""
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
    """(pid, waitpid's status) of the children that have ended; does not wait."""
    ended = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append((pid, status))


def kill_descendants(seconds: float = 5) -> None:
    """Kills all children, then those that are adopted by it, until none is left (or one does not die for `seconds`)."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        reap()
        left = children()
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)
