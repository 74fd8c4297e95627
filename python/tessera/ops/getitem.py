# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indexing of tensors: x[key]."""

from __future__ import annotations

from ..errors import ShapeError
from ..source import refuse
from .base import op, operand
from .indexing import take, take_at
from .shapes import flip, permute_dims


@op
def getitem(trace, x, key):
    """x[key].

    A key consists of integers, slices with any step, Ellipsis, None, and integer tensors (see take and take_at).

    Raises ShapeError for too many indices and for integers out of range.
    """
    key = key if isinstance(key, tuple) else (key,)
    if any(k is Ellipsis for k in key):
        at = next(i for i, k in enumerate(key) if k is Ellipsis)
        missing = x.ndim - sum(k is not None for k in key) + 1
        if missing < 0:
            raise refuse(ShapeError, f"too many indices for shape {x.shape}: {key}")
        key = key[:at] + (slice(None),) * missing + key[at + 1:]
    if sum(k is not None for k in key) > x.ndim:
        raise refuse(ShapeError, f"{sum(k is not None for k in key)} indices for a tensor of shape {x.shape}")
    key = key + (slice(None),) * (x.ndim - sum(k is not None for k in key))
    offsets, sizes, strides, shape, flips, taken, d = [], [], [], [], [], [], 0
    for k in key:
        if k is None:
            shape.append(1)
            continue
        n = x.shape[d]
        if isinstance(k, slice):
            start, stop, step = k.indices(n)
            count = len(range(start, stop, step))
            if step < 0:
                start, step = start + (count - 1) * step if count else 0, -step
                flips.append(len(shape))
            offsets.append(start if count else 0), sizes.append(count), strides.append(step), shape.append(count)
        elif hasattr(k, "shape") and len(k.shape) > 0 or isinstance(k, list):
            taken.append((len(shape), k))
            offsets.append(0), sizes.append(n), strides.append(1), shape.append(n)
        elif hasattr(k, "_scope") and k._scope is not None:  # a traced integer
            taken.append((len(shape), k))
            offsets.append(0), sizes.append(n), strides.append(1), shape.append(n)
        else:
            try:
                i = k.__index__()
            except (AttributeError, TypeError):
                raise refuse(ShapeError, f"index {k!r} of a tensor of shape {x.shape} is not an integer, a slice, None, ... "
                                         "or an integer tensor") from None
            if not -n <= i < n:
                raise refuse(ShapeError, f"index {i} is out of range for axis {d} of extent {n}")
            offsets.append(i % n), sizes.append(1), strides.append(1)
        d += 1
    b = trace.builder
    value = b.reshape(b.slice(operand(trace, x), offsets, sizes, strides), shape)
    result = trace.tensor(value)
    if flips:
        result = flip(result, tuple(flips))
    if len(taken) > 1:
        axes = [axis for axis, _ in taken]
        together = axes == list(range(axes[0], axes[0] + len(axes)))
        if not together:  # as in NumPy, the indexed axes come first
            result = permute_dims(result, [*axes, *[d for d in range(result.ndim) if d not in axes]])
        return take_at(result, [i for _, i in taken], axes[0] if together else 0)
    if taken:
        (axis, indices), = taken
        result = take(result, indices, axis)
    return result
