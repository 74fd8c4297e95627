# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of consecutive groups of rows, `lax.ragged_dot`: traced as programs over whole blocks of rows."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from .registry import rule

_MOST_ROWS = 128  # of a block, as in tessera.nn.grouped
_FEW_GROUPS = 4


def _blocks(sizes, count):
    """(owner, rows, valid) of each block: its group, the numbers of its rows, and which of them belong to the group."""
    groups = sizes.shape[0]
    size = min(_MOST_ROWS, -(-count // groups))
    number = (count + groups * (size - 1)) // size
    sizes = sizes.astype(jnp.int32)
    ends = lax.cumsum(sizes)
    last = lax.cumsum((sizes + (size - 1)) // size)  # blocks up to each group's end
    block = lax.iota(jnp.int32, number)
    owner = jnp.minimum(_passed(last, block), groups - 1)
    start, first = ends - sizes, last - (sizes + (size - 1)) // size
    rows = (start[owner] + (block - first[owner]) * size)[:, None] + lax.iota(jnp.int32, size)[None]
    return owner, rows, rows < jnp.minimum(ends[owner], count)[:, None]


def _passed(ends, at):
    """How many of the ends are at most each of `at`."""
    return (ends[None] <= at[:, None]).sum(1, dtype=jnp.int32)


def _rows_by_matrix(x, weights, sizes, dtype):
    """(m, k), (g, k, n) -> (m, n): rows of group i times weights[i]; rows after the last group give 0."""
    count = x.shape[0]
    owner, rows, valid = _blocks(sizes, count)
    blocks = x[jnp.minimum(rows, count - 1)]

    def multiply(carry, each):
        block, owner = each
        return carry, jnp.matmul(block, lax.dynamic_index_in_dim(weights, owner, 0, keepdims=False), preferred_element_type=dtype)
    _, made = lax.scan(multiply, (), (blocks, owner))
    # Each row is in one block.
    place = jnp.where(valid, rows, count).reshape(-1)
    return jnp.zeros((count, weights.shape[2]), dtype).at[place].set(made.reshape(-1, weights.shape[2]), mode="drop", unique_indices=True)


def _sums_of_groups(x, y, sizes, dtype):
    """(m, k), (m, n) -> (g, k, n): for each group the sum over its rows of x[row] y[row]."""
    count = x.shape[0]
    owner, rows, valid = _blocks(sizes, count)
    rows = jnp.minimum(rows, count - 1)

    def add(total, each):
        block, other, owner = each
        part = jnp.matmul(block.T, other, preferred_element_type=dtype)
        before = lax.dynamic_index_in_dim(total, owner, 0)
        return lax.dynamic_update_index_in_dim(total, before + part[None], owner, 0), ()
    blocks = jnp.where(valid[..., None], x[rows], jnp.zeros((), x.dtype))
    total, _ = lax.scan(add, jnp.zeros((sizes.shape[0], x.shape[1], y.shape[1]), dtype), (blocks, y[rows], owner))
    return total


def _masks(sizes, count):
    """(g, m): whether a row belongs to a group."""
    ends, row = lax.cumsum(sizes.astype(jnp.int32)), lax.iota(jnp.int32, count)
    return (row[None] < ends[:, None]) & (row[None] >= (ends - sizes.astype(jnp.int32))[:, None])


def _rows_by_few(x, weights, sizes, dtype):
    """The same for few groups: all rows times each matrix cost little more than blocks, which are partly empty."""
    every = jnp.einsum("mk,gkn->gmn", x, weights, preferred_element_type=dtype)
    return jnp.where(_masks(sizes, x.shape[0])[..., None], every, jnp.zeros((), dtype)).sum(0)


def _sums_of_few(x, y, sizes, dtype):
    apart = jnp.where(_masks(sizes, x.shape[0])[..., None], x[None], jnp.zeros((), x.dtype))
    return jnp.einsum("gmk,mn->gkn", apart, y, preferred_element_type=dtype)


def _product(ctx, eqn):
    """The JAX function that computes the equation."""
    numbers, dtype = eqn.params["ragged_dot_dimension_numbers"], eqn.outvars[0].aval.dtype
    (lhs_sums, rhs_sums), (lhs_batch, _) = numbers.dot_dimension_numbers
    (ragged,), group_dims = numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    lhs, rhs, sizes = (v.aval for v in eqn.invars[:3])
    if len(eqn.invars) != 3 or lhs_batch or len(lhs_sums) != 1 or lhs.ndim != 2 or sizes.ndim != 1:
        raise ctx.error(eqn, "'ragged_dot_general' is supported for groups of rows of one matrix, without batch dimensions and group_offset")
    few = sizes.shape[0] <= _FEW_GROUPS or not lhs.shape[ragged]
    if ragged in lhs_sums:
        sums = _sums_of_few if few else _sums_of_groups
        return lambda x, y, sizes: sums(x if ragged == 0 else x.T, y if rhs_sums[0] == 0 else y.T, sizes, dtype)
    (summed,), (group,) = rhs_sums, group_dims
    order, rows = (group, summed, 3 - group - summed), _rows_by_few if few else _rows_by_matrix
    return lambda x, weights, sizes: rows(x if ragged == 0 else x.T, jnp.transpose(weights, order), sizes, dtype)


@rule("ragged_dot_general")
def _(ctx, eqn, *values):
    avals = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in eqn.invars]
    return ctx.inline(jax.make_jaxpr(_product(ctx, eqn))(*avals), values)
