# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Saving: the parts that each process writes, and the commit of a complete checkpoint."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import os
import resource
import threading

import numpy as np

from ..source import entry, location, standing_at
from . import boxes, coordination, folder as folders, manifest
from .boxes import Box
from .chunks import CHUNK, MOST_CHUNK, Writer
from .errors import CheckpointError, located
from .manifest import Entry, File, Manifest
from .coordination import Job
from .safetensors import header
from .state import Item, extract, owners


@dataclasses.dataclass
class Plan:
    """The files that this process writes, with their parts as (item, box)."""

    files: dict[str, list[tuple[Item, Box]]]

    @staticmethod
    def of(items: list[Item], job: Job) -> Plan:
        """The plan of this rank: one file per rank of a job, or in a single process one file per device.

        Raises CheckpointError.
        """
        placed = [(device, item, box) for item in items for device, box in owners(item.shape, item.sharding)]
        if job.size == 1:
            devices = sorted({device for device, *_ in placed})
            number, mine = {device: i for i, device in enumerate(devices)}, set(devices)
        else:
            number = {device: device % job.size for device, *_ in placed}
            mine = {device for device in number if number[device] == job.rank}
        total = max(1, len(set(number.values())) if job.size == 1 else job.size)
        files: dict[str, list] = {}
        for device, item, box in placed:
            if device not in mine:
                continue
            if item.box is not None and item.box != box and boxes.volume(box):
                raise CheckpointError(f"tensor '{item.name}': {job.label} holds {list(item.box)} and is to write {list(box)}; in a job of {job.size} "
                                      "ranks, the devices of a LocalTensor's mesh are the ranks")
            files.setdefault(f"shard-{number[device]:05d}-of-{total:05d}.safetensors", []).append((item, box))
        return Plan(files)

    def copied(self) -> Plan:
        """The same plan with copies of the values, for a save in the background."""
        return Plan({file: [(dataclasses.replace(item, array=np.array(item.part(box)), box=box), box) for item, box in parts]
                     for file, parts in self.files.items()})

    def write(self, folder: str, chunk: int) -> Manifest:
        """Write the files of this plan to a folder. Returns their manifest. Raises CheckpointError."""
        made = Manifest(chunk=chunk)
        for file, parts in self.files.items():
            made.files[file] = write_shard(os.path.join(folder, file), parts, chunk)
            for item, box in parts:
                old = made.tensors.get(item.name)
                sharding = None if item.sharding is None else str(item.sharding)
                made.tensors[item.name] = Entry(item.dtype.name, item.shape, (*(old.shards if old else ()), (file, box)), sharding)
        return made


def write_shard(path: str, parts: list[tuple[Item, Box]], chunk: int, metadata: dict | None = None) -> File:
    """Write a safetensors file; values that are not contiguous are copied a few rows at a time.

    Raises CheckpointError.
    """
    writer = Writer(path, chunk)
    try:
        writer.write(header({item.name: (item.dtype.name, boxes.extents(box)) for item, box in parts}, metadata))
        for item, box in parts:
            for piece in item.pieces(box):
                writer.write(memoryview(piece.reshape(-1).view(np.uint8)))
        writer.close()
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}{_needed_space(error, path, parts)}; the checkpoint was not saved; older ones are unchanged") from None
    finally:
        writer.abandon()
    return File(writer.size, writer.checksums)


def _needed_space(error: OSError, path: str, parts: list[tuple[Item, Box]]) -> str:
    """The bytes that the file needs and those available, for messages of errors of lacking space; else empty."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return ""
    needs, has = sum(boxes.volume(box) * item.dtype.itemsize for item, box in parts), ""
    with contextlib.suppress(OSError):
        system = os.statvfs(os.path.dirname(path))
        has = f", and the file system has {system.f_bavail * system.f_frsize + os.stat(path).st_blocks * 512} for it"
    if error.errno == errno.EFBIG:
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        has = f", and files of this process are limited to {limit} (ulimit -f)" if limit != resource.RLIM_INFINITY else ""
    return f": the tensors of the file need {needs} bytes{has}"


class Save:
    """A checkpoint that is being saved.

    `wait` returns its path or raises the error; so does the next save to the folder.
    """

    def __init__(self):
        self.path: str | None = None
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    def done(self) -> bool:
        """Whether the save has ended or failed."""
        return self._thread is None or not self._thread.is_alive()

    def wait(self) -> str:
        """Wait until the checkpoint is on disk and return its path. Raises CheckpointError if the save failed."""
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return self.path


_last: dict[str, Save] = {}  # by folder and rank


def _serializable(given: dict) -> dict:
    """The JSON values of loader, random generator and program: their states, and the program's hash."""
    extra = {}
    for name, value in given.items():
        if name == "program" and value is not None:
            data = value if isinstance(value, (bytes, bytearray)) else str(value).encode()
            value = hashlib.blake2b(data, digest_size=16).hexdigest()
        elif isinstance(value, np.random.Generator):
            value = value.bit_generator.state
        elif hasattr(value, "state_dict"):
            value = value.state_dict()
        if value is not None:
            extra[name] = value
    return extra


