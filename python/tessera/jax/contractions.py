# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Contractions: dot_general."""

from __future__ import annotations

from ..ir.scalars import wide
from . import elements
from .elements import convert
from .reductions import narrow
from .registry import rule


@rule("dot_general")
def _(ctx, eqn, lhs, rhs):
    (lhs_sums, rhs_sums), (lhs_batch, rhs_batch) = eqn.params["dimension_numbers"]
    target = eqn.outvars[0].aval.dtype
    b, element = ctx.b, elements.element_of(target)
    for operand in eqn.invars:
        if elements.is_float(operand.aval.dtype) and not elements.is_float(target):
            raise ctx.error(eqn, f"'dot_general' of {operand.aval.dtype} to {target} is not supported; use astype")
    def converted(value, dtype):  # convert integers first: linalg.contract only extends floats
        if elements.is_float(dtype) or value.type.element == element:
            return value
        return b.pointwise([value], value.type.shape, lambda x: convert(b, x, dtype, target))
    lhs, rhs = [converted(v, o.aval.dtype) for v, o in zip((lhs, rhs), eqn.invars)]
    # Loops: batch, free of lhs, free of rhs, summed.
    sizes, lhs_loops, rhs_loops = [], [None] * lhs.type.rank, [None] * rhs.type.rank
    for i, j in zip(lhs_batch, rhs_batch):
        lhs_loops[i] = rhs_loops[j] = len(sizes)
        sizes.append(lhs.type.shape[i])
    for loops, value, taken in ((lhs_loops, lhs, (*lhs_batch, *lhs_sums)), (rhs_loops, rhs, (*rhs_batch, *rhs_sums))):
        for d in range(value.type.rank):
            if d not in taken:
                loops[d] = len(sizes)
                sizes.append(value.type.shape[d])
    free = len(sizes)
    for i, j in zip(lhs_sums, rhs_sums):
        lhs_loops[i] = rhs_loops[j] = len(sizes)
        sizes.append(lhs.type.shape[i])
    if not lhs_sums:
        return product(b, lhs, rhs, lhs_loops, rhs_loops, sizes, element)
    result = b.contract(lhs, rhs, lhs_loops, rhs_loops, range(free), sizes, wide(element))
    return narrow(b, result, element)


def product(b, lhs, rhs, lhs_loops, rhs_loops, sizes, element):
    """The case without summed dimensions: an elementwise product."""
    floats = element in ("f64", "f32", "f16", "bf16")
    spread = []
    for value, loops in ((lhs, lhs_loops), (rhs, rhs_loops)):
        order = sorted(range(value.type.rank), key=lambda d: loops[d])
        spread.append(b.broadcast(b.transpose(value, order), sizes, sorted(loops)))

    def body(x, y):
        x, y = [v if v.type == element else b.cast("arith.extf", v, element) for v in (x, y)]
        return b.apply("arith.mulf" if floats else "arith.muli", x, y)
    return b.pointwise(spread, sizes, body)
