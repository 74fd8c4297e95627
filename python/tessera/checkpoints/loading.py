# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loading: which checkpoint, and its tensors as the state that takes them wants them."""

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
from . import boxes, folder as folders, manifest, meeting
from .boxes import Box
from .errors import CheckpointError, located
from .meeting import Job
from .reading import INDEX, SINGLE, Source
from .state import LocalTensor, cast as cast_array, decode, dtype_of, held, is_plain, like as like_leaf, named, other_names, rebuild, ties, unsaved


@dataclasses.dataclass
class Checkpoint:
    """What was loaded. `state` has the structure that was asked for, or is a dictionary of tensors by name. `loader` and `random` are
    what was saved of them, `program` the hash of the compiled program. `bytes_read` counts those of the files of tensors."""

    path: str
    step: int
    state: object
    loader: object = None
    random: object = None
    program: str | None = None
    bytes_read: int = 0


def _candidates(path: str, step: int | None) -> list[str]:
    """What `path` may mean: a checkpoint itself, or a folder of them, newest first."""
    if os.path.isfile(path) or any(os.path.isfile(os.path.join(path, name)) for name in (manifest.NAME, INDEX, SINGLE)):
        return [path]
    found = folders.checkpoints(path)
    if not found:
        raise CheckpointError(f"{path}: {_absence(path)}")
    chosen = [where for number, where in found if step is None or number == step]
    if not chosen:
        raise CheckpointError(f"{path}: there is no checkpoint of step {step}; there are {', '.join(str(number) for number, _ in reversed(found))}")
    return chosen


def _absence(path: str) -> str:
    """Why a path has nothing to load."""
    try:
        names = sorted(os.listdir(path))
    except FileNotFoundError:
        return "there is no such file or folder"
    except OSError as error:
        return str(error.strerror).lower()
    text = f"there is no complete checkpoint, no {INDEX} and no {SINGLE}"
    if any(name.startswith(folders.WRITING) for name in names):
        text += "; one that was being written is incomplete"
    pickled = [name for name in names if name.endswith((".bin", ".pt", ".pth", ".ckpt", ".distcp"))]
    if pickled:
        text += f"; '{pickled[0]}' is pickled, which this package never reads: convert it to safetensors"
    return text


def latest(folder) -> str | None:
    """The path of the newest checkpoint whose manifest is whole and whose files are there; None where there is none."""
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
    """Loads the newest checkpoint of a folder, or that of `step`; or one itself, a folder of Hugging Face's, a file of safetensors.

    like: the state that takes it, of any structure: what is returned has its structure, and each tensor lies as it does there,
    whatever it lay like when it was saved. Of a LocalTensor, and in a job of one process a device of a tensor on the job's devices, the
    part of this rank alone is read. Tensors that `like` has twice (tied
    weights) may be there once. Without it the state is a dictionary of tensors by name.
    fallback: a checkpoint that is damaged is left for the one before it, with a warning that says why; in a job of several ranks
    everything is compared first, so that all choose the same. strict=False: `like` may have and lack tensors. cast: types may differ.
    verify=False does not compare checksums. random: a generator that goes on where the saved one was.

    Raises CheckpointError, which names the file and the tensor, and which tensors are missing, unexpected, or of another shape.
    """
    path = os.fspath(path)
    with _by_rank():
        return _load_newest(path, _candidates(path, step), like, fallback, strict, cast, verify, random)


@contextlib.contextmanager
def _by_rank():
    """In a job of several ranks an error says whose it is: folders may differ between hosts."""
    try:
        yield
    except CheckpointError as error:
        job = meeting.job(False)
        if job.size == 1:
            raise
        raise CheckpointError(f"{job.me}: {error}") from None


def _load_newest(path: str, candidates: list[str], like, fallback: bool, strict: bool, cast: bool, verify: bool, random) -> Checkpoint:
    for number, candidate in enumerate(candidates):
        try:
            with Source(candidate, verify) as source:
                if fallback and meeting.job(False).size > 1:
                    source.verify()
                return _load(source, like, strict, cast, random)
        except _Mismatch:
            raise
        except CheckpointError as error:
            if not fallback or number + 1 == len(candidates):
                more = "" if fallback or number + 1 == len(candidates) else "; fallback=True takes the checkpoint before it"
                raise CheckpointError(f"{error}{more}") from None
            warn(f"{candidate} is not loaded: {error}; {candidates[number + 1]} is taken")
    raise AssertionError("there is a candidate")


class _Mismatch(CheckpointError):
    """The checkpoint is whole, and of another model."""


