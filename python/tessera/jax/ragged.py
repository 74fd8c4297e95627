# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of consecutive groups of rows, `lax.ragged_dot`: each row times the matrix of its group."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from ..ir.grouped import rows_by_matrix, sums_of_groups
from ..ir.scalars import wide
from . import elements
from .elements import convert
from .reductions import narrow
from .registry import rule


def _groups_of(sizes, count):
    """The group of each of `count` rows; the number of groups for rows after the last one."""
    ends, row = lax.cumsum(sizes.astype(jnp.int32)), lax.iota(jnp.int32, count)
    return (ends[None] <= row[:, None]).sum(1, dtype=jnp.int32)


@rule("ragged_dot_general")
def _(ctx, eqn, lhs, rhs, *sizes):
    b, numbers, target = ctx.b, eqn.params["ragged_dot_dimension_numbers"], eqn.outvars[0].aval.dtype
    (lhs_sums, rhs_sums), (lhs_batch, _) = numbers.dot_dimension_numbers
    (ragged,), group_dims = numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    if len(sizes) != 1 or lhs_batch or len(lhs_sums) != 1 or lhs.type.rank != 2 or sizes[0].type.rank != 1:
        raise ctx.error(eqn, "'ragged_dot_general' is supported for groups of rows of one matrix, without batch dimensions and group_offset")
    element, groups, count = elements.element_of(target), sizes[0].type.shape[0], lhs.type.shape[ragged]
    group, = ctx.inline(jax.make_jaxpr(lambda sizes: _groups_of(sizes, count))(eqn.invars[2].aval), sizes)

    def converted(value, dtype):  # the sum extends floats alone
        if elements.is_float(dtype) or value.type.element == element:
            return value
        return b.pointwise([value], value.type.shape, lambda x: convert(b, x, dtype, target))
    lhs, rhs = [converted(v, o.aval.dtype) for v, o in zip((lhs, rhs), eqn.invars)]
    lhs = lhs if ragged == 0 else b.transpose(lhs, [1, 0])
    if ragged in lhs_sums:
        rhs = rhs if rhs_sums[0] == 0 else b.transpose(rhs, [1, 0])
        return narrow(b, sums_of_groups(b, lhs, rhs, group, groups, wide(element)), element)
    (summed,), (at,) = rhs_sums, group_dims
    return narrow(b, rows_by_matrix(b, lhs, rhs, group, wide(element), (at, summed, 3 - at - summed)), element)
