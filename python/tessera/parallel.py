# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data parallelism: in one program of all devices, and between the processes of a job."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np

from . import distributed as dist
from . import ops, replicas, tree
from .compiled import infer_layout, infer_predict_layout
from .eager import run_eagerly
from .errors import ArgumentError
from .mesh import ProcessMesh
from .nn.module import Module
from .nn.normalization import BatchNorm
from .ops.distributed import reshard, shard_tensor
from .optim import placed_parameters
from .picture import visualize_sharding
from .sharding import Partial, Replicate, Shard, Sharding
from .source import refuse
from .strategy import shard
from .tensor import Tensor, asarray, from_array
from .trace import Trace, current

__all__ = ["DataParallel", "DistributedDataParallel", "accumulate", "check_replicas", "infer_layout", "infer_predict_layout", "shard", "visualize_sharding"]


class DistributedDataParallel(Module):
    """Data-parallel training of `module`: replicas on several devices, each with a part of the batch, average gradients.

    *One program of all devices*: with `mesh`, or with `device_ids` in a process without a process group. Parameters and
    buffers are replicated over the mesh; a call shards the first axis of dense inputs over `axis`, and the compiler
    reduces each gradient once over it. Losses and statistics are those of the whole batch. broadcast_buffers=False:
    each process normalizes over its own part of the batch and has its own statistics (buffers get a leading axis of
    processes).

    *Between processes*: without `mesh`, after init_process_group. The script runs once per device, with its own batch;
    device_ids is that one device, as is output_device. With several device_ids a process has several devices: each has
    the model and a part of the batch or, if parameters are placed on a mesh of one axis of device_ids, a part of the
    model. The constructor compares the models of all ranks and broadcasts rank 0's parameters and buffers. A call
    computes on this rank's batch alone; value_and_grad returns gradients averaged over ranks, reduced in buckets of
    bucket_cap_mb MiB (0: one bucket per gradient) in the order of the backward pass. broadcast_buffers: each training
    step starts with rank 0's floating-point buffers; False: each rank keeps its own. A parameter that the loss does not
    use is an error unless find_unused_parameters, which makes its gradient zero. All ranks run the same program: their
    batches have equal shapes.

    `module` is the wrapped module: its state_dict loads into a program without a mesh.

    Raises ArgumentError for arguments that are not a module, a mesh or processes of the mesh; between processes, on all
    ranks, if models differ, naming the first parameter that does.
    """

    def __new__(cls, module=None, mesh=None, axis=None, device_ids=None, *args, **kwargs):
        if cls is DistributedDataParallel and module is not None and not isinstance(mesh, ProcessMesh) and replicas.is_between_processes():
            several = isinstance(mesh or device_ids, (list, tuple, range)) and len(mesh or device_ids) > 1
            cls = RankDataParallel if dist.get_world_size() > 1 or not several else cls
        return super().__new__(cls)

    def __init__(self, module: Module, mesh: ProcessMesh | Sequence[int] | None = None, axis: str | int | None = None,
                 device_ids: Sequence[int] | None = None, output_device: int | None = None, broadcast_buffers: bool = True,
                 bucket_cap_mb: float | None = None, find_unused_parameters: bool = True):
        super().__init__()
        mesh, device_ids = _checked(module, mesh, device_ids, broadcast_buffers, bucket_cap_mb, find_unused_parameters)
        if mesh is None and device_ids is not None:
            mesh = ProcessMesh(list(device_ids), ["dp"])
        if not isinstance(mesh, ProcessMesh):
            raise refuse(ArgumentError, f"DistributedDataParallel takes a ProcessMesh, or device_ids, not {mesh!r}; between processes "
                                        "call tessera.distributed.init_process_group first")
        if device_ids is not None and list(device_ids) != mesh.process_ids:
            raise refuse(ArgumentError, f"device_ids {list(device_ids)} are not the processes {mesh.process_ids} of "
                                        "the mesh; give only one of them")
        if output_device is not None and output_device not in mesh.process_ids:
            raise refuse(ArgumentError, f"output_device {output_device!r} is not one of the processes {mesh.process_ids}")
        if isinstance(axis, bool) or not isinstance(axis, (str, int, type(None))) or isinstance(axis, int) and not 0 <= axis < mesh.ndim:
            raise refuse(ArgumentError, f"axis {axis!r} of DistributedDataParallel is not a name or index of an axis "
                                        f"of {list(mesh.dim_names)}")
        self.mesh, self.axis = mesh, mesh.axis(axis) if isinstance(axis, str) else axis or 0
        self.synchronised, self.fusion = True, _fusion(bucket_cap_mb)
        self.module = placed_parameters(module, mesh, lambda name, tensor: None)
        if not broadcast_buffers:
            for inner in self.module.modules():
                if isinstance(inner, BatchNorm):
                    inner.separate(mesh, self.batch_placements)

    @property
    def batch_placements(self) -> list:
        """By mesh axis, the placement of a batch: Shard(0) on the data-parallel axis."""
        return [Shard(0) if i == self.axis else Replicate() for i in range(len(self.mesh.shape))]

    def forward(self, *inputs, **kwargs):
        return self.module(*[self._placed(x) for x in inputs], **kwargs)

    def _placed(self, x):
        if not tree.is_array(x):
            return x
        x = asarray(x)
        if x.ndim == 0 or x.is_distributed:
            return x
        return shard_tensor(x, self.mesh, self.batch_placements)

    # Hooks of value_and_grad.

    def value_of(self, trace: Trace, value: Tensor) -> Tensor:
        """The loss; inside no_sync a partial sum over the data-parallel axis."""
        return value if self.synchronised else self._unreduced(trace, value)

    def gradient_of(self, trace: Trace, gradient: Tensor) -> Tensor:
        """The gradient; inside no_sync a partial sum over the data-parallel axis."""
        if self.fusion is not None:
            trace.fusion = self.fusion
        return gradient if self.synchronised else self._unreduced(trace, gradient)

    def check_used(self, unused: Sequence[str]) -> None:
        """Hook for parameters that the loss does not use; here their gradients are zeros."""

    def _unreduced(self, trace, tensor):
        partial = [Partial() if i == self.axis else Replicate() for i in range(len(self.mesh.shape))]
        return trace.constrained(tensor, Sharding(self.mesh, tuple(partial)), by_user=False)

    @contextlib.contextmanager
    def no_sync(self):
        """Context manager: value_and_grad returns gradients (and in one program of all devices the value) unreduced.

        Sum them with `accumulate`. They are reduced once, at the first step outside that uses the sum.
        """
        before = self.synchronised
        object.__setattr__(self, "synchronised", False)
        try:
            yield self
        finally:
            object.__setattr__(self, "synchronised", before)


