# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors from nothing. Outside of jit they have values at once; inside, they are constants of the program."""

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
from .shapes import _extents


def full(shape, fill_value, dtype=None) -> Tensor:
    """A number in all places. Floats are float32 and integers int64 unless `dtype` says otherwise."""
    shape = _extents("full", shape)
    if any(n < 0 for n in shape):
        raise refuse(ShapeError, f"shape {shape} of 'full': extents are not negative")
    kind = dtypes.dtype(dtype if dtype is not None else type(fill_value))
    trace = current()
    if trace is not None:
        return trace.tensor(trace.builder.constant(fill_value, TensorType(shape, kind.element)))
    return Tensor(np.full(shape, fill_value, np.float64 if kind.kind == "float" else np.int64 if kind.kind == "integer" else bool), kind)


def zeros(shape, dtype="float32") -> Tensor:
    """0 in all places."""
    return full(shape, 0, dtype)


def ones(shape, dtype="float32") -> Tensor:
    """1 in all places."""
    return full(shape, 1, dtype)


def full_like(x, fill_value, dtype=None) -> Tensor:
    """A number in all places, in the shape (and type) of x."""
    x = tensor_of(x, "full_like")
    made = full(x.shape, fill_value, dtype if dtype is not None else x.dtype)
    if x.sharding is not None and made._scope is None:
        made.sharding = x.sharding
    return made


def zeros_like(x, dtype=None) -> Tensor:
    """0 in the shape, type and placements of x."""
    return full_like(x, 0, dtype)


def ones_like(x, dtype=None) -> Tensor:
    """1 in the shape, type and placements of x."""
    return full_like(x, 1, dtype)


@op
def _iota(trace, shape, dim, element):
    b = trace.builder
    row = TensorType((shape[dim],), element)
    body = lambda _: convert(b, b.cast("arith.index_cast", b.index(0), "i64"), "i64", element)
    value, = b.generic([], [(b.empty(row), AffineMap.identity(1))], ["parallel"], body)
    return trace.tensor(b.broadcast(value, shape, [dim]))


def iota(shape, axis: int, dtype="int64") -> Tensor:
    """Elements that are their index along an axis."""
    shape, kind = _extents("iota", shape), dtypes.dtype(dtype)
    if current() is None:
        along = np.arange(shape[axis]).reshape([-1 if d == axis else 1 for d in range(len(shape))])
        return Tensor(np.broadcast_to(along, shape).copy(), kind)
    return _iota(shape, axis, kind.element) if shape[axis] else full(shape, 0, kind)


def arange(start, stop=None, step=1, dtype=None) -> Tensor:
    """Numbers from start on, below stop, by step."""
    start, stop = (0, start) if stop is None else (start, stop)
    for number in (start, stop, step):
        if not isinstance(number, (int, float, np.number)) or isinstance(number, bool):
            raise refuse(ShapeError, f"'arange' from {start!r} to {stop!r} by {step!r}: numbers that are known when it is recorded")
    if step == 0:
        raise refuse(ShapeError, "'arange' by steps of 0 never ends")
    values = np.arange(start, stop, step)
    kind = dtypes.dtype(dtype if dtype is not None else "int64" if values.dtype.kind == "i" else "float32")
    if current() is None or isinstance(start, float) or isinstance(step, float):
        return Tensor(values, kind)
    made = iota((len(values),), 0, kind)
    return made * step + start if (start, step) != (0, 1) else made


def linspace(start, stop, num, dtype="float32") -> Tensor:
    """`num` numbers from start to stop."""
    return Tensor(np.linspace(start, stop, num), dtype)


def eye(n, m=None, k=0, dtype="float32") -> Tensor:
    """1 on diagonal k, 0 elsewhere."""
    shape = (n, n if m is None else m)
    if current() is None:
        return Tensor(np.eye(*shape, k), dtype)
    return equal(iota(shape, 0) + k, iota(shape, 1)).astype(dtype)
