# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Differentiable collectives on PyTorch tensors, and the all-reduce of sparse tensors.

Computing the gradient of a call is a call of all ranks, too. As in Horovod, it is the gradient of the mean of all
ranks' losses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from .. import collectives as base
from ...errors import ArgumentError
from ..compression import Compression
from ..process_sets import ProcessSet, global_process_set
from ..reductions import Average, ReduceOp, Sum, factor, reduction


class _Call(torch.autograd.Function):
    """A call with results run(tensors), and gradients of the tensors gradient(gradients of the results)."""

    @staticmethod
    def forward(ctx, run, gradient, *tensors):
        ctx.gradient = gradient
        results = tuple(run(list(tensors)))
        ctx.mark_non_differentiable(*[result for result in results if not result.is_floating_point()])
        return results

    @staticmethod
    def backward(ctx, *gradients):
        return None, None, *ctx.gradient([each.contiguous() for each in gradients])


def _has_gradient(tensors) -> bool:
    return isinstance(tensors, (list, tuple)) and torch.is_grad_enabled() and any(isinstance(t, torch.Tensor) and t.requires_grad for t in tensors)


def _apply(run: Callable, gradient: Callable, tensors: Sequence) -> list:
    return list(_Call.apply(run, gradient, *tensors)) if _has_gradient(tensors) else run(list(tensors))


def _named(name: str | None, what: str = "gradient") -> str | None:
    return None if name is None else f"{name}.{what}"


def _linear(what: str, op, average=None) -> ReduceOp:
    found = reduction(op, average)
    if found not in (Average, Sum):
        raise ArgumentError(f"{what} by {found} of a tensor that requires a gradient; only Average and Sum have gradients: pass the tensor's detach()")
    return found


def allreduce(tensor, average: bool | None = None, name: str | None = None, compression=Compression.none, op: ReduceOp | None = None,
              prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set):
    """`allreduce` of tessera.horovod; the gradient is the same reduction of the gradients."""
    if not _has_gradient([tensor]):
        return base.allreduce(tensor, average, name, compression, op, prescale_factor, postscale_factor, process_set)
    return grouped_allreduce([tensor], average, name, compression, op, prescale_factor, postscale_factor, process_set)[0]


