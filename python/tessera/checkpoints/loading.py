# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loading: choose a checkpoint and convert its tensors to those of a given state."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Mapping, Sequence

import numpy as np

from .. import dtypes
from ..layout import Placed, check as check_sharding, layout
from ..mesh import ProcessMesh
from ..sharding import Sharding
from ..source import entry, warn
from ..tensor import Part, Tensor, from_array
from . import boxes, coordination, folder as folders, manifest
from .boxes import Box
from .errors import CheckpointError, located
from .coordination import Job
from .reading import INDEX, SINGLE, Source
from .state import LocalTensor, cast as cast_array, decode, dtype_of, held, is_plain, like as like_leaf, named, other_names, rebuild, ties, unsaved


@dataclasses.dataclass
class Checkpoint:
    """A loaded checkpoint.

    state: of the structure of `like`, or a dictionary of tensors by name. loader, random: their saved states. program:
    hash of the compiled program. bytes_read: bytes read from tensor files.
    """

    path: str
    step: int
    state: object
    loader: object = None
    random: object = None
    program: str | None = None
    bytes_read: int = 0


def _candidates(path: str, step: int | None) -> list[str]:
    """The checkpoints at `path`, newest first: `path` itself, or those in the folder. Raises CheckpointError."""
    if os.path.isfile(path) or any(os.path.isfile(os.path.join(path, name)) for name in (manifest.NAME, INDEX, SINGLE)):
        return [path]
    found = folders.checkpoints(path)
    if not found:
        raise CheckpointError(f"{path}: {_absence(path)}")
    chosen = [where for number, where in found if step is None or number == step]
    if not chosen:
        raise CheckpointError(f"{path}: there is no checkpoint of step {step}; the steps are {', '.join(str(number) for number, _ in reversed(found))}")
    return chosen


def _absence(path: str) -> str:
    """Why there is no checkpoint at a path, as a message."""
    try:
        names = sorted(os.listdir(path))
    except FileNotFoundError:
        return "there is no such file or folder"
    except OSError as error:
        return str(error.strerror).lower()
    text = f"there is no complete checkpoint, no {INDEX} and no {SINGLE}"
    if any(name.startswith(folders.WRITING) for name in names):
        text += "; one is incomplete: its writing has not ended"
    pickled = [name for name in names if name.endswith((".bin", ".pt", ".pth", ".ckpt", ".distcp"))]
    if pickled:
        text += f"; '{pickled[0]}' is pickled, which this package never reads: convert it to safetensors"
    return text


def latest(folder) -> str | None:
    """The path of the newest checkpoint with an undamaged manifest and all its files. Returns None if there is none."""
    for _, path in folders.checkpoints(os.fspath(folder)):
        with contextlib.suppress(CheckpointError), Source(path) as source:
            for file in source.manifest.files:
                source.open(file)
            return path
    return None


@entry
@located
def load_checkpoint(path, like=None, *, step: int | None = None, fallback: bool = False, strict: bool = True, cast: bool = False,
                    verify: bool = True, random: np.random.Generator | None = None) -> Checkpoint:
    """Load the newest checkpoint of a folder, or that of `step`.

    path: a folder of checkpoints, a checkpoint, a Hugging Face folder or a safetensors file.
    like: a state of any structure. The result has its structure and its shardings, whatever the shardings were when it
    was saved. Of a LocalTensor, and of a tensor that is sharded over a job with one process per device, each rank reads
    only its part. Tied weights of `like` may be saved once. Without `like`, the state is a dictionary of tensors by
    name.
    fallback: if a checkpoint is damaged, warn and load the one before it; a job of several ranks first verifies all
    checksums, so that all ranks choose the same. strict=False: ignore missing and unexpected tensors. cast: convert
    dtypes that differ.
    verify=False: skip checksums. random: a generator that is set to the saved state.

    Raises CheckpointError, which names the file and the tensor, or lists missing, unexpected and mismatched tensors.
    """
    path = os.fspath(path)
    with _with_rank():
        return _load_newest(path, _candidates(path, step), like, fallback, strict, cast, verify, random)


@contextlib.contextmanager
def _with_rank():
    """Prefix errors with the rank in a job of several ranks, since folders may differ between hosts."""
    try:
        yield
    except CheckpointError as error:
        job = coordination.job(False)
        if job.size == 1:
            raise
        raise CheckpointError(f"{job.label}: {error}") from None


def _load_newest(path: str, candidates: list[str], like, fallback: bool, strict: bool, cast: bool, verify: bool, random) -> Checkpoint:
    for number, candidate in enumerate(candidates):
        try:
            with Source(candidate, verify) as source:
                if fallback and coordination.job(False).size > 1:
                    source.verify()
                return _load(source, like, strict, cast, random)
        except _Mismatch:
            raise
        except CheckpointError as error:
            if not fallback or number + 1 == len(candidates):
                more = "" if fallback or number + 1 == len(candidates) else "; fallback=True loads the checkpoint before it"
                raise CheckpointError(f"{error}{more}") from None
            warn(f"cannot load {candidate}: {error}; loading {candidates[number + 1]} instead")
    raise AssertionError("there is a candidate")


