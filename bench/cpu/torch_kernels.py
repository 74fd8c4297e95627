# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of PyTorch for rows of kernels.py, if it has one."""

from __future__ import annotations

import os

import numpy as np
import torch
from torch.nn import functional as F

torch.set_num_threads(len(os.sched_getaffinity(0)))


def gradient(fn, count):
    def call(*values):
        inputs = [value.detach().requires_grad_() for value in values[:count]]
        return torch.autograd.grad(fn(*inputs, *values[count:-1]), inputs, values[-1])
    return call


def layer_norm(x, gain, bias):
    return F.layer_norm(x, x.shape[-1:], gain, bias)


def bias_gelu(x, bias):
    return F.gelu(x + bias, approximate="tanh")


def convolution_backward(stride, padding, *mask):
    return lambda x, w, g: torch.ops.aten.convolution_backward(
        g, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], 1, [*mask, False])[mask.index(True)]


_NAMED = {
    "softmax": lambda x: torch.softmax(x, -1),
    "layer norm": layer_norm, "layer norm, gradient": gradient(layer_norm, 3),
    "bias + gelu": bias_gelu, "bias + gelu, gradient": gradient(bias_gelu, 2),
    "column sum": lambda x: x.sum(0), "row sum": lambda x: x.sum(1), "transpose": lambda x: x.T.contiguous(),
    "max pool 2x2": lambda x: F.max_pool2d(x, 2), "cumsum": lambda x: x.cumsum(0), "sort rows": lambda x: x.sort(-1)[0],
    "top 8 of rows": lambda x: x.topk(8)[0], "look-up": lambda t, i: t.index_select(0, i), "scatter-add": lambda t, i, u: t.index_add(0, i, u),
    "attention": F.scaled_dot_product_attention, "attention, gradient": gradient(F.scaled_dot_product_attention, 3),
}


def call(kernel, values):
    """The call for a row on these values (arrays); None if PyTorch has no such function."""
    there = [torch.from_numpy(value.view(np.int16)).view(torch.bfloat16) if value.dtype.name == "bfloat16" else torch.from_numpy(value)
             for value in values]
    name = kernel.name
    if name.startswith("product"):
        fn = (lambda a, b: a @ b.T) if name.endswith("right transposed") else (lambda a, b: a.T @ b) if name.endswith("left transposed") else torch.matmul
    elif name.startswith("convolution"):
        stride, padding, of = kernel.window
        fn = {"forward": lambda x, w: F.conv2d(x, w, None, stride, padding), "by input": convolution_backward(stride, padding, True, False),
              "by weights": convolution_backward(stride, padding, False, True)}[of]
    elif name in _NAMED:
        fn = _NAMED[name]
    else:
        return None
    return lambda: fn(*there)
