# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batch normalization: over a program's batch, over parts of it, or over the batches of a job's ranks."""

from __future__ import annotations

from collections.abc import Sequence

from .. import ops, replicas, tree
from ..control import custom_gradient
from ..errors import ArgumentError, ShapeError
from ..ops.base import tensor_of
from ..ops.distributed import shard_tensor
from ..sharding import Shard
from ..source import refuse
from ..tensor import Tensor
from ..trace import current
from . import init
from .layers import positive
from .module import Module


class BatchNorm(Module):
    """Normalizes each channel (axis 1) over all other axes, then applies weight and bias, both (channels,).

    In training it uses the statistics of the batch and updates running mean and variance (buffers) by `momentum`; in
    evaluation it uses those. The batch is that of the program: if it is sharded the sums are reduced (`separate` uses
    each part's own); between processes it is that of this process.
    """

    def __init__(self, channels: int, eps: float = 1e-5, momentum: float = 0.1, dtype="float32"):
        super().__init__()
        positive(type(self).__name__, channels=channels)
        self.eps, self.momentum, self.parts = eps, momentum, 1
        self.weight, self.bias = init.constant((channels,), 1, dtype), init.constant((channels,), 0, dtype)
        self.register_buffer("running_mean", init.constant((channels,), 0, dtype))
        self.register_buffer("running_var", init.constant((channels,), 1, dtype))

    def forward(self, x):
        name = type(self).__name__
        x = tensor_of(x, name)
        if x.ndim < 2 or x.shape[1] != self.weight.shape[0]:
            raise refuse(ShapeError, f"{name} of {self.weight.shape[0]} channels takes (batch, channels, ...), not shape {x.shape}")
        shape, parts = x.shape, self._parts(x)
        along = lambda t: t.reshape((*t.shape[:-1], *(1,) * (t.ndim - 1), -1) + (1,) * (len(shape) - 2))
        if parts > 1:
            if shape[0] % parts:
                raise refuse(ShapeError, f"{name} of {parts} separate parts takes a batch divisible by them, not shape {shape}")
            x = x.reshape((parts, shape[0] // parts, *shape[1:]))
        if self.training:
            channel = x.ndim - len(shape) + 1
            mean, var, count = self._moments(x, tuple(d for d in range(channel > 1, x.ndim) if d != channel), along)
            self._move(mean, var, count)
        else:
            mean, var = self.running_mean, self.running_var
        return ((x - along(mean)) * along(ops.rsqrt(var + self.eps) * self.weight) + along(self.bias)).reshape(shape)

    def _parts(self, x) -> int:
        """The number of parts of the batch with separate statistics."""
        return self.parts

    def _moments(self, x, axes, along):
        """Mean, variance, and the number of elements per channel."""
        return ops.mean(x, axes), ops.var(x, axes), x.size // (self._parts(x) * self.weight.shape[0])

    def _move(self, mean, var, count) -> None:
        """Updates the running statistics; the variance is unbiased (0 for a single element)."""
        keep = 1 - self.momentum
        self.running_mean = self.running_mean * keep + ops.stop_gradient(mean) * self.momentum
        self.running_var = self.running_var * keep + ops.stop_gradient(var) * (self.momentum * count / max(1, count - 1))

    def separate(self, mesh, placements) -> None:
        """Gives each process' part of the batch its own statistics.

        Buffers become (parts, channels), one row per process along the mesh axis that `placements` shard the batch
        over.
        """
        axis = next(i for i, p in enumerate(placements) if isinstance(p, Shard))
        self.parts = mesh.shape[axis]
        for name in ("running_mean", "running_var"):
            rows = ops.broadcast_to(getattr(self, name).unshard(), (self.parts, self.weight.shape[0]))
            placed = shard_tensor(rows, mesh, placements)
            placed._used()
            setattr(self, name, placed)


class SyncBatchNorm(BatchNorm):
    """Batch normalization over the batches of several devices, for small batches per device.

    comm_scope: 0: the devices of a node; 1: all. Between processes the ranks of a node, or of the job, share mean and
    variance in the forward pass and the sums of their gradients in the backward pass. In one program of all devices the
    batch is the whole one; with scope 0 on a mesh with the axis `node_axis` it is that of each position on the axis,
    and running statistics are averaged over nodes.

    Raises ArgumentError for other scopes, and for scope 0 in a job whose nodes have different numbers of ranks.
    """

    def __init__(self, channels: int, eps: float = 1e-5, momentum: float = 0.1, dtype="float32", comm_scope: int = 0, node_axis: str = "node"):
        super().__init__(channels, eps, momentum, dtype)
        if isinstance(comm_scope, bool) or comm_scope not in (0, 1):
            raise refuse(ArgumentError, f"comm_scope {comm_scope!r} of SyncBatchNorm is not 0 (the devices of a node) or 1 (all)")
        self.comm_scope, self.node_axis = comm_scope, node_axis

    @classmethod
    def convert(cls, module: Module, comm_scope: int = 0, node_axis: str = "node") -> Module:
        """`module` with SyncBatchNorm in place of each BatchNorm, also of itself."""
        known: dict[int, tuple] = {}  # a shared layer stays shared

        def visit(value):
            if id(value) in known:
                return known[id(value)][1]
            if type(value) is BatchNorm:
                made = cls(value.weight.shape[0], value.eps, value.momentum, value.weight.dtype, comm_scope, node_axis)
                made.train(value.training)
                for name in ("weight", "bias", "running_mean", "running_var"):
                    setattr(made, name, getattr(value, name))
                known[id(value)] = value, made
                return made
            for key, child in (tree.children(value) or (None, None, (), ()))[2]:
                made = visit(child)
                if made is not child:
                    (value.__setitem__ if isinstance(value, (list, dict)) else value.__setattr__)(key, made)
            return value
        return visit(module)

    def _mesh(self, x):
        """The mesh of the ranks that share statistics; None if the program has the whole batch."""
        return replicas.mesh_of_job() if x.mesh is None and replicas.is_between_processes() else None

    def _parts(self, x) -> int:
        if self.comm_scope == 0 and x.mesh is not None and self.node_axis in x.mesh.dim_names:
            return x.mesh.shape[x.mesh.axis(self.node_axis)]
        return 1

    def _moments(self, x, axes, along):
        mesh = self._mesh(x)
        if mesh is None:
            return super()._moments(x, axes, along)
        if current() is None:
            raise refuse(ArgumentError, "SyncBatchNorm trains only inside jit or value_and_grad, whose programs run on all ranks")
        if self.comm_scope == 0 and "local" not in mesh.dim_names:
            raise refuse(ArgumentError, "SyncBatchNorm of comm_scope 0 in a job whose nodes have different numbers of ranks; use comm_scope 1")
        shared = mesh.dim_names if self.comm_scope else ["local"]
        mean = _shared(ops.mean(x, axes), mesh, shared)
        var = _shared(ops.mean(ops.square(x - along(mean)), axes), mesh, shared)
        count = x.size // self.weight.shape[0]
        for name in shared:
            count *= mesh.shape[mesh.axis(name)]
        return mean, var, count

    def _move(self, mean, var, count):
        if mean.ndim > 1:
            mean, var = ops.mean(mean, 0), ops.mean(var, 0)
        super()._move(mean, var, count)


def _shared(x: Tensor, mesh, axes: Sequence[str]) -> Tensor:
    """The mean over ranks, with the mean over ranks as its derivative: each rank's result depends on the values of all.
    """
    def mean(x):
        trace = current()
        return trace.tensor(replicas.mean(trace, trace.value(x), mesh, axes))
    return custom_gradient(mean, lambda arguments, results, cotangents: (mean(cotangents[0]),))(x)