class _Mismatch(CheckpointError):
    """The checkpoint is undamaged, but of another model."""


def _load(source: Source, like, strict: bool, cast: bool, random) -> Checkpoint:
    of = source.manifest
    if like is None:
        state = {name: _tensor(source, name) for name in source.names()} | {name: decode(value) for name, value in of.values.items()}
    else:
        state = _load_like(source, like, strict, cast, coordination.job(False))
    if random is not None:
        if "random" not in of.extra:
            raise _Mismatch(f"{source.path}: the checkpoint has no state of a random generator")
        random.bit_generator.state = of.extra["random"]
    return Checkpoint(source.path, of.step, state, of.extra.get("loader"), of.extra.get("random"), of.extra.get("program"), source.bytes_read)


def _tensor(source: Source, name: str, sharding: Sharding | None = None):
    array, dtype = source.read(name), dtypes.dtype(source.entry(name).dtype)
    return from_array(array, dtype, sharding)


def _load_like(source: Source, like, strict: bool, cast: bool, job: Job):
    wanted, tied, others, left_out = named(like), ties(like), other_names(like), unsaved(like)
    leaves, problems = {}, []
    known, used = set(source.names()), set()
    for name, leaf in wanted:
        if is_plain(leaf):
            leaves[name] = decode(source.manifest.values.get(name, leaf))
            continue
        found = next((other for other in (name, *tied.get(name, ()), *others.get(name, ())) if other in known), None)
        if found is None:
            problems += [f"'{name}' is missing"] if strict and name not in left_out else []
            leaves[name] = leaf
            continue
        used |= {found, *known.intersection(others.get(name, ()))}
        saved = source.entry(found)
        if saved.shape != tuple(leaf.shape):
            problems.append(f"'{name}' has shape {list(saved.shape)}, not {list(leaf.shape)}")
        elif saved.dtype != dtype_of(leaf).name and not cast:
            problems.append(f"'{name}' has dtype {saved.dtype}, not {dtype_of(leaf)} (cast=True converts)")
        else:
            leaves[name] = found
    # An alias of a tensor that is used is not unexpected.
    aliases = source.manifest.aliases
    taken = {aliases.get(name, name) for name in used}
    problems += [f"'{name}' is unexpected" for name in sorted(known - used) if aliases.get(name, name) not in taken] if strict else []
    if problems:
        more = f" and {len(problems) - 8} more" if len(problems) > 8 else ""
        raise _Mismatch(f"{source.path}: the checkpoint does not match the state: {', '.join(problems[:8])}{more}")
    made: dict = {}
    for name, leaf in wanted:
        if is_plain(leaf) or leaves[name] is leaf:
            continue
        key = min(tied.get(name, [name]))  # tensors tied in `like` are tied in the result
        if key not in made:
            found, dtype = leaves[name], dtypes.dtype(source.entry(leaves[name]).dtype)
            wants, mine = dtype_of(leaf), _held(leaf, job)
            if mine is not None:
                made[key] = _by_part(source, found, leaf, mine, wants)
            else:
                array = source.read(found, leaf.box if isinstance(leaf, LocalTensor) else None)
                made[key] = like_leaf(leaf, array if wants is dtype else cast_array(array, dtype, wants), wants)
        leaves[name] = made[key]
    return rebuild(like, leaves)


def _held(leaf, job: Job) -> list[Box] | None:
    """The part of a tensor that this rank holds if it is sharded over the job's devices.

    Returns None if that is all of it.
    """
    if job.size == 1 or not isinstance(leaf, Tensor) or leaf.sharding is None or max(leaf.sharding.mesh.devices) >= job.size:
        return None
    found = held(leaf.shape, leaf.sharding, job.rank)
    return None if layout(leaf.sharding, leaf.ndim).partial or found == [boxes.whole(leaf.shape)] else found


def _by_part(source: Source, name: str, leaf: Tensor, mine: list[Box], wants) -> Tensor:
    saved = Saved(os.path.abspath(source.path), source.verifies, name, wants, leaf.sharding, mine)
    saved.load(source)
    made = from_array(None, wants, leaf.sharding, leaf.shape)
    made._source = saved
    return made


