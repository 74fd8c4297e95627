# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers for images, (batch, channels, height, width)."""

from __future__ import annotations

from .. import ops
from ..errors import ShapeError
from ..ops.base import tensor_of
from ..source import refuse
from . import init
from .layers import positive
from .module import Module


def _pair(value) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else tuple(value)


class Conv2d(Module):
    """2-D convolution, (batch, in_channels, height, width) -> (batch, out_channels, height', width').

    weight: (out_channels, in_channels / groups, kernel height, kernel width); bias: (out_channels,). padding: a number,
    a number or pair (before, after) per axis, "same" or "valid". Raises ShapeError if groups does not divide both
    channel counts.
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, dilation=1, groups: int = 1, bias: bool = True,
                 dtype="float32"):
        super().__init__()
        positive("Conv2d", in_channels=in_channels, out_channels=out_channels, groups=groups)
        if in_channels % groups or out_channels % groups:
            raise refuse(ShapeError, f"Conv2d of {in_channels} to {out_channels} channels in {groups} groups: both "
                                     "numbers of channels must be multiples of the number of groups")
        window = _pair(kernel_size)
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        inputs = in_channels // groups * window[0] * window[1]
        self.weight = init.fan_in((out_channels, in_channels // groups, *window), inputs, dtype)
        self.bias = init.fan_in((out_channels,), inputs, dtype) if bias else None

    def forward(self, x):
        return ops.conv(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class MaxPool2d(Module):
    """Maximum of each window; stride defaults to the window."""

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.window, self.stride, self.padding = _pair(kernel_size), stride, padding

    def forward(self, x):
        return ops.max_pool(x, self.window, self.stride, self.padding)


class AvgPool2d(Module):
    """Mean of each window; stride defaults to the window. Padding counts as 0."""

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.window, self.stride, self.padding = _pair(kernel_size), stride, padding

    def forward(self, x):
        return ops.avg_pool(x, self.window, self.stride, self.padding)
