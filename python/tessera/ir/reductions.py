# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions of several operations: prefix reductions, and the index of an extreme value."""

from __future__ import annotations

from collections.abc import Callable

from . import scalars
from .core import Value
from .types import AffineMap, TensorType, is_float


def accumulate(b, x: Value, dim: int, combine: Callable, identity, element: str, reverse: bool = False) -> Value:
    """out[i] = combination of x[j], in type `element`, over j <= i along `dim` (j >= i if reverse)."""
    if x.type.element != element:
        x = b.pointwise([x], x.type.shape, lambda x: scalars.widened(b, x, element))
    if x.type.shape[dim] == 1:
        return x
    result, = b.scan([x], dim, lambda before, behind: [combine(before[0], behind[0])], [identity], reverse=reverse)
    return result


def first_of(b, x: Value, best: Value, dim: int, kind: str, element: str) -> Value:
    """The first index along `dim`, as `element`, where `x` equals `best`, its extreme value along `dim`.

    kind: the element type of `x` with its sign. NaN counts as extreme. Value and index are separate reductions, so that
    `dim` can be sharded.
    """
    rank, last = x.type.rank, x.type.shape[dim] - 1
    kept = tuple(d for d in range(rank) if d != dim)

    def body(x, best, acc):
        same = scalars.compare(b, "eq", kind, x, best)
        if is_float(kind):
            same = b.apply("arith.ori", same, scalars.is_nan(b, x))
        here = b.cast("arith.index_cast", b.index(dim), element)
        return b.apply("arith.minsi", acc, b.select(same, here, b.constant(last, element)))
    init = b.constant(last, TensorType(tuple(x.type.shape[d] for d in kept), element))
    result, = b.generic([(x, AffineMap.identity(rank)), (best, AffineMap(rank, kept))], [(init, AffineMap(rank, kept))],
                        ["reduction" if d == dim else "parallel" for d in range(rank)], body)
    return result
