# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions and pooling of tensors (batch, channels, space...).

padding: a number, a number or a pair (before, after) per spatial axis, "same" (the result has ceil(extent / stride)
elements) or "valid" (none). Sums of 16-bit floats are accumulated in float32.
"""

from __future__ import annotations

import math

from ..errors import ShapeError
from ..ir import TensorType, constants
from ..ir.scalars import combine, wide, widened
from ..ir.windows import Windows, convolve, dilate, edges
from ..source import refuse
from ..trace import check_meshes
from .base import cast, common_type, need, op, operand, tensor_of
from .shapes import flip, swapaxes


def _each(name, what, value, count) -> list[int]:
    """One number per spatial axis."""
    values = [value] * count if isinstance(value, int) else list(value)
    if len(values) != count or any(not isinstance(v, int) for v in values):
        raise refuse(ShapeError, f"{what} {value} of '{name}' is not a number, or one per spatial axis ({count})")
    return values


def _padding(name, padding, shape, window, stride, dilation) -> list[tuple[int, int]]:
    """(before, after) per spatial axis."""
    if padding == "valid":
        return [(0, 0)] * len(shape)
    if padding == "same":
        total = [max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n) for n, k, s, d in zip(shape, window, stride, dilation)]
        return [(t // 2, t - t // 2) for t in total]
    if isinstance(padding, str):
        raise refuse(ShapeError, f"padding '{padding}' of '{name}' is not \"same\", \"valid\", a number or pairs")
    values = [padding] * len(shape) if isinstance(padding, int) else list(padding)
    pairs = [(p, p) if isinstance(p, int) else tuple(p) for p in values]
    if len(pairs) != len(shape) or any(len(p) != 2 or min(p) < 0 for p in pairs):
        raise refuse(ShapeError, f"padding {padding} of '{name}': give a non-negative number or pair for each of the {len(shape)} axes")
    return pairs


def _places(name, shape, window, stride, dilation, padding) -> list[int]:
    """The number of windows along each spatial axis. Raises ShapeError if a window is longer than the padded axis."""
    counts = []
    for n, k, s, d, (low, high) in zip(shape, window, stride, dilation, padding):
        reach = (k - 1) * d + 1
        if k < 1 or s < 1 or d < 1:
            raise refuse(ShapeError, f"windows of '{name}' are {window}, strides {stride}, dilations {dilation}; all must be at least 1")
        if n + low + high < reach:
            raise refuse(ShapeError, f"'{name}': a window spans {reach} elements, but the padded axis has {n + low + high}")
        counts.append((n + low + high - reach) // s + 1)
    return counts


@op
def conv(trace, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolution of x (batch, channels, space...) with weight (features, channels / groups, window...).

    bias: (features,). Returns (batch, features, space...). Raises ShapeError for shapes that do not match, DTypeError
    for integers.
    """
    x, weight = tensor_of(x, "conv"), tensor_of(weight, "conv")
    check_meshes("conv", [x, weight])
    need("conv", x, "float")
    space = x.ndim - 2
    if space < 1 or weight.ndim != x.ndim:
        raise refuse(ShapeError, f"'conv' of shapes {x.shape} and {weight.shape}: expected (batch, channels, "
                                 "space...) and (features, channels, window...)")
    if x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        raise refuse(ShapeError, f"'conv' of {x.shape[1]} channels with a weight of {weight.shape[1]} in {groups} groups of {weight.shape[0]} features")
    stride, dilation = _each("conv", "stride", stride, space), _each("conv", "dilation", dilation, space)
    padding = _padding("conv", padding, x.shape[2:], weight.shape[2:], stride, dilation)
    out = (x.shape[0], weight.shape[0], *_places("conv", x.shape[2:], weight.shape[2:], stride, dilation, padding))
    element, b = common_type("conv", [x, weight]).element, trace.builder
    padded = edges(b, operand(trace, x, element), [(0, 0), (0, 0), *padding], 0)
    order = list(range(x.ndim))
    result = convolve(b, padded, operand(trace, weight, element), (order, order, order), out, stride, dilation, groups, 1, wide(element))
    made = trace.tensor(cast(trace, result, element))
    return made if bias is None else made + tensor_of(bias, "conv").reshape((-1,) + (1,) * space)


