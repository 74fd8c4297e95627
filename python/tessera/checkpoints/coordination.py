# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Coordination of the ranks of a job during a save.

Rank 0 proposes a folder to write into, and every rank checks that it sees that folder. With a process group they use
its collectives. Without one, each rank writes a file `.hello-RANK` with a random word, and rank 0 answers with
`.invite`, which repeats the words, so that files of an earlier job have no effect. The rest of the save uses files
only, so that it can overlap with collectives of a training step.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets
import socket
import time
from collections.abc import Callable

from .. import distributed, ranks
from . import folder as folders
from .errors import CheckpointError

TOKEN, INVITE, HELLO = "token", ".invite", ".hello-"


@dataclasses.dataclass(frozen=True)
class Job:
    """This rank and the number of ranks that save together. group: whether they have a process group."""

    rank: int = 0
    size: int = 1
    group: bool = False

    @property
    def label(self) -> str:
        """This rank and its host, for messages."""
        return f"rank {self.rank} (host {socket.gethostname()})"


def job(alone: bool) -> Job:
    """The job of this process, from the process group or the launcher's variables; if `alone`, a job of one rank."""
    if alone:
        return Job()
    if distributed.is_initialized():
        return Job(distributed.get_rank(), distributed.get_world_size(), True)
    launched = ranks.read()
    return Job(launched.rank, launched.size)


def read_json(path: str) -> dict:
    """The JSON object in a file that another rank writes. Returns {} if it does not exist yet."""
    try:
        with open(path, "rb") as file:
            found = json.loads(file.read())
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError):
        return {}


def wait_for(done: Callable[[], bool], timeout: float, progress: Callable[[], object] = lambda: None) -> bool:
    """Wait until `done()`. Returns False if `progress()` does not change for `timeout` seconds."""
    pause, last, until = 0.001, progress(), time.monotonic() + timeout
    while not done():
        now = progress()
        if now != last:
            last, until = now, time.monotonic() + timeout
        if time.monotonic() > until:
            return False
        time.sleep(pause)
        pause = min(0.1, pause * 1.5)
    return True


def propose(folder: str, step: int, state: list[str]) -> dict:
    """On rank 0: create the folder to write into. Returns its path, its final name and a random word."""
    word = secrets.token_hex(8)
    name = folders.new_name(folder, step)
    writing = f"{folders.WRITING}{name}-{word}"
    os.mkdir(os.path.join(folder, writing))
    folders.write_file(os.path.join(folder, writing, TOKEN), json.dumps({"word": word, "state": state}).encode())
    return {"word": word, "name": name, "writing": writing}


def agree(job: Job, folder: str, step: int, state: list[str], timeout: float) -> dict:
    """Distribute the proposal of rank 0 to all ranks. state: a description of the saved state, one line per tensor.

    Raises CheckpointError with the ranks that do not see the folder or that save another state.
    """
    if job.size == 1:
        return propose(folder, step, state)
    return _by_group(job, folder, step, state) if job.group else _by_files(job, folder, step, state, timeout)


def _sees(folder: str, proposal: dict) -> bool:
    return read_json(os.path.join(folder, proposal["writing"], TOKEN)).get("word") == proposal["word"]


def _difference(job: Job, folder: str, proposal: dict, state: list[str]) -> str:
    """How this rank's state differs from that of rank 0, as a message; empty if it does not."""
    first = read_json(os.path.join(folder, proposal["writing"], TOKEN)).get("state", [])
    if first == state:
        return ""
    at = next((i for i, (a, b) in enumerate(zip(first, state)) if a != b), min(len(first), len(state)))
    of_first, mine = (lines[at] if at < len(lines) else "nothing more" for lines in (first, state))
    return f"{job.label} saves {mine}, where rank 0 saves {of_first}; all ranks must save the same state of the same step"


def _by_group(job: Job, folder: str, step: int, state: list[str]) -> dict:
    mine, found = None, [None] * job.size
    if job.rank == 0:
        try:
            mine = propose(folder, step, state)
        except (CheckpointError, OSError) as error:
            mine = {"error": str(error)}
    distributed.all_gather_object(found, mine)
    proposal = found[0]
    if "error" in proposal:
        raise CheckpointError(f"rank 0 cannot save: {proposal['error']}")
    sees = wait_for(lambda: _sees(folder, proposal), 5)  # seconds: NFS caches directory entries for 3 s
    distributed.all_gather_object(found, [job.label, sees, _difference(job, folder, proposal, state) if sees else ""])
    blind, different = [who for who, sees, _ in found if not sees], [how for *_, how in found if how]
    if job.rank == 0 and (blind or different):
        discard(folder, proposal)
    if different and not blind:
        raise CheckpointError(f"{folder}: {different[0]}")
    if blind:
        raise CheckpointError(f"{folder}: {', '.join(blind)} {'do' if len(blind) > 1 else 'does'} not see the files of {found[0][0]}; the folder is not "
                              "shared: use one on a file system that all hosts mount")
    return proposal