class Saved:
    """The value of a tensor of which this rank has loaded its part (a source of a Tensor).

    Programs between processes use the part. `read` reads the whole value from the checkpoint, which must still exist.
    """

    __slots__ = ("_array", "_boxes", "_dtype", "_name", "_path", "_sharding", "_verify")

    def __init__(self, path: str, verify: bool, name: str, dtype: dtypes.DType, sharding: Sharding, mine: list[Box]):
        self._path, self._verify, self._name, self._dtype, self._sharding, self._boxes = path, verify, name, dtype, sharding, mine
        self._array: np.ndarray | None = None

    def _read(self, source: Source, box: Box | None = None) -> np.ndarray:
        dtype = dtypes.dtype(source.entry(self._name).dtype)
        array = source.read(self._name, box)
        return array if dtype is self._dtype else cast_array(array, dtype, self._dtype)

    def load(self, source: Source) -> None:
        """Reads the first box of this rank; a rank without boxes reads nothing."""
        self._array = self._read(source, self._boxes[0]) if self._boxes else None

    def feeds(self, recorded, argument: int) -> bool:
        """False: it is not the result of a program."""
        return False

    def is_drawn(self, home: str) -> bool:
        """True: every process passes its own part."""
        return True

    def part(self) -> Part:
        """The part that this rank has loaded, with its boxes and the sharding. Not collective."""
        return Part(self._array, self._boxes, self._sharding)

    def read(self) -> np.ndarray:
        """The whole value, from the checkpoint. Raises CheckpointError if it cannot be read any more."""
        try:
            with Source(self._path, self._verify) as source:
                return self._read(source)
        except CheckpointError as error:
            raise CheckpointError(f"cannot read the whole value of '{self._name}', of which this rank has loaded its part: {error}") from None


@entry
@located
def load_distributed_checkpoint(network, checkpoint_filenames, predict_strategy: Mapping | None = None, train_strategy_filename=None):
    """Load the shards of a distributed training into `network`, and return it.

    checkpoint_filenames: all files of a checkpoint, in one folder, or that folder. train_strategy_filename: the
    manifest (default: that of the folder). predict_strategy: the sharding of each tensor by name, as a Sharding, as
    (mesh, placements), or from infer_predict_layout; a name that it lacks keeps the sharding in `network`. None: no
    tensor is sharded.

    Raises CheckpointError if a file is missing, or a parameter is unknown or has another shape.
    """
    if isinstance(checkpoint_filenames, (str, os.PathLike)):
        folder, files = os.fspath(checkpoint_filenames), None
    else:
        if not isinstance(checkpoint_filenames, Sequence) or not checkpoint_filenames:
            raise CheckpointError(f"checkpoint_filenames {checkpoint_filenames!r} is neither a list of files nor a folder")
        paths = [os.path.abspath(os.fspath(each)) for each in checkpoint_filenames]
        folder, files = os.path.dirname(paths[0]), {os.path.basename(each) for each in paths}
        for each in paths:
            if os.path.dirname(each) != folder:
                raise CheckpointError(f"{each}: the files of a checkpoint must be in one folder, and others are in {folder}")
            if not os.path.isfile(each):
                raise CheckpointError(f"{each}: the file is missing")
    if train_strategy_filename is not None:
        where, name = os.path.split(os.path.abspath(os.fspath(train_strategy_filename)))
        if name != manifest.NAME:
            raise CheckpointError(f"{train_strategy_filename}: expected the {manifest.NAME} of a checkpoint")
        folder = where if files is None or where == folder else _refuse_other_folder(where, folder)
    leaves = dict(named(network))
    if predict_strategy is not None and not isinstance(predict_strategy, Mapping):
        raise CheckpointError(f"predict_strategy {predict_strategy!r} is not a dictionary of shardings by name")
    strategy = dict(predict_strategy or {})
    for name in strategy:
        if name not in leaves:
            raise CheckpointError(f"predict_strategy: the network has no parameter '{name}'")
    with Source(_candidates(folder, None)[0]) as source:
        for name, saved in source.manifest.tensors.items():
            for file, _ in saved.shards:
                if files is not None and file not in files:
                    raise CheckpointError(f"{os.path.join(folder, file)}: the file is not among checkpoint_filenames, and holds parameter '{name}'")
        state = _load_like(source, network, True, False, Job())
    for name, sharding in strategy.items():
        if isinstance(sharding, Placed):
            sharding = strategy[name] = sharding.sharding
        if sharding is None:
            continue
        if not isinstance(sharding, Sharding):
            if not isinstance(sharding, Sequence) or len(sharding) != 2 or not isinstance(sharding[0], ProcessMesh):
                raise CheckpointError(f"predict_strategy: {sharding!r} of '{name}' is neither a Sharding nor (ProcessMesh, placements)")
            sharding = Sharding(sharding[0], tuple(sharding[1]))
        strategy[name] = check_sharding(sharding, leaves[name].shape, leaves[name].dtype.element, f"'{name}'")
    return rebuild(state, {name: _as_predicted(leaf, name, predict_strategy, strategy) for name, leaf in named(state)})


def _as_predicted(leaf, name: str, given, strategy: dict):
    """A leaf with the sharding of the strategy, or unsharded without one. Only Tensors have shardings."""
    if not isinstance(leaf, Tensor) or given is not None and strategy.get(name) is None:
        return leaf
    return leaf._placed(strategy.get(name))


def _refuse_other_folder(where: str, folder: str):
    raise CheckpointError(f"{where}: the manifest is not in the folder of the files, {folder}")
