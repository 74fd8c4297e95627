# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Creation of tensors. Outside jit they have values; inside jit they are constants of the program."""

from __future__ import annotations

import numpy as np

from .. import dtypes
from ..errors import ShapeError
from ..ir import AffineMap, TensorType
from ..ir.scalars import convert
from ..source import refuse
from ..tensor import Tensor
from ..trace import current
from .base import op, tensor_of
from .elementwise import equal
from .shapes import _extents, broadcast_to


def full(shape, fill_value, dtype=None) -> Tensor:
    """A tensor of `shape` filled with a number, or a tensor of rank 0. dtype: default float32, int64 or bool, by the number."""
    shape = _extents("full", shape)
    if any(n < 0 for n in shape):
        raise refuse(ShapeError, f"shape {shape} of 'full': extents are non-negative")
    if isinstance(fill_value, Tensor):
        if fill_value.ndim:
            raise refuse(ShapeError, f"fill value of 'full' has shape {fill_value.shape}: it is one number; use broadcast_to")
        return broadcast_to(fill_value if dtype is None else fill_value.astype(dtype), shape)
    kind = dtypes.dtype(dtype if dtype is not None else type(fill_value))
    trace = current()
    if trace is not None:
        return trace.tensor(trace.builder.constant(fill_value, TensorType(shape, kind.element)))
    return Tensor(np.full(shape, fill_value, np.float64 if kind.kind == "float" else np.int64 if kind.kind == "integer" else bool), kind)


def zeros(shape, dtype="float32") -> Tensor:
    """A tensor of zeros."""
    return full(shape, 0, dtype)


def ones(shape, dtype="float32") -> Tensor:
    """A tensor of ones."""
    return full(shape, 1, dtype)


def full_like(x, fill_value, dtype=None) -> Tensor:
    """A tensor with the shape, dtype and placements of x, filled with a number."""
    x = tensor_of(x, "full_like")
    made = full(x.shape, fill_value, dtype if dtype is not None else x.dtype)
    if x.sharding is not None and made._scope is None:
        made.sharding = x.sharding
    return made


def zeros_like(x, dtype=None) -> Tensor:
    """A tensor of zeros with the shape, dtype and placements of x."""
    return full_like(x, 0, dtype)


def ones_like(x, dtype=None) -> Tensor:
    """A tensor of ones with the shape, dtype and placements of x."""
    return full_like(x, 1, dtype)


@op
def _iota(trace, shape, dim, element):
    b = trace.builder
    row = TensorType((shape[dim],), element)
    body = lambda _: convert(b, b.cast("arith.index_cast", b.index(0), "i64"), "i64", element)
    value, = b.generic([], [(b.empty(row), AffineMap.identity(1))], ["parallel"], body)
    return trace.tensor(b.broadcast(value, shape, [dim]))


def iota(shape, axis: int, dtype="int64") -> Tensor:
    """A tensor whose elements are their index along `axis`."""
    shape, kind = _extents("iota", shape), dtypes.dtype(dtype)
    if current() is None:
        along = np.arange(shape[axis]).reshape([-1 if d == axis else 1 for d in range(len(shape))])
        return Tensor(np.broadcast_to(along, shape).copy(), kind)
    return _iota(shape, axis, kind.element) if shape[axis] else full(shape, 0, kind)


def arange(start, stop=None, step=1, dtype=None) -> Tensor:
    """A 1-D tensor of the numbers start, start + step, ... below stop; arange(stop) starts at 0.

    dtype: default int64 for integers, else float32. Raises ShapeError if an argument is not a Python number or step is
    0.
    """
    start, stop = (0, start) if stop is None else (start, stop)
    for number in (start, stop, step):
        if not isinstance(number, (int, float, np.number)) or isinstance(number, bool):
            raise refuse(ShapeError, f"'arange' from {start!r} to {stop!r} by {step!r}: arguments must be Python numbers")
    if step == 0:
        raise refuse(ShapeError, "'arange' with step 0 does not end")
    values = np.arange(start, stop, step)
    kind = dtypes.dtype(dtype if dtype is not None else "int64" if values.dtype.kind == "i" else "float32")
    if current() is None or isinstance(start, float) or isinstance(step, float):
        return Tensor(values, kind)
    made = iota((len(values),), 0, kind)
    return made * step + start if (start, step) != (0, 1) else made


def linspace(start, stop, num, dtype="float32") -> Tensor:
    """A 1-D tensor of `num` evenly spaced numbers from start to stop, inclusive."""
    return Tensor(np.linspace(start, stop, num), dtype)


def eye(n, m=None, k=0, dtype="float32") -> Tensor:
    """An (n, m) tensor with ones on diagonal k and zeros elsewhere; m defaults to n."""
    shape = (n, n if m is None else m)
    if current() is None:
        return Tensor(np.eye(*shape, k), dtype)
    return equal(iota(shape, 0) + k, iota(shape, 1)).astype(dtype)
