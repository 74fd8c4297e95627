# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A folder of checkpoints, each in its own folder, which is renamed into place once complete.

    step-0000000010/manifest.json        a checkpoint; step-0000000010.1 was saved later for the same step
    .writing-.../                        being written, or left by writers that were killed
    .lock                                held by rank 0 while ranks write
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
    """The (step, path) of each checkpoint with a manifest, newest first."""
    found = []
    for name in _listed(folder):
        match = _NAME.fullmatch(name)
        if match and os.path.isfile(os.path.join(folder, name, manifest.NAME)):
            found.append((int(match[1]), int(match[2] or 0), os.path.join(folder, name)))
    return [(step, path) for step, _, path in sorted(found, reverse=True)]


def new_name(folder: str, step: int) -> str:
    """An unused name for a checkpoint of `step`."""
    taken = [int(match[2] or 0) for match in map(_NAME.fullmatch, _listed(folder)) if match and int(match[1]) == step]
    return f"step-{step:010d}" + (f".{max(taken) + 1}" if taken else "")


def sync(folder: str) -> None:
    """Sync the entries of a folder to disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # not supported by the file system
            raise
    finally:
        os.close(handle)


def write_file(path: str, data: bytes) -> None:
    """Write a small file atomically and sync it to disk."""
    with open(path + ".part", "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".part", path)


def lock(folder: str):
    """Lock the folder for one writer. Returns a file; closing it, or the end of the process, releases the lock.

    Raises CheckpointError if another process holds the lock.
    """
    handle = os.open(os.path.join(folder, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise CheckpointError(f"{folder}: another process is saving to this folder; wait for it, or give each job its own folder") from None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):  # locks are not supported by the file system
            os.close(handle)
            raise
    return os.fdopen(handle, "rb", closefd=True)


def clean(folder: str) -> None:
    """Remove what killed writers left behind. The caller holds the lock."""
    for name in _listed(folder):
        if name.startswith((WRITING, DELETING)):
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)


def commit(folder: str, writing: str, name: str) -> str:
    """Rename the complete checkpoint `writing` to `name` and sync it to disk. Returns its path."""
    sync(writing)
    path = os.path.join(folder, name)
    os.rename(writing, path)
    sync(folder)
    return path


def prune(folder: str, keep: int, saved: str) -> None:
    """Remove all checkpoints but `saved` and the newest `keep` - 1 others; a rename first makes each removal atomic."""
    others = [path for _, path in checkpoints(folder) if path != saved]
    for path in others[keep - 1:]:
        gone = os.path.join(folder, DELETING + os.path.basename(path))
        with contextlib.suppress(OSError):
            os.rename(path, gone)
            shutil.rmtree(gone, ignore_errors=True)