class RankDataParallel(DistributedDataParallel):
    """DistributedDataParallel between processes."""

    def __init__(self, module: Module, mesh: Sequence[int] | None = None, axis: str | int | None = None,
                 device_ids: Sequence[int] | None = None, output_device: int | None = None, broadcast_buffers: bool = True,
                 bucket_cap_mb: float | None = None, find_unused_parameters: bool = False):
        Module.__init__(self)
        mesh, device_ids = _checked(module, mesh, device_ids, broadcast_buffers, bucket_cap_mb, find_unused_parameters)
        if mesh is not None or axis is not None:
            raise refuse(ArgumentError, f"{'mesh' if axis is None else 'axis'} {mesh if axis is None else axis!r} of DistributedDataParallel "
                                        "between processes; give a ProcessMesh for one program of all devices")
        devices = None if device_ids is None else list(device_ids)
        if devices is not None and (not devices or any(isinstance(id, bool) or not isinstance(id, int) or id < 0 for id in devices)
                                    or len(set(devices)) < len(devices)):
            raise refuse(ArgumentError, f"device_ids {devices!r} are not distinct non-negative device numbers of this process")
        if output_device is not None and devices is not None and output_device not in devices:
            raise refuse(ArgumentError, f"output_device {output_device!r} is not one of the devices {devices} of this process")
        self.devices = devices or [0]
        self.is_split = _check_split(module, self.devices)
        self.mesh = replicas.mesh_of_job(_check_device_counts(len(self.devices)))
        self.synchronised, self.broadcast_buffers, self.find_unused = True, broadcast_buffers, find_unused_parameters
        self.fusion = _fusion(25 if bucket_cap_mb is None else bucket_cap_mb)
        self.module = module
        if self.mesh is not None:
            _check_ranks(module)
            _broadcast_values(module, self._on_ranks)

    def _on_ranks(self, tensor: Tensor) -> Sharding | None:
        """The sharding of a parameter over the devices of all processes, equal in each process."""
        if not tensor.is_distributed or isinstance(tensor.mesh, replicas.RankMesh):
            return tensor.sharding
        return Sharding(self.mesh, (Replicate(),) * (self.mesh.ndim - 1) + tuple(tensor.placements))

    def _cut(self, x):
        """Shards this rank's batch over its devices, each of which has the whole model."""
        if not tree.is_array(x) or asarray(x).ndim == 0 or asarray(x).is_distributed:
            return x
        return shard_tensor(asarray(x), self.mesh, [Replicate()] * (self.mesh.ndim - 1) + [Shard(0)])

    def forward(self, *inputs, **kwargs):
        trace = current()
        if trace is not None and self.mesh is not None and len(self.devices) > 1 and not self.is_split and self.training:
            inputs = [self._cut(x) for x in inputs]
        if trace is not None and self.mesh is not None and self.training and self.synchronised and self.broadcast_buffers:
            leaves, _ = tree.flatten(self.module)
            tree.assign(self.module, [self._of_rank_0(trace, leaf) for leaf in leaves])
        return self.module(*inputs, **kwargs)

    def _of_rank_0(self, trace, leaf):
        if leaf.parameter or leaf.value.dtype.kind != "float":
            return leaf.value
        return trace.tensor(replicas.of_first(trace, trace.value(leaf.value), self.mesh))

    def value_of(self, trace, value):
        """The loss of this rank, which is not averaged."""
        return value

    def gradient_of(self, trace, gradient):
        """The gradient averaged over ranks; unreduced inside a nested derivative, whose outer gradient is reduced."""
        if self.mesh is None or len(trace.frames) > 1:
            return gradient
        trace.fusion = self.fusion
        return replicas.averaged(trace, gradient, self.mesh, held=not self.synchronised)

    def check_used(self, unused):
        """Raises ArgumentError if the loss leaves out parameters, unless find_unused_parameters is set."""
        if unused and not self.find_unused:
            raise refuse(ArgumentError, f"the loss does not use {', '.join(map(repr, unused[:3]))}{', ...' if len(unused) > 3 else ''}; "
                                        "give find_unused_parameters=True, which makes such gradients zero")