@op
def conv_transpose(trace, x, weight, bias=None, stride=1, padding=0, output_padding=0, dilation=1, groups=1):
    """Transposed convolution, the adjoint of conv.

    x: (batch, channels, space...); weight: (channels, features / groups, window...); bias: (features,). Returns (batch,
    features, space...), in which an axis of extent n has become (n - 1) * stride + dilation * (window - 1) + 1 - 2 *
    padding + output_padding.
    """
    x, weight = tensor_of(x, "conv_transpose"), tensor_of(weight, "conv_transpose")
    check_meshes("conv_transpose", [x, weight])
    need("conv_transpose", x, "float")
    space = x.ndim - 2
    if space < 1 or weight.ndim != x.ndim:
        raise refuse(ShapeError, f"'conv_transpose' of shapes {x.shape} and {weight.shape}: expected (batch, "
                                 "channels, space...) and (channels, "
                                 "features, window...)")
    if x.shape[1] != weight.shape[0] or groups < 1 or weight.shape[0] % groups:
        raise refuse(ShapeError, f"'conv_transpose' of {x.shape[1]} channels with a weight of {weight.shape[0]} in {groups} groups")
    stride, dilation = _each("conv_transpose", "stride", stride, space), _each("conv_transpose", "dilation", dilation, space)
    padding, more = _each("conv_transpose", "padding", padding, space), _each("conv_transpose", "output_padding", output_padding, space)
    window, b = weight.shape[2:], trace.builder
    if min(stride) < 1 or min(dilation) < 1:
        raise refuse(ShapeError, f"strides {stride} and dilations {dilation} of 'conv_transpose' must be at least 1")
    edge = [(d * (k - 1) - p, d * (k - 1) - p + extra) for k, d, p, extra in zip(window, dilation, padding, more)]
    out = [(n - 1) * s + 1 + low + high - d * (k - 1) for n, s, (low, high), d, k in zip(x.shape[2:], stride, edge, dilation, window)]
    if min(out) < 1:
        raise refuse(ShapeError, f"'conv_transpose' of {x.shape} by windows {list(window)}: the result would have extents {out}")
    element = common_type("conv_transpose", [x, weight]).element
    spread = edges(b, dilate(b, operand(trace, x, element), [1, 1, *stride], 0), [(0, 0), (0, 0), *edge], 0)
    # Flip the kernel and put features first: (groups, in, out) -> (groups, out, in).
    features = weight.shape[1]
    kernel = flip(weight, tuple(range(2, weight.ndim))).reshape((groups, -1, features, *window))
    kernel = swapaxes(kernel, 1, 2).reshape((groups * features, -1, *window))
    order = list(range(x.ndim))
    shape = (x.shape[0], groups * features, *out)
    result = convolve(b, spread, operand(trace, kernel, element), (order, order, order), shape, [1] * space, dilation, groups, 1, wide(element))
    made = trace.tensor(cast(trace, result, element))
    return made if bias is None else made + tensor_of(bias, "conv_transpose").reshape((-1,) + (1,) * space)


def _pool(trace, name, x, window, stride, padding, what, identity, to, dilation=1):
    x = tensor_of(x, name)
    need(name, x, "float", "integer")
    space = x.ndim - 2
    if space < 1:
        raise refuse(ShapeError, f"'{name}' of shape {x.shape}: expected (batch, channels, space...)")
    window = _each(name, "window", window, space)
    stride = window if stride is None else _each(name, "stride", stride, space)
    dilation = _each(name, "dilation", dilation, space)
    padding = _padding(name, padding, x.shape[2:], window, stride, dilation)
    counts = [x.shape[0], x.shape[1], *_places(name, x.shape[2:], window, stride, dilation, padding)]
    b, value = trace.builder, operand(trace, x)
    if 0 in counts:
        return trace.tensor(b.constant(0, TensorType(tuple(counts), value.type.element)))
    padded = edges(b, value, [(0, 0), (0, 0), *padding], identity)
    nest = Windows(padded.type.shape, [1, 1, *window], [1, 1, *stride], [1, 1, *dilation], counts)
    return trace.tensor(cast(trace, nest.fold(b, padded, combine(b, what, to), identity, to, lambda x: widened(b, x, to)), value.type.element))


@op
def max_pool(trace, x, window, stride=None, padding=0, dilation=1):
    """Maximum of each window of x (batch, channels, space...); stride defaults to the window.

    Padding is never the maximum.
    """
    x = tensor_of(x, "max_pool")
    return _pool(trace, "max_pool", x, window, stride, padding, "max", constants.least(x.dtype.element), x.dtype.element, dilation)


@op
def sum_pool(trace, x, window, stride=None, padding=0):
    """Sum of each window of x (batch, channels, space...); stride defaults to the window."""
    x = tensor_of(x, "sum_pool")
    need("sum_pool", x, "float")
    return _pool(trace, "sum_pool", x, window, stride, padding, "add", 0, wide(x.dtype.element))


@op
def avg_pool(trace, x, window, stride=None, padding=0):
    """Mean of each window of x (batch, channels, space...); stride defaults to the window. Padding counts as 0."""
    x = tensor_of(x, "avg_pool")
    need("avg_pool", x, "float")
    return sum_pool(x, window, stride, padding) / math.prod(_each("avg_pool", "window", window, x.ndim - 2))
