# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers over images, (batch, channels, height, width)."""

from __future__ import annotations

from .. import ops
from ..errors import ShapeError
from ..ops.base import tensor_of
from ..ops.distributed import shard_tensor
from ..sharding import Shard
from ..source import refuse
from . import init
from .layers import positive
from .module import Module


def _pair(value) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else tuple(value)


class Conv2d(Module):
    """weight (out, in / groups, height, width); padding: a number, a pair of numbers or of pairs, "same", "valid"."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, dilation=1, groups: int = 1, bias: bool = True,
                 dtype="float32"):
        super().__init__()
        positive("Conv2d", in_channels=in_channels, out_channels=out_channels, groups=groups)
        if in_channels % groups or out_channels % groups:
            raise refuse(ShapeError, f"Conv2d of {in_channels} to {out_channels} channels in {groups} groups: both are multiples of it")
        window = _pair(kernel_size)
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        inputs = in_channels // groups * window[0] * window[1]
        self.weight = init.fan_in((out_channels, in_channels // groups, *window), inputs, dtype)
        self.bias = init.fan_in((out_channels,), inputs, dtype) if bias else None

    def forward(self, x):
        return ops.conv(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class MaxPool2d(Module):
    """The greatest element of each window."""

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.window, self.stride, self.padding = _pair(kernel_size), stride, padding

    def forward(self, x):
        return ops.max_pool(x, self.window, self.stride, self.padding)


class AvgPool2d(Module):
    """The mean of each window."""

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.window, self.stride, self.padding = _pair(kernel_size), stride, padding

    def forward(self, x):
        return ops.avg_pool(x, self.window, self.stride, self.padding)


class BatchNorm(Module):
    """Mean 0 and variance 1 of each channel (axis 1) over all others, then weight and bias.

    While training over the batch, and the running mean and variance (buffers) move by `momentum`; else over those. The batch is
    the whole one: of a batch that is cut the sums are reduced. (`separate` makes it one of each part.)
    """

    def __init__(self, channels: int, eps: float = 1e-5, momentum: float = 0.1, dtype="float32"):
        super().__init__()
        positive("BatchNorm", channels=channels)
        self.eps, self.momentum, self.parts = eps, momentum, 1
        self.weight, self.bias = init.constant((channels,), 1, dtype), init.constant((channels,), 0, dtype)
        self.register_buffer("running_mean", init.constant((channels,), 0, dtype))
        self.register_buffer("running_var", init.constant((channels,), 1, dtype))

    def forward(self, x):
        x = tensor_of(x, "BatchNorm")
        if x.ndim < 2 or x.shape[1] != self.weight.shape[0]:
            raise refuse(ShapeError, f"BatchNorm of {self.weight.shape[0]} channels takes (batch, channels, ...), not shape {x.shape}")
        shape, mean, var = x.shape, self.running_mean, self.running_var
        along = lambda t: t.reshape((*t.shape[:-1], *(1,) * (t.ndim - 1), -1) + (1,) * (len(shape) - 2))
        if self.parts > 1:
            if shape[0] % self.parts:
                raise refuse(ShapeError, f"BatchNorm of {self.parts} separate parts takes a batch that they divide, not shape {shape}")
            x = x.reshape((self.parts, shape[0] // self.parts, *shape[1:]))
        if self.training:
            channel = x.ndim - len(shape) + 1
            axes = tuple(d for d in range(channel > 1, x.ndim) if d != channel)
            mean, var = ops.mean(x, axes), ops.var(x, axes)
            count = x.size // (self.parts * shape[1])
            keep = 1 - self.momentum
            self.running_mean = self.running_mean * keep + ops.stop_gradient(mean) * self.momentum
            self.running_var = self.running_var * keep + ops.stop_gradient(var) * (self.momentum * count / max(1, count - 1))
        return ((x - along(mean)) * along(ops.rsqrt(var + self.eps) * self.weight) + along(self.bias)).reshape(shape)

    def separate(self, mesh, placements) -> None:
        """Statistics of each process' part of the batch, in place of the whole one: buffers (parts, channels), a row a process of
        the axis that `placements` cut the batch over."""
        axis = next(i for i, p in enumerate(placements) if isinstance(p, Shard))
        self.parts = mesh.shape[axis]
        for name in ("running_mean", "running_var"):
            rows = ops.broadcast_to(getattr(self, name).unshard(), (self.parts, self.weight.shape[0]))
            placed = shard_tensor(rows, mesh, placements)
            placed._used()
            setattr(self, name, placed)