def _by_files(job: Job, folder: str, step: int, state: list[str], timeout: float) -> dict:
    invite, others = os.path.join(folder, INVITE), [str(rank) for rank in range(1, job.size)]
    if job.rank:
        hello, word, proposal = os.path.join(folder, f"{HELLO}{job.rank}"), secrets.token_hex(8), {}
        folders.write_file(hello, json.dumps({"word": word}).encode())

        def invited():
            found = read_json(invite)
            if found.get("words", {}).get(str(job.rank)) == word and _sees(folder, found["proposal"]):
                proposal.update(found["proposal"])
            return bool(proposal)
        came = wait_for(invited, timeout)
        with contextlib.suppress(OSError):
            os.unlink(hello)
        if not came:
            raise CheckpointError(f"{folder}: {job.label} has seen no file of rank 0 for {timeout:g} s; the folder is not shared, or rank 0 does not save")
        how = _difference(job, folder, proposal, state)
        folders.write_file(os.path.join(folder, proposal["writing"], f"joined-{job.rank}"), how.encode())
        if how:
            raise CheckpointError(f"{folder}: {how}")
        return proposal
    proposal, written = propose(folder, step, state), {}

    def joined():
        words = {rank: read_json(os.path.join(folder, HELLO + rank)).get("word") for rank in others}
        words = {**written, **{rank: word for rank, word in words.items() if word}}
        if words != written:
            written.update(words)
            folders.write_file(invite, json.dumps({"proposal": proposal, "words": words}).encode())
        return not _absent(folder, proposal, "joined", others)
    if not wait_for(joined, timeout):
        absent = ", ".join(_absent(folder, proposal, "joined", others))
        discard(folder, proposal)
        raise CheckpointError(f"{folder}: {job.label} has seen no file of rank {absent} for {timeout:g} s; the folder is not shared, or not all "
                              "ranks save (alone=True saves the state of one rank)")
    with contextlib.suppress(OSError):
        os.unlink(invite)
    for rank in others:
        with open(os.path.join(folder, proposal["writing"], f"joined-{rank}"), encoding="utf-8") as file:
            how = file.read()
        if how:
            discard(folder, proposal)
            raise CheckpointError(f"{folder}: {how}")
    return proposal


def _absent(folder: str, proposal: dict, kind: str, of: list[str]) -> list[str]:
    return [rank for rank in of if not os.path.exists(os.path.join(folder, proposal["writing"], f"{kind}-{rank}"))]


def discard(folder: str, proposal: dict) -> None:
    """Remove the folder of a save that has failed."""
    writing = os.path.join(folder, proposal["writing"])
    with contextlib.suppress(OSError):
        for name in os.listdir(writing):
            os.unlink(os.path.join(writing, name))
        os.rmdir(writing)


def report_failure(job: Job, folder: str, proposal: dict, reason: str) -> None:
    """Tell rank 0, if the disk has space for it, that this rank has failed."""
    with contextlib.suppress(OSError):
        path = os.path.join(folder, proposal["writing"], f"failed-{job.rank}")
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666))
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            file.write(f"{job.label}: {reason}")


def report_done(job: Job, folder: str, proposal: dict, part: dict) -> None:
    """Write this rank's part of the manifest for rank 0."""
    folders.write_file(os.path.join(folder, proposal["writing"], f"part-{job.rank}"), json.dumps(part, allow_nan=False).encode())


def collect(job: Job, folder: str, proposal: dict, timeout: float) -> list[dict]:
    """On rank 0: wait for the other ranks. Returns their parts of the manifest in the order of ranks.

    Raises CheckpointError if one has failed or writes nothing for `timeout` seconds.
    """
    writing, others = os.path.join(folder, proposal["writing"]), [str(rank) for rank in range(1, job.size)]
    failed: list[str] = []

    def size():
        with contextlib.suppress(OSError):
            return [(each.name, each.stat().st_size) for each in os.scandir(writing)]
        return None

    def complete():
        failed[:] = [rank for rank in others if os.path.exists(os.path.join(writing, f"failed-{rank}"))]
        return bool(failed) or not _absent(folder, proposal, "part", others)
    if not wait_for(complete, timeout, size):
        raise CheckpointError(f"{folder}: rank {', '.join(_absent(folder, proposal, 'part', others))} has written nothing for {timeout:g} s; it ended or hangs")
    if failed:
        time.sleep(0.05)  # the reason is written after the name
        with open(os.path.join(writing, f"failed-{failed[0]}"), encoding="utf-8") as file:
            raise CheckpointError(file.read() or f"rank {failed[0]} cannot write")
    return [read_json(os.path.join(writing, f"part-{rank}")) for rank in others]


def remove_messages(job: Job, folder: str, proposal: dict) -> None:
    """Remove the files through which the ranks have communicated."""
    for name in (TOKEN, *(f"{kind}-{rank}" for rank in range(1, job.size) for kind in ("joined", "part"))):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, proposal["writing"], name))


def wait_until_complete(job: Job, folder: str, proposal: dict, timeout: float) -> None:
    """On other ranks: wait until rank 0 has committed the checkpoint. Raises CheckpointError."""
    writing, path = (os.path.join(folder, proposal[key]) for key in ("writing", "name"))

    def size():
        with contextlib.suppress(OSError):
            return [(each.name, each.stat().st_size) for each in os.scandir(writing)]
        return None
    came = wait_for(lambda: os.path.isdir(path) or not os.path.isdir(writing), timeout, size)
    if not os.path.isdir(path):
        how = "has given up" if came else f"has written nothing for {timeout:g} s"
        raise CheckpointError(f"{path}: rank 0 {how}; the checkpoint was not saved ({job.label})")
