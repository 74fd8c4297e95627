# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Datasets, samplers, loaders, and the placement of batches. A dataset is any object with __len__ and __getitem__."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence

import numpy as np

from . import distributed as dist
from . import context, tree
from .errors import ArgumentError, StrategyError
from .mesh import ProcessMesh
from .ops.distributed import shard_tensor
from .sharding import Replicate, Shard
from .source import refuse
from .strategy import sharding_of
from .tensor import Tensor, asarray, from_array


class TensorDataset:
    """A dataset of arrays of equal length: item i is the tuple of their rows i."""

    def __init__(self, *arrays):
        self.arrays = [np.asarray(a) for a in arrays]
        lengths = [len(a) for a in self.arrays]
        if not lengths or len(set(lengths)) != 1:
            raise refuse(ArgumentError, f"arrays of a dataset have equal lengths, not {lengths}")

    def __len__(self):
        return len(self.arrays[0])

    def __getitem__(self, index):
        return tuple(a[index] for a in self.arrays)


def _at_least_one(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise refuse(ArgumentError, f"{name} {value!r} is not a positive integer")
    return int(value)


class DistributedSampler:
    """The indices of one replica's part of a dataset.

    These are every num_replicas-th element, from `rank` on, of a permutation that all replicas share. num_replicas and
    rank default to those of the job's process group, else 1 and 0. All parts have equal length: indices are repeated
    from the beginning, or dropped with drop_last. The permutation is seeded by seed + epoch: call set_epoch before each
    epoch for a new order.

    Raises ArgumentError if rank is not below num_replicas or the dataset is empty.
    """

    def __init__(self, dataset, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True, seed: int = 0,
                 drop_last: bool = False):
        has_job = dist.is_initialized()
        num_replicas = (dist.get_world_size() if has_job else 1) if num_replicas is None else num_replicas
        rank = (dist.get_rank() if has_job else 0) if rank is None else rank
        self.num_replicas = _at_least_one("num_replicas", num_replicas)
        if isinstance(rank, bool) or not isinstance(rank, (int, np.integer)) or not 0 <= rank < num_replicas:
            raise refuse(ArgumentError, f"rank {rank!r} is not one of {num_replicas} replicas; ranks are 0 to {num_replicas - 1}")
        if len(dataset) == 0:
            raise refuse(ArgumentError, "the dataset is empty")
        self.dataset, self.rank, self.shuffle, self.seed, self.drop_last, self.epoch = dataset, rank, shuffle, seed, drop_last, 0

    def set_epoch(self, epoch: int) -> None:
        """Selects the permutation of the next pass. Call it before each epoch, with the same number on all replicas."""
        self.epoch = epoch

    def __len__(self):
        n = len(self.dataset) / self.num_replicas
        return math.floor(n) if self.drop_last else math.ceil(n)

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        order = np.random.default_rng(self.seed + self.epoch).permutation(n) if self.shuffle else np.arange(n)
        order = np.resize(order, len(self) * self.num_replicas)  # truncated, or repeated from the beginning
        return iter(order[self.rank::self.num_replicas].tolist())


class BatchSampler:
    """Lists of batch_size indices of a dataset or a sampler; the last one is shorter, or dropped with drop_last."""

    def __init__(self, source, batch_size: int, shuffle: bool = False, drop_last: bool = False, seed: int = 0):
        self.source, self.batch_size = source, _at_least_one("batch_size", batch_size)
        for name, value in (("shuffle", shuffle), ("drop_last", drop_last)):
            if not isinstance(value, (bool, np.bool_)):
                raise refuse(ArgumentError, f"{name} {value!r} of BatchSampler is not True or False")
        self.shuffle, self.drop_last, self.seed, self.epoch = shuffle, drop_last, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Selects the order of the next pass, here and in a sampler as source. Call it before each epoch."""
        self.epoch = epoch
        if hasattr(self.source, "set_epoch"):
            self.source.set_epoch(epoch)

    def __len__(self):
        n = len(self.source) / self.batch_size
        return math.floor(n) if self.drop_last else math.ceil(n)

    def __iter__(self) -> Iterator[list[int]]:
        indices = list(range(len(self.source))) if hasattr(self.source, "__getitem__") else list(self.source)
        if self.shuffle:
            indices = np.random.default_rng(self.seed + self.epoch).permutation(indices).tolist()
        for i in range(len(self)):
            yield indices[i * self.batch_size:(i + 1) * self.batch_size]


class _Indices:
    """Wraps a sampler or a list of indices, so that it is iterated over and not indexed."""

    def __init__(self, sampler):
        self.sampler = sampler

    def set_epoch(self, epoch: int) -> None:
        if hasattr(self.sampler, "set_epoch"):
            self.sampler.set_epoch(epoch)

    def __len__(self):
        return len(self.sampler)

    def __iter__(self):
        return iter(self.sampler)


class DataLoader:
    """Batches of a dataset: items stacked along a new first axis. Items are read during iteration.

    batch_sampler yields lists of indices; without it batch_size, shuffle and drop_last define one. sampler yields
    indices, for example a DistributedSampler; batch_size is then per process.

    Raises ArgumentError if batch_size is below 1, or if more than one of batch_sampler, sampler and shuffle is given.
    """

    def __init__(self, dataset, batch_sampler=None, batch_size: int = 1, shuffle: bool = False, drop_last: bool = False, seed: int = 0,
                 sampler=None):
        orders = [name for name, given in (("batch_sampler", batch_sampler is not None), ("sampler", sampler is not None), ("shuffle", shuffle)) if given]
        if len(orders) > 1:
            raise refuse(ArgumentError, f"DataLoader takes one of {' and '.join(orders)}; each of them defines the order")
        self.dataset, self.sampler = dataset, sampler
        source = dataset if sampler is None else _Indices(sampler)
        self.batch_sampler = batch_sampler if batch_sampler is not None else BatchSampler(source, batch_size, shuffle, drop_last, seed)

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the sampler, if it has one."""
        if hasattr(self.batch_sampler, "set_epoch"):
            self.batch_sampler.set_epoch(epoch)

    def __len__(self):
        return len(self.batch_sampler)

    def __iter__(self):
        for indices in self.batch_sampler:
            yield collate([self.dataset[i] for i in indices])


def collate(items: Sequence):
    """Items of equal structure (tuples, lists, dictionaries of arrays and numbers) stacked along a new first axis."""
    first = items[0]
    if isinstance(first, dict):
        return {k: collate([item[k] for item in items]) for k in first}
    if isinstance(first, (tuple, list)):
        return type(first)(collate([item[i] for item in items]) for i in range(len(first)))
    return np.stack([np.asarray(item) for item in items])


class ShardedLoader:
    """The result of shard_dataloader: iterates over the batches of a loader as distributed tensors."""

    def __init__(self, loader, place):
        self.loader, self._place = loader, place

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        return map(self._place, self.loader)


def shard_dataloader(loader, meshes: ProcessMesh | Sequence[ProcessMesh], shard_dims=None, input_keys: Sequence[str] | None = None) -> ShardedLoader:
    """A loader of the batches of `loader` as distributed tensors.

    meshes: one mesh, or several: inputs are then placed on the first and labels (the last item) on the last one.
    shard_dims: the mesh axis that shards the batch dimension, by name or index, one for all meshes or one per mesh;
        None: replicated. Extents need not be divisible: parts are rounded up.
    input_keys: the batch is a dictionary, and key i is placed on mesh i (or the last).

    Raises ArgumentError for keys missing in a batch, MeshError for an unknown mesh axis.
    """
    meshes = [meshes] if isinstance(meshes, ProcessMesh) or not hasattr(meshes, "__iter__") else list(meshes)
    if not meshes:
        raise refuse(ArgumentError, "shard_dataloader takes at least one mesh")
    for mesh in meshes:
        if not isinstance(mesh, ProcessMesh):
            raise refuse(ArgumentError, f"shard_dataloader takes meshes, not {mesh!r}")
    if not hasattr(loader, "__iter__"):
        raise refuse(ArgumentError, f"shard_dataloader takes a loader of batches, not {loader!r}")
    dims = list(shard_dims) if isinstance(shard_dims, (list, tuple)) else [shard_dims] * len(meshes)
    if len(dims) != len(meshes):
        raise refuse(ArgumentError, f"{len(dims)} shard_dims for {len(meshes)} meshes; give one, or one per mesh")
    placements = []
    for mesh, dim in zip(meshes, dims):
        if isinstance(dim, int) and not 0 <= dim < len(mesh.shape):
            raise refuse(ArgumentError, f"shard_dims {dim} is out of range: the mesh has {len(mesh.shape)} axes")
        axis = None if dim is None else dim if isinstance(dim, int) else mesh.axis(dim)
        placements.append([Shard(0) if i == axis else Replicate() for i in range(len(mesh.shape))])

    def put(value, at):
        at = min(at, len(meshes) - 1)
        one = lambda leaf: _placed(asarray(leaf), meshes[at], placements[at] if np.ndim(leaf) else [])
        return tree.map(one, value)

    def place(batch):
        if input_keys is not None:
            for key in input_keys:
                if key not in batch:
                    raise refuse(ArgumentError, f"the batch has no '{key}'; it has {list(batch)}")
            return {key: put(batch[key], i) for i, key in enumerate(input_keys)}
        if isinstance(batch, dict):
            last = list(batch)[-1]
            return {key: put(value, len(meshes) - 1 if key == last else 0) for key, value in batch.items()}
        if isinstance(batch, (tuple, list)) and len(batch) > 1:
            return type(batch)([*[put(v, 0) for v in batch[:-1]], put(batch[-1], len(meshes) - 1)])
        return put(batch, 0)
    return ShardedLoader(loader, place)


def _placed(tensor: Tensor, mesh, placements) -> Tensor:
    made = shard_tensor(from_array(tensor._concrete("placing"), tensor.dtype), mesh, placements)
    made._used()
    return made


def place_batch(batch: Sequence, mesh: ProcessMesh, dataset_strategy=None) -> tuple:
    """The inputs of a step as distributed tensors on `mesh`.

    dataset_strategy: "data_parallel": the first axis is split over all processes; "full_batch": replicated; or one
    tuple per input with the number of parts of each dimension, such as ((1, 1, 2, 2),) for images split in height and
    width. The parts must divide their dimension, and their product the number of processes; the input is replicated
    over the rest. Default: that of `set_auto_parallel_context`.

    Raises StrategyError, naming the input and the dimension.
    """
    if not isinstance(batch, (list, tuple)):
        raise refuse(ArgumentError, f"place_batch takes a list of inputs, not {type(batch).__name__}")
    if not isinstance(mesh, ProcessMesh):
        raise refuse(ArgumentError, f"place_batch takes a ProcessMesh, not {mesh!r}")
    tensors = [asarray(b) for b in batch]
    if dataset_strategy is None:
        dataset_strategy = context.get_auto_parallel_context("dataset_strategy")
    if dataset_strategy == "full_batch":
        strategy = [(1,) * t.ndim for t in tensors]
    elif dataset_strategy == "data_parallel":
        strategy = [(mesh.size, *[1] * (t.ndim - 1)) if t.ndim else () for t in tensors]
    elif not isinstance(dataset_strategy, (list, tuple)):
        raise refuse(StrategyError, f"invalid dataset_strategy {dataset_strategy!r}; expected \"full_batch\", "
                                    "\"data_parallel\" or tuples of cuts")
    else:
        strategy = list(dataset_strategy)
    if len(strategy) != len(tensors):
        raise refuse(StrategyError, f"dataset_strategy has {len(strategy)} tuples for {len(tensors)} inputs")
    made = []
    for i, (tensor, cuts) in enumerate(zip(tensors, strategy)):
        sharding = sharding_of(tensor.shape, cuts, mesh, f"input {i} of the dataset")
        made.append(from_array(tensor._concrete("placing"), tensor.dtype, sharding))
    return tuple(made)


def progress(iterable, description: str = ""):
    """The items of `iterable`, with a tqdm progress bar if stderr is a terminal and tqdm is installed."""
    if not sys.stderr.isatty():
        return iterable
    try:
        from tqdm import tqdm
    except ImportError:
        return iterable
    return tqdm(iterable, desc=description)
