# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DistributedDataParallel for PyTorch modules between the processes of tessera.distributed.

A script changes only its imports. Autograd computes; gradients are averaged in buckets during the backward pass (Li et
al., PyTorch Distributed, VLDB 2020). Modules of tessera.nn, and those imported by `from_torch`, are compiled instead.
"""

from __future__ import annotations

import contextlib
import copy
import weakref

import torch
from torch.autograd import Variable

from .. import distributed as dist
from ..distributed.collectives import refuse
from ..errors import ArgumentError, Error

MIB = 1 << 20


class GradientError(Error, RuntimeError):
    """A gradient that is missing, or was computed twice, in a backward pass that averages gradients."""


class _Bucket:
    """Parameters of one dtype and device whose gradients are reduced in one all-reduce."""

    def __init__(self, parameters: list):
        self.parameters = parameters
        self.start()

    def start(self) -> None:
        self.missing, self.flat, self.work = len(self.parameters), None, None

    def launch(self, group) -> None:
        """Starts the all-reduce; a missing gradient counts as zeros."""
        parts = [(torch.zeros_like(p) if p.grad is None else p.grad).detach().reshape(-1) for p in self.parameters]
        self.flat = torch.cat(parts).cpu()
        self.work = dist.all_reduce(self.flat, dist.ReduceOp.AVG, group, async_op=True)

    def finish(self, is_used) -> None:
        """Waits, and copies the means to the parameters that some rank used."""
        self.work.wait()
        flat, at = self.flat, 0
        self.start()
        for p in self.parameters:
            mean = flat[at:at + p.numel()].view(p.shape)
            at += p.numel()
            if is_used(p):
                if p.grad is None:
                    p.grad = torch.empty_like(p)
                p.grad.copy_(mean)


class DistributedDataParallel(torch.nn.Module):
    """`module` with gradients averaged over all ranks of process_group (default: the job), one replica per process.

    The constructor compares the parameters and buffers of all ranks and broadcasts rank 0's. A backward pass reduces
    gradients in buckets, first in reverse order of the parameters, then in the order of rank 0's first backward pass.

    device_ids: the one device of this process, to which inputs are moved if the module is on a GPU. Gradients are reduced
        through host memory.
    broadcast_buffers: each forward pass in training starts with rank 0's buffers.
    bucket_cap_mb: MiB per bucket (default 25; 0: one bucket per gradient).
    find_unused_parameters: ranks without a gradient of a parameter count as zero, and a parameter that no rank uses keeps
        its gradient. Else a missing gradient is an error on all ranks at the end of the backward pass.
    dim, gradient_as_bucket_view, static_graph: accepted and ignored.

    Raises ArgumentError for invalid arguments, and on all ranks if models differ, naming the first parameter that does.
    """

    def __init__(self, module: torch.nn.Module, device_ids=None, output_device=None, dim: int = 0, broadcast_buffers: bool = True,
                 init_sync: bool = True, process_group=None, bucket_cap_mb: float | None = None, find_unused_parameters: bool = False,
                 gradient_as_bucket_view: bool = False, static_graph: bool = False):
        super().__init__()
        if not isinstance(module, torch.nn.Module):
            raise ArgumentError(f"DistributedDataParallel of tessera.torch wraps a module of PyTorch, not {type(module).__name__}; "
                                "tessera.DistributedDataParallel wraps those of tessera.nn")
        self.process_group = dist.group.world() if process_group is None else process_group
        self.device_ids, self.output_device = _devices(device_ids, output_device)
        for name, value in (("broadcast_buffers", broadcast_buffers), ("find_unused_parameters", find_unused_parameters)):
            if not isinstance(value, bool):
                raise ArgumentError(f"{name} {value!r} of DistributedDataParallel is not True or False")
        cap = 25 if bucket_cap_mb is None else bucket_cap_mb
        if isinstance(cap, bool) or not isinstance(cap, (int, float)) or not cap >= 0:
            raise ArgumentError(f"bucket_cap_mb {bucket_cap_mb!r} of DistributedDataParallel is not a number of MiB, at least 0")
        self.module, self.broadcast_buffers, self.find_unused_parameters = module, broadcast_buffers, find_unused_parameters
        self._names = {p: name for name, p in module.named_parameters() if p.requires_grad}
        if not self._names:
            raise ArgumentError("no parameter of the module requires a gradient; call the module itself")
        if init_sync:
            _check_ranks(module, self.process_group)
            _broadcast_values([*module.parameters(), *module.buffers()], self.process_group)
        self._cap, self._order, self._is_rebuilt = int(cap * MIB), list(reversed(self._names)), find_unused_parameters
        self.require_backward_grad_sync, self._reduces, self._is_reducing = True, False, False
        self._build(self._order)
        self._listen()

    def _listen(self) -> None:
        """Registers gradient hooks.

        They refer to this module weakly: tensors keep their hooks out of the garbage collector's sight.
        """
        hook = weakref.WeakMethod(self._hook)
        for p in self._names:
            p.register_post_accumulate_grad_hook(lambda p: (call := hook()) and call(p))

    def __deepcopy__(self, memo):
        """An independent model in the same group, for moving averages."""
        made = memo[id(self)] = type(self).__new__(type(self))
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        made._listen()
        return made

    def _build(self, order) -> None:
        """Builds buckets of parameters in the given order; a bucket ends at the cap, and where dtype or device change.
        """
        buckets, size = [], 0
        for p in order:
            last = buckets[-1][-1] if buckets else None
            if last is None or (p.dtype, p.device) != (last.dtype, last.device) or size + p.numel() * p.element_size() > self._cap:
                buckets.append([])
                size = 0
            buckets[-1].append(p)
            size += p.numel() * p.element_size()
        self._buckets = [_Bucket(each) for each in buckets]
        self._bucket_of = {p: bucket for bucket in self._buckets for p in bucket.parameters}

    @property
    def buckets(self) -> list[list[str]]:
        """Names of the parameters of each bucket, in the order of the all-reduces."""
        return [[self._names[p] for p in bucket.parameters] for bucket in self._buckets]

    def forward(self, *inputs, **kwargs):
        self._reduces = self.require_backward_grad_sync and torch.is_grad_enabled()
        if self._reduces and self.training and self.broadcast_buffers:
            _broadcast_values(list(self.module.buffers()), self.process_group)
        if self.device_ids and next(iter(self._names)).is_cuda:
            inputs, kwargs = _moved(inputs, self.device_ids[0]), _moved(kwargs, self.device_ids[0])
        return self.module(*inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self):
        """Context manager: gradients accumulate on this rank; the next backward pass outside averages the sums."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield self
        finally:
            self.require_backward_grad_sync = before

    def _hook(self, p) -> None:
        if not self._reduces:
            return
        if not self._is_reducing:
            self._is_reducing, self._arrived, self._launched = True, {}, 0
            for bucket in self._buckets:
                bucket.start()
            Variable._execution_engine.queue_callback(self._finish)
        if p.grad.is_sparse:
            raise self._failed(f"the gradient of '{self._names[p]}' is sparse; make the embedding with sparse=False")
        if p in self._arrived:
            raise self._failed(f"the gradient of '{self._names[p]}' was computed twice in one backward pass")
        self._arrived[p] = None
        self._bucket_of[p].missing -= 1
        self._launch(False)

    def _launch(self, all_of_them: bool) -> None:
        """Starts complete buckets in order: all ranks reduce them in the same order."""
        while self._launched < len(self._buckets) and (all_of_them or not self._buckets[self._launched].missing):
            self._buckets[self._launched].launch(self.process_group)
            self._launched += 1

    def _finish(self) -> None:
        """Callback at the end of a backward pass."""
        try:
            absent = [name for p, name in self._names.items() if p not in self._arrived]
            if absent and not self.find_unused_parameters:
                raise self._failed(f"the loss does not use {', '.join(map(repr, absent[:3]))}{', ...' if len(absent) > 3 else ''}; give "
                                   "find_unused_parameters=True, which counts such gradients as zero")
            self._launch(True)
            used = dict.fromkeys(self._names, True)
            if self.find_unused_parameters:
                counts = torch.tensor([int(p in self._arrived) for p in self._names], dtype=torch.int32)
                dist.all_reduce(counts, group=self.process_group)
                used = {p: count > 0 for p, count in zip(self._names, counts.tolist())}
            self._wait(used.__getitem__)
            if not self._is_rebuilt:
                self._rebuild()
        finally:
            self._is_reducing = False

    def _wait(self, is_used) -> None:
        """Finishes all buckets, also after a failed all-reduce, and raises the first error."""
        failed = None
        for bucket in self._buckets:
            try:
                bucket.finish(is_used)
            except dist.DistributedError as error:
                failed = failed or error
        if failed:
            raise failed

    def _rebuild(self) -> None:
        """Rebuilds the buckets in the order of rank 0's gradients."""
        places = {p: i for i, p in enumerate(self._names)}
        order = torch.tensor([places[p] for p in self._arrived], dtype=torch.int64)
        dist.broadcast(order, self.process_group.ranks[0], self.process_group)
        parameters = list(self._names)
        self._build([parameters[i] for i in order.tolist()])
        self._is_rebuilt = True

    def _failed(self, reason: str) -> GradientError:
        """Fails the remaining all-reduces on all ranks, which keeps the ranks in step."""
        self._is_reducing = False
        for work in [refuse(self.process_group, "backward", reason) for _ in self._buckets[self._launched:]]:
            with contextlib.suppress(dist.DistributedError):
                work.wait()
        return GradientError(reason)