def grouped_allreduce(tensors, average: bool | None = None, name: str | None = None, compression=Compression.none, op: ReduceOp | None = None,
                      prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> list:
    """`grouped_allreduce` of tessera.horovod, with gradients as those of `allreduce`."""
    if not _has_gradient(tensors):
        return base.grouped_allreduce(tensors, average, name, compression, op, prescale_factor, postscale_factor, process_set)
    chosen = _linear("allreduce", op, average)
    scales = dict(op=chosen, prescale_factor=prescale_factor, postscale_factor=postscale_factor, process_set=process_set)
    return _apply(lambda ts: base.grouped_allreduce(ts, name=name, compression=compression, **scales),
                  lambda gs: base.grouped_allreduce(gs, name=_named(name), **scales), tensors)


def allgather(tensor, name: str | None = None, process_set: ProcessSet = global_process_set):
    """`allgather` of tessera.horovod; the gradient is this rank's rows of the averaged gradients."""
    return grouped_allgather([tensor], name, process_set)[0] if _has_gradient([tensor]) else base.allgather(tensor, name, process_set)


def grouped_allgather(tensors, name: str | None = None, process_set: ProcessSet = global_process_set) -> list:
    """`grouped_allgather` of tessera.horovod, with gradients as those of `allgather`."""
    if not _has_gradient(tensors):
        return base.grouped_allgather(tensors, name, process_set)

    def gradient(gs):
        rows = base.allgather(torch.tensor([[t.shape[0] for t in tensors]]), _named(name, "rows"), process_set)
        means = base.grouped_allreduce(gs, name=_named(name), op=Average, process_set=process_set)
        before = rows[:process_set.rank()].sum(0).tolist()
        return [mean.narrow(0, at, t.shape[0]) for mean, at, t in zip(means, before, tensors)]
    return _apply(lambda ts: base.grouped_allgather(ts, name, process_set), gradient, tensors)


def broadcast(tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set):
    """`broadcast` of tessera.horovod; the gradient is the averaged gradients on the root, and zeros on other ranks."""
    def gradient(gs):
        mean = base.allreduce(gs[0], name=_named(name), op=Average, process_set=process_set)
        return [mean if process_set.ranks[process_set.rank()] == root_rank else torch.zeros_like(mean)]
    return _apply(lambda ts: [base.broadcast(ts[0], root_rank, name, process_set)], gradient, [tensor])[0]


def alltoall(tensor, splits=None, name: str | None = None, process_set: ProcessSet = global_process_set):
    """`alltoall` of tessera.horovod; the gradient sends the parts back."""
    if not _has_gradient([tensor]):
        return base.alltoall(tensor, splits, name, process_set)
    size = process_set.size()
    if splits is None and tensor.dim() and tensor.shape[0] % size == 0:
        parts = torch.full((size,), tensor.shape[0] // size)
    else:
        parts = splits
    received: list = []

    def run(ts):
        result, rows = base.alltoall(ts[0], parts, name, process_set)
        received.append(rows)
        return [result, rows]
    result, rows = _apply(run, lambda gs: [base.alltoall(gs[0], received[0], _named(name), process_set)[0]], [tensor])
    return result if splits is None else (result, rows)


def reducescatter(tensor, op: ReduceOp | None = None, name: str | None = None, compression=Compression.none, prescale_factor: float = 1.0,
                  postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set):
    """`reducescatter` of tessera.horovod; the gradient is gathered from all ranks."""
    if not _has_gradient([tensor]):
        return base.reducescatter(tensor, op, name, compression, prescale_factor, postscale_factor, process_set)
    return grouped_reducescatter([tensor], op, name, compression, prescale_factor, postscale_factor, process_set)[0]


def grouped_reducescatter(tensors, op: ReduceOp | None = None, name: str | None = None, compression=Compression.none,
                          prescale_factor: float = 1.0, postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> list:
    """`grouped_reducescatter` of tessera.horovod, with gradients as those of `reducescatter`."""
    if not _has_gradient(tensors):
        return base.grouped_reducescatter(tensors, op, name, compression, prescale_factor, postscale_factor, process_set)
    chosen = _linear("reducescatter", op)
    by = factor("prescale_factor", prescale_factor) * factor("postscale_factor", postscale_factor) * (process_set.size() if chosen is Sum else 1)
    return _apply(lambda ts: base.grouped_reducescatter(ts, chosen, name, compression, prescale_factor, postscale_factor, process_set),
                  lambda gs: base.grouped_allgather([g * by for g in gs], _named(name), process_set), tensors)


def sparse_allreduce_async(tensor, name: str | None = None, op: ReduceOp | None = None, process_set: ProcessSet = global_process_set) -> Callable:
    """Start the Average or Sum of sparse tensors. Returns a function that waits for and returns the result.

    The result is a sparse tensor with the indices of all ranks.
    """
    if not isinstance(tensor, torch.Tensor) or not tensor.is_sparse:
        raise ArgumentError("sparse_allreduce_async takes a sparse PyTorch tensor (COO); use allreduce_async for others")
    chosen = reduction(op)
    if chosen not in (Average, Sum):
        raise ArgumentError(f"sparse_allreduce_async by {chosen}; expected Average or Sum")
    indices = base.allgather_async(tensor._indices().t().contiguous(), _named(name, "indices"), process_set)
    values = base.allgather_async(tensor._values(), _named(name, "values"), process_set)

    def wait():
        found = values.wait()
        if chosen is Average:
            found = found / process_set.size()
        return torch.sparse_coo_tensor(indices.wait().t(), found, tensor.shape, check_invariants=True)
    return wait