def _load(source: Source, like, strict: bool, cast: bool, random) -> Checkpoint:
    of = source.manifest
    if like is None:
        state = {name: _tensor(source, name) for name in source.names()} | {name: decode(value) for name, value in of.values.items()}
    else:
        state = _load_like(source, like, strict, cast, meeting.job(False))
    if random is not None:
        if "random" not in of.extra:
            raise _Mismatch(f"{source.path}: no state of random numbers was saved")
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
            problems.append(f"'{name}' is of {saved.dtype}, not {dtype_of(leaf)} (cast=True converts)")
        else:
            leaves[name] = found
    # Another name of what was taken is not unexpected.
    aliases = source.manifest.aliases
    taken = {aliases.get(name, name) for name in used}
    problems += [f"'{name}' is unexpected" for name in sorted(known - used) if aliases.get(name, name) not in taken] if strict else []
    if problems:
        more = f" and {len(problems) - 8} more" if len(problems) > 8 else ""
        raise _Mismatch(f"{source.path}: the checkpoint is not of this state: {', '.join(problems[:8])}{more}")
    made: dict = {}
    for name, leaf in wanted:
        if is_plain(leaf) or leaves[name] is leaf:
            continue
        key = min(tied.get(name, [name]))  # what is tied in `like` is so in the result
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
    """What this rank of a job holds of a tensor that lies on the devices of the job; None where that is all of it."""
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
    """The value of a tensor in a checkpoint, of which this rank has read its part. Programs between processes take that; whoever asks
    for the whole value reads it from the files, which are there as long as the checkpoint is."""

    __slots__ = ("_array", "_boxes", "_dtype", "_name", "_path", "_sharding", "_verify")

    def __init__(self, path: str, verify: bool, name: str, dtype: dtypes.DType, sharding: Sharding, mine: list[Box]):
        self._path, self._verify, self._name, self._dtype, self._sharding, self._boxes = path, verify, name, dtype, sharding, mine
        self._array: np.ndarray | None = None

    def _read(self, source: Source, box: Box | None = None) -> np.ndarray:
        dtype = dtypes.dtype(source.entry(self._name).dtype)
        array = source.read(self._name, box)
        return array if dtype is self._dtype else cast_array(array, dtype, self._dtype)

    def load(self, source: Source) -> None:
        self._array = self._read(source, self._boxes[0]) if self._boxes else None

    def feeds(self, recorded, argument: int) -> bool:
        return False

    def is_drawn(self, home: str) -> bool:
        return True

    def part(self) -> Part:
        return Part(self._array, self._boxes, self._sharding)

    def read(self) -> np.ndarray:
        try:
            with Source(self._path, self._verify) as source:
                return self._read(source)
        except CheckpointError as error:
            raise CheckpointError(f"the whole value of '{self._name}', of which this rank has loaded its part: {error}") from None


@entry
@located
def load_distributed_checkpoint(network, checkpoint_filenames, predict_strategy: Mapping | None = None, train_strategy_filename=None):
    """Loads the shards of a training into `network`, and returns it.

    checkpoint_filenames: all files of a checkpoint, in one folder, or the folder. train_strategy_filename: the manifest of the
    training, by default that of the folder. predict_strategy: how each tensor lies from now on, by name: a Sharding, a mesh and
    placements, or what infer_predict_layout says; of a name that is not there, as in `network`. None: all tensors are whole.

    Raises CheckpointError, which names a file that is missing, and a parameter that is unknown or of another shape.
    """
    if isinstance(checkpoint_filenames, (str, os.PathLike)):
        folder, files = os.fspath(checkpoint_filenames), None
    else:
        if not isinstance(checkpoint_filenames, Sequence) or not checkpoint_filenames:
            raise CheckpointError(f"checkpoint_filenames {checkpoint_filenames!r} are no files, and no folder")
        paths = [os.path.abspath(os.fspath(each)) for each in checkpoint_filenames]
        folder, files = os.path.dirname(paths[0]), {os.path.basename(each) for each in paths}
        for each in paths:
            if os.path.dirname(each) != folder:
                raise CheckpointError(f"{each}: the files of a checkpoint lie in one folder, and another one is in {folder}")
            if not os.path.isfile(each):
                raise CheckpointError(f"{each}: the file is missing")
    if train_strategy_filename is not None:
        where, name = os.path.split(os.path.abspath(os.fspath(train_strategy_filename)))
        if name != manifest.NAME:
            raise CheckpointError(f"{train_strategy_filename}: the strategy of a training is its {manifest.NAME}")
        folder = where if files is None or where == folder else _elsewhere(where, folder)
    leaves = dict(named(network))
    if predict_strategy is not None and not isinstance(predict_strategy, Mapping):
        raise CheckpointError(f"predict_strategy {predict_strategy!r} is not a dictionary of names and shardings")
    strategy = dict(predict_strategy or {})
    for name in strategy:
        if name not in leaves:
            raise CheckpointError(f"predict_strategy: the network has no parameter '{name}'")
    with Source(_candidates(folder, None)[0]) as source:
        for name, saved in source.manifest.tensors.items():
            for file, _ in saved.shards:
                if files is not None and file not in files:
                    raise CheckpointError(f"{os.path.join(folder, file)}: the file is not among checkpoint_filenames, and parameter '{name}' lies there")
        state = _load_like(source, network, True, False, Job())
    for name, sharding in strategy.items():
        if isinstance(sharding, Placed):
            sharding = strategy[name] = sharding.sharding
        if sharding is None:
            continue
        if not isinstance(sharding, Sharding):
            if not isinstance(sharding, Sequence) or len(sharding) != 2 or not isinstance(sharding[0], ProcessMesh):
                raise CheckpointError(f"predict_strategy: {sharding!r} of '{name}' is no Sharding, and no ProcessMesh with placements")
            sharding = Sharding(sharding[0], tuple(sharding[1]))
        strategy[name] = check_sharding(sharding, leaves[name].shape, leaves[name].dtype.element, f"'{name}'")
    return rebuild(state, {name: _as_predicted(leaf, name, predict_strategy, strategy) for name, leaf in named(state)})


def _as_predicted(leaf, name: str, given, strategy: dict):
    """A tensor as the strategy says; whole where there is none at all. What is not a tensor of this package lies nowhere."""
    if not isinstance(leaf, Tensor) or given is not None and strategy.get(name) is None:
        return leaf
    return leaf._placed(strategy.get(name))


def _elsewhere(where: str, folder: str):
    raise CheckpointError(f"{where}: the manifest lies in another folder than the files, {folder}")