class DataParallel(Module):
    """`module` on several devices of one process. The first device, the master, holds the parameters.

    Each call sends parameters from the master to all devices and returns gradients and results to it: its traffic grows
    with the number of devices, unlike that of DistributedDataParallel.

    Parameters and buffers are on device_ids[0]. A call splits the first axis of its inputs (arrays and tensors) into
    one part per device, rounded up, and concatenates results along it on the master. Buffer updates are those of the
    first part. `module` is the wrapped module.

    Raises ArgumentError if `module` is not a Module, device_ids are not distinct, output_device is not the first of
    them, or the inputs' first axis has fewer rows than devices.
    """

    def __init__(self, module: Module, device_ids: Sequence[int], output_device: int | None = None):
        super().__init__()
        if not isinstance(module, Module):
            raise refuse(ArgumentError, f"DataParallel wraps a Module, not {module!r}")
        if not isinstance(device_ids, (list, tuple, range)) or not device_ids:
            raise refuse(ArgumentError, f"device_ids {device_ids!r} of DataParallel is not a list of devices")
        if output_device is not None and output_device != device_ids[0]:
            raise refuse(ArgumentError, f"output_device {output_device!r} is not the master, device {device_ids[0]}")
        whole = ProcessMesh(list(device_ids), ["dp"])
        self.meshes = [ProcessMesh([id], ["device"], f"device{id}") for id in whole.process_ids]
        self.module = placed_parameters(module, self.meshes[0], lambda name, tensor: None)

    def forward(self, *inputs, **kwargs):
        if current() is None:
            raise refuse(ArgumentError, "DataParallel must be called inside jit or value_and_grad, which make one program of all devices")
        rows = [asarray(x).shape[:1] for x in inputs if tree.is_array(x)]
        count = len(self.meshes)
        if len(set(rows)) != 1 or not rows[0] or rows[0][0] < count:
            raise refuse(ArgumentError, f"DataParallel over {count} devices takes inputs of equal length along the "
                                        "first axis, at least one row per "
                                        f"device, not {[row[0] if row else 'none' for row in rows]}")
        size = -(-rows[0][0] // count)
        leaves, results = tree.flatten(self.module)[0], []
        for i, mesh in enumerate(self.meshes):
            begin, end = min(i * size, rows[0][0]), min((i + 1) * size, rows[0][0])
            if begin == end:
                break
            replica = tree.rebuild(self.module, [self._sent(leaf.value, mesh) for leaf in leaves])
            result = replica(*[self._sent(asarray(x)[begin:end], mesh) if tree.is_array(x) else x for x in inputs], **kwargs)
            results.append(tree.map(lambda value: self._sent(asarray(value), self.meshes[0]), result))
            if i == 0:
                tree.assign(self.module, [before.value if before.parameter else after.value
                                          for before, after in zip(leaves, tree.flatten(replica)[0])])
        return tree.map(lambda *parts: ops.concat(parts, 0), *results)

    def _sent(self, tensor, mesh):
        if tensor.mesh is None:
            tensor = shard_tensor(tensor, self.meshes[0], [Replicate()])
        return tensor if tensor.mesh == mesh else reshard(tensor, mesh, [Replicate()])


def _checked(module, mesh, device_ids, broadcast_buffers, bucket_cap_mb, find_unused_parameters):
    """(mesh, device_ids) of both forms, checked; a list given as the mesh is device_ids."""
    if not isinstance(module, Module):
        raise refuse(ArgumentError, f"DistributedDataParallel wraps a Module, not {module!r}")
    for name, value in (("broadcast_buffers", broadcast_buffers), ("find_unused_parameters", find_unused_parameters)):
        if not isinstance(value, bool):
            raise refuse(ArgumentError, f"{name} {value!r} of DistributedDataParallel is not True or False")
    if bucket_cap_mb is not None and (isinstance(bucket_cap_mb, bool) or not isinstance(bucket_cap_mb, (int, float)) or not bucket_cap_mb >= 0):
        raise refuse(ArgumentError, f"bucket_cap_mb {bucket_cap_mb!r} of DistributedDataParallel is not a number of MiB, at least 0")
    if isinstance(mesh, (list, tuple, range)) and device_ids is None:
        mesh, device_ids = None, mesh
    return mesh, device_ids


def _fusion(megabytes: float | None) -> str | None:
    """Options of dist-fuse-collectives for buckets of that many MiB; below 1 MiB each gradient is its own bucket."""
    return None if megabytes is None else f"all-reduce=ready all-reduce-config={int(megabytes)}"


def _check_ranks(module: Module) -> None:
    """Raises ArgumentError on all ranks if their models differ."""
    by_rank: list = [None] * dist.get_world_size()
    dist.all_gather_object(by_rank, [[name, list(t.shape), str(t.dtype)] for name, t in [*module.named_parameters(), *module.named_buffers()]])
    for rank, other in enumerate(by_rank):
        _compare([tuple(each) for each in by_rank[0]], [tuple(each) for each in other], rank)


def _check_split(module: Module, devices: list[int]) -> bool:
    """Whether parameters are placed on the devices of this process. Raises ArgumentError for other meshes."""
    placed = [(name, tensor.mesh) for name, tensor in module.named_parameters() if tensor.is_distributed]
    for name, mesh in placed:
        if isinstance(mesh, replicas.RankMesh) and mesh.devices_each == len(devices):
            continue  # already wrapped
        if len(devices) == 1:
            raise refuse(ArgumentError, f"'{name}' is on a mesh; between processes parameters are dense, on one device per process")
        if mesh.ndim != 1 or list(mesh.process_ids) != devices:
            raise refuse(ArgumentError, f"'{name}' is on {mesh!r}; parameters of a process are on a one-axis mesh of "
                                        f"its device_ids {devices}")
    return bool(placed)


def _check_device_counts(devices: int) -> int:
    """The number of devices. Raises ArgumentError on all ranks if ranks have different numbers."""
    if dist.get_world_size() > 1:
        by_rank: list = [None] * dist.get_world_size()
        dist.all_gather_object(by_rank, devices)
        if len(set(by_rank)) > 1:
            other = next(rank for rank, number in enumerate(by_rank) if number != by_rank[0])
            raise refuse(ArgumentError, f"rank 0 has {by_rank[0]} devices in device_ids and rank {other} has "
                                        f"{by_rank[other]}; all ranks must have the same number")
    return devices


def _broadcast_values(module: Module, sharding_of) -> None:
    """Broadcasts rank 0's values to all ranks, once per element type."""
    leaves, _ = tree.flatten(module)
    arrays = [np.ascontiguousarray(leaf.value._concrete("wrapping")) for leaf in leaves]
    values = list(arrays)
    for kind in dict.fromkeys(array.dtype for array in arrays):
        places = [i for i, array in enumerate(arrays) if array.dtype == kind]
        flat = np.concatenate([arrays[i].reshape(-1) for i in places]).view(np.uint8)
        dist.broadcast(flat, 0)
        at = 0
        for i in places:
            values[i] = flat[at:at + arrays[i].nbytes].view(kind).reshape(arrays[i].shape).copy()
            at += arrays[i].nbytes
    tree.assign(module, [from_array(value, leaf.value.dtype, sharding_of(leaf.value)) for value, leaf in zip(values, leaves)])


def accumulate(total, more):
    """The sum of two trees, leaf by leaf; `total` None starts the sum. Leaves that are partial in `more` stay partial.
    """
    if total is None:
        return more

    def add(a, b):
        a, b = asarray(a), asarray(b)
        if a._own is not None and b._own is not None:
            return run_eagerly(_added_own, (a, b), {}) if current() is None else _added_own(current(), a, b)
        partial = next((t.sharding for t in (a, b) if t.placements is not None and any(isinstance(p, Partial) for p in t.placements)), None)
        if partial is None:
            return a + b
        if current() is None:
            return run_eagerly(_added, (a, b, partial), {})
        return _added(current(), a, b, partial)
    return tree.map(add, total, more)


def _added_own(trace, a, b):
    """The sum of two means over ranks, as the mean of the ranks' sums: one reduction."""
    return replicas.averaged(trace, ops.add(a._own.tensor, b._own.tensor), a._own.mesh, a._own.held and b._own.held)


def _added(trace, a, b, sharding):
    a, b = [t if t.sharding == sharding else trace.constrained(t, sharding, by_user=False) for t in (a, b)]
    return trace.constrained(ops.add(a, b), sharding, by_user=False)


def check_replicas(*models: Module) -> None:
    """Raises ArgumentError, naming the first different parameter, unless all models have equal names, shapes and types.
    """
    first = [(name, p.shape, p.dtype) for name, p in models[0].named_parameters()]
    for rank, model in enumerate(models[1:], 1):
        _compare(first, [(name, p.shape, p.dtype) for name, p in model.named_parameters()], rank)


def _compare(first: list, other: list, rank: int) -> None:
    for a, b in zip([*first, None], [*other, None]):
        if a != b:
            say = lambda p: f"'{p[0]}' {p[2]} {tuple(p[1])}" if p else "nothing"
            raise refuse(ArgumentError, f"models differ: rank 0 has {say(a)} where rank {rank} has {say(b)}")