def _devices(device_ids, output_device):
    if device_ids is not None and (not isinstance(device_ids, (list, tuple)) or len(device_ids) != 1):
        raise ArgumentError(f"device_ids {device_ids!r} of DistributedDataParallel is not a list of the one device of "
                            "this process; modules of "
                            "tessera.nn may have several")
    ids = None if device_ids is None else list(device_ids)
    if output_device is not None and ids is not None and torch.device(output_device) != torch.device(ids[0]):
        raise ArgumentError(f"output_device {output_device!r} is not the device {ids[0]!r} of this process")
    return ids, output_device


def _moved(value, device):
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {name: _moved(each, device) for name, each in value.items()}
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_moved(each, device) for each in value)
    return value


def _check_ranks(module, group) -> None:
    """Raises ArgumentError on all ranks if their parameters or buffers differ."""
    mine = [[name, list(t.shape), str(t.dtype).removeprefix("torch."), "" if t.requires_grad or not is_parameter else " without gradient"]
            for is_parameter, tensors in ((True, module.named_parameters()), (False, module.named_buffers())) for name, t in tensors]
    by_rank: list = [None] * group.size()
    dist.all_gather_object(by_rank, mine, group)
    say = lambda p: f"'{p[0]}' {p[2]} {tuple(p[1])}{p[3]}" if p else "nothing"
    for place, other in enumerate(by_rank):
        for a, b in zip([*by_rank[0], *[None] * len(other)], [*other, *[None] * len(by_rank[0])]):
            if a != b:
                raise ArgumentError(f"models differ: rank {group.ranks[0]} has {say(a)} where rank {group.ranks[place]} has {say(b)}")


def _broadcast_values(tensors, group) -> None:
    """Broadcasts the first rank's values, once per dtype."""
    with torch.no_grad():
        for kind in dict.fromkeys(t.dtype for t in tensors):
            parts = [t for t in tensors if t.dtype == kind]
            flat = torch.cat([t.detach().reshape(-1).cpu() for t in parts])
            dist.broadcast(flat, group.ranks[0], group)
            if group.global_rank != group.ranks[0]:
                for t, part in zip(parts, flat.split([t.numel() for t in parts])):
                    t.copy_(part.view(t.shape))
