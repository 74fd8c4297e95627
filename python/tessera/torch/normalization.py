# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SyncBatchNorm for PyTorch: batch statistics over several processes."""

from __future__ import annotations

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from .. import distributed as dist
from .. import replicas
from ..errors import ArgumentError, ShapeError


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over the batches of several ranks, which may have different sizes.

    The forward pass reduces mean and variance, the backward pass the two sums of their gradients. comm_scope: 1: all
    ranks, or those of process_group; 0: the ranks of this node. Statistics of 16-bit inputs are computed in float32.
    `convert_sync_batchnorm(module)` replaces each BatchNorm of a module.

    Raises ArgumentError for other scopes, ShapeError for inputs with other channels.
    """

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, process_group=None, comm_scope: int = 1, device=None, dtype=None):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype)
        if isinstance(comm_scope, bool) or comm_scope not in (0, 1):
            raise ArgumentError(f"comm_scope {comm_scope!r} of SyncBatchNorm is not 0 (the ranks of a node) or 1 (all)")
        if process_group is not None and comm_scope == 0:
            raise ArgumentError("process_group and comm_scope 0 both select the ranks that share statistics; give one of them")
        self.process_group, self.comm_scope = process_group, comm_scope

    def _group(self):
        """The group of ranks that share statistics. The first call with scope 0 is collective."""
        if self.process_group is None and self.comm_scope == 0:
            self.process_group = _of_node()
        return self.process_group

    def _sum(self, values: torch.Tensor, what: str) -> torch.Tensor:
        """The sum over the group; `what` names the pass."""
        host = values.cpu() if values.is_cuda else values.clone()
        dist.all_reduce(host, group=self._group())
        return host.to(values.device)

    def _check_input_dim(self, x) -> None:
        if x.dim() < 2 or x.shape[1] != self.num_features:
            raise ShapeError(f"SyncBatchNorm of {self.num_features} channels takes (batch, channels, ...), not shape {tuple(x.shape)}")

    def forward(self, x):
        self._check_input_dim(x)
        uses_batch = self.training or self.running_mean is None
        if not uses_batch:
            return torch.nn.functional.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps)
        result, mean, variance, count = _Normalise.apply(x, self.weight, self.bias, self.eps, self._sum)
        if self.training and self.track_running_stats:
            self.num_batches_tracked += 1
            factor = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
            with torch.no_grad():
                unbiased = variance * (count / (count - 1).clamp(min=1))
                self.running_mean.lerp_(mean.to(self.running_mean.dtype), factor)
                self.running_var.lerp_(unbiased.to(self.running_var.dtype), factor)
        return result

    @classmethod
    def convert_sync_batchnorm(cls, module: torch.nn.Module, process_group=None, **options) -> torch.nn.Module:
        """`module` with each BatchNorm inside replaced by this class; a BatchNorm itself is returned as one.

        Options are those of the constructor.
        """
        made = module
        if isinstance(module, _BatchNorm) and not isinstance(module, cls):
            if process_group is not None:
                options = {**options, "process_group": process_group}
            made = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, **options)
            made.weight, made.bias = module.weight, module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(made, name, getattr(module, name))
            made.train(module.training)
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group, **options))
        return made


def _of_node():
    """The group of this node's ranks. Collective: all ranks create all groups."""
    mesh = replicas.mesh_of_job()
    if mesh is None:
        return None
    if "local" not in mesh.dim_names:
        raise ArgumentError("SyncBatchNorm of comm_scope 0 in a job whose nodes have different numbers of ranks; use comm_scope 1")
    world = dist.group.world()
    if "node_group" not in world.__dict__:
        count = mesh.shape[mesh.axis("local")]
        groups = [dist.new_group(mesh.process_ids[i:i + count]) for i in range(0, len(mesh.process_ids), count)]
        world.node_group = next(each for each in groups if each is not dist.NON_GROUP_MEMBER)
    return world.node_group


class _Normalise(torch.autograd.Function):
    """(x, weight, bias, eps, sum) -> normalized batch, mean, variance and number of elements per channel over all
    ranks.

    The variance is a second sum, of squared deviations from the global mean, so that large means lose no precision.
    """

    @staticmethod
    def forward(ctx, x, weight, bias, eps, total):
        wide = torch.promote_types(x.dtype, torch.float32)
        axes = [d for d in range(x.dim()) if d != 1]
        along = lambda t: t.view(1, -1, *[1] * (x.dim() - 2))
        values = x.to(wide)
        count = values.new_tensor([x.numel() // x.shape[1]])
        sums = total(torch.cat([values.sum(axes), count]), "mean")
        count, mean = sums[-1], sums[:-1] / sums[-1]
        variance = total((values - along(mean)).square().sum(axes), "variance") / count
        scale = torch.rsqrt(variance + eps)
        normal = (values - along(mean)) * along(scale)
        ctx.save_for_backward(normal, weight, scale, count)
        ctx.total, ctx.axes, ctx.along = total, axes, along
        ctx.mark_non_differentiable(mean, variance, count)
        result = normal if weight is None else normal * along(weight.to(wide)) + along(bias.to(wide))
        return result.to(x.dtype), mean, variance, count

    @staticmethod
    def backward(ctx, gradient, *_):
        normal, weight, scale, count = ctx.saved_tensors
        along, channels, wide = ctx.along, normal.shape[1], gradient.to(normal.dtype)
        bias_sum, weight_sum = wide.sum(ctx.axes), (wide * normal).sum(ctx.axes)
        for_x = None
        if ctx.needs_input_grad[0]:
            means = ctx.total(torch.cat([bias_sum, weight_sum]), "gradient") / count
            factor = scale if weight is None else scale * weight.to(normal.dtype)
            for_x = ((wide - along(means[:channels]) - normal * along(means[channels:])) * along(factor)).to(gradient.dtype)
        if weight is None:
            return for_x, None, None, None, None
        return for_x, weight_sum.to(weight.dtype), bias_sum.to(weight.dtype), None, None