@entry
@located
def save_checkpoint(folder, state, step: int = 0, *, loader=None, random=None, program=None, keep: int | None = 2, asynchronous: bool = False,
                    alone: bool = False, timeout: float = 120.0, chunk: int = CHUNK) -> Save:
    """Save a state to `folder`/step-..., as safetensors files and a manifest.

    When it returns, or `wait` of an asynchronous save, the checkpoint is on disk; until then it is not visible.

    state: a tree (modules, dictionaries, ...) of tensors and arrays of any library, numbers and strings. Each part of a
    sharded tensor is written once. In a job, all ranks call it with the same tree; a rank that holds only its part of a
    tensor passes a LocalTensor. alone: save the state of this process, without the other ranks (`if get_rank() == 0:
    ...`).
    loader, random: a JSON value, a numpy.random.Generator, or an object with `state_dict()`. program: the artifact or
    text of the compiled program; its hash is saved. keep: number of checkpoints to keep, at least 2; None for all.
    asynchronous: copy the state now and write it in a thread. timeout: seconds without progress of another rank. chunk:
    bytes per checksum.

    Raises CheckpointError, which names the file and the rank.
    """
    if keep is not None and (type(keep) is not int or keep < 2):
        raise CheckpointError(f"keep {keep!r} is not a number of at least 2: a complete checkpoint must remain while another is written")
    if not isinstance(folder, (str, os.PathLike)):
        raise CheckpointError(f"folder is a {type(folder).__name__}, not a path; call save_checkpoint(folder, state, step)")
    if isinstance(step, bool) or not isinstance(step, (int, np.integer)) or not 0 <= step < 10**18:
        raise CheckpointError(f"step {step!r} is not a number of steps")
    if type(chunk) is not int or not 0 < chunk <= MOST_CHUNK:
        raise CheckpointError(f"chunk {chunk!r} is not a number of bytes up to {MOST_CHUNK}")
    folder, step, job = os.path.abspath(os.fspath(folder)), int(step), coordination.job(alone)
    before = _last.pop((folder, job.rank), None)
    if before is not None:
        before.wait()
    items, aliases, values = extract(state, job.rank if job.size > 1 else None)
    whole = Manifest(step, chunk, aliases=aliases, values=values, extra=_serializable({"loader": loader, "random": random, "program": program}))
    try:
        whole.text()
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"the state of loader or random cannot be written as JSON: {error}") from None
    plan, save, stack = Plan.of(items, job), Save(), contextlib.ExitStack()
    try:
        os.makedirs(folder, exist_ok=True)
        if job.rank == 0:
            stack.enter_context(folders.lock(folder))
            folders.clean(folder)
        proposal = coordination.agree(job, folder, step, _state_lines(step, items, aliases), timeout)
    except OSError as error:
        stack.close()
        raise CheckpointError(f"{folder}: {error.strerror}") from None
    except BaseException:
        stack.close()
        raise
    if not asynchronous:
        with stack:
            save.path = _write(folder, job, proposal, plan, whole, keep, timeout)
        return save
    plan, place = plan.copied(), location()

    def run():
        try:
            with stack, standing_at(place):
                save.path = located(_write)(folder, job, proposal, plan, whole, keep, timeout)
        except BaseException as error:
            save._error = error
    _last[folder, job.rank] = save
    save._thread = threading.Thread(target=run, name="tessera-checkpoint")
    save._thread.start()
    return save


def _state_lines(step: int, items: list[Item], aliases: dict[str, str]) -> list[str]:
    """A description of the saved state, which must be equal on all ranks; its lines appear in messages if it is not."""
    return [f"step {step}", *(f"'{item.name}' {item.dtype.name}{list(item.shape)} {item.sharding or 'whole'}" for item in items),
            *(f"'{name}' = '{of}'" for name, of in sorted(aliases.items()))]


def _write(folder: str, job: Job, proposal: dict, plan: Plan, whole: Manifest, keep: int | None, timeout: float) -> str:
    writing = os.path.join(folder, proposal["writing"])
    try:
        made = plan.write(writing, whole.chunk)
        if job.rank:
            coordination.report_done(job, folder, proposal, made.parts())
            coordination.wait_until_complete(job, folder, proposal, timeout)
            return os.path.join(folder, proposal["name"])
        body = {"format": manifest.FORMAT, "version": manifest.VERSION, "step": whole.step, "chunk": whole.chunk, "aliases": whole.aliases,
                "values": whole.values, "extra": whole.extra, **_merged(made.parts(), coordination.collect(job, folder, proposal, timeout))}
        text = manifest.check(body, os.path.join(writing, manifest.NAME)).text()
        coordination.remove_messages(job, folder, proposal)
        folders.write_file(os.path.join(writing, manifest.NAME), text)
        path = folders.commit(folder, writing, proposal["name"])
    except OSError as error:
        _give_up(job, folder, proposal, plan, error.strerror)
        raise CheckpointError(f"{writing}: {error.strerror}; the checkpoint was not saved; older ones are unchanged") from None
    except BaseException as error:
        _give_up(job, folder, proposal, plan, str(error))
        raise
    if keep is not None:
        folders.prune(folder, keep, path)
    return path


def _give_up(job: Job, folder: str, proposal: dict, plan: Plan, reason: str) -> None:
    if job.rank == 0:
        coordination.discard(folder, proposal)
        return
    for file in plan.files:  # frees space for the message
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, proposal["writing"], file))
    coordination.report_failure(job, folder, proposal, reason)


def _merged(first: dict, others: list[dict]) -> dict:
    """The files and tensors of all ranks. Raises CheckpointError if ranks disagree about a tensor."""
    files, tensors = dict(first["files"]), dict(first["tensors"])
    for rank, part in enumerate(others, 1):
        files.update(part["files"])
        for name, entry in part["tensors"].items():
            old = tensors.get(name)
            if old is not None and (old["dtype"], old["shape"]) != (entry["dtype"], entry["shape"]):
                raise CheckpointError(f"tensor '{name}' is {entry['dtype']} of shape {entry['shape']} on rank {rank}, and {old['dtype']} of shape "
                                      f"{old['shape']} on others; all ranks must save the same state")
            tensors[name] = entry if old is None else {**old, "shards": old["shards"] + entry["shards"]}
    return {"files": files, "tensors": tensors}
