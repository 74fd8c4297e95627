# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The folder that checkpoints lie in: a folder for each, complete or not there.

    step-0000000010/manifest.json        a checkpoint; step-0000000010.1 is one that was saved later for the same step
    .writing-.../                        one that is being written, or was when its writers were killed
    .lock                                held by the process that leads the writing
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil

from . import manifest
from .errors import CheckpointError

WRITING, DELETING = ".writing-", ".deleting-"
_NAME = re.compile(r"step-([0-9]{1,19})(?:\.([0-9]{1,9}))?")


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise CheckpointError(f"{folder}: {error.strerror}") from None


def checkpoints(folder: str) -> list[tuple[int, str]]:
    """(step, path) of what is there with a manifest, newest first."""
    found = []
    for name in _listed(folder):
        match = _NAME.fullmatch(name)
        if match and os.path.isfile(os.path.join(folder, name, manifest.NAME)):
            found.append((int(match[1]), int(match[2] or 0), os.path.join(folder, name)))
    return [(step, path) for step, _, path in sorted(found, reverse=True)]


def new_name(folder: str, step: int) -> str:
    """A name for a checkpoint of a step that none has."""
    taken = [int(match[2] or 0) for match in map(_NAME.fullmatch, _listed(folder)) if match and int(match[1]) == step]
    return f"step-{step:010d}" + (f".{max(taken) + 1}" if taken else "")


def sync(folder: str) -> None:
    """Brings the names in a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems that have no such thing
            raise
    finally:
        os.close(handle)


def write_file(path: str, data: bytes) -> None:
    """A small file, whole or not there, on the disk."""
    with open(path + ".part", "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".part", path)


def lock(folder: str):
    """Holds the folder for one writer until what it returns is closed. A writer that is killed holds it no more."""
    handle = os.open(os.path.join(folder, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise CheckpointError(f"{folder}: another process is saving here; wait for it, or give each job its own folder") from None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):  # file systems without locks
            os.close(handle)
            raise
    return os.fdopen(handle, "rb", closefd=True)


def clean(folder: str) -> None:
    """Removes what killed writers have left; the lock is held."""
    for name in _listed(folder):
        if name.startswith((WRITING, DELETING)):
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)


def commit(folder: str, writing: str, name: str) -> str:
    """Gives a complete checkpoint its name, on the disk."""
    sync(writing)
    path = os.path.join(folder, name)
    os.rename(writing, path)
    sync(folder)
    return path


def prune(folder: str, keep: int, saved: str) -> None:
    """Removes all but `saved` and the newest others; each vanishes at once, so that none is ever there in part."""
    others = [path for _, path in checkpoints(folder) if path != saved]
    for path in others[keep - 1:]:
        gone = os.path.join(folder, DELETING + os.path.basename(path))
        with contextlib.suppress(OSError):
            os.rename(path, gone)
            shutil.rmtree(gone, ignore_errors=True)
