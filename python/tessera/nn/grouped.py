# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of consecutive groups of rows with a matrix for each group, as mixtures of experts have."""

from __future__ import annotations

from .. import control, ops
from ..errors import ArgumentError, ShapeError
from ..ops.base import tensor_of
from ..source import refuse
from ..tensor import Tensor

_MOST_ROWS = 128  # of a block: a product of as many rows runs at the processor's rate
_FEW_GROUPS = 4   # as many products of all rows cost little more than blocks, which are partly empty, and need no loop


def grouped_matmul(x, weights, ends) -> Tensor:
    """Rows of group g times weights[g]: x of shape (S, K), weights (G, K, N), result (S, N).

    `ends`: integers of shape (G,), ascending: group g has the rows from ends[g - 1] (0 for the first) to ends[g]. Rows
    from the last end on give 0. Groups may be empty.

    Work and memory are those of S rows and at most one partly filled block of rows per group: the rows of each group are
    copied to whole blocks, and a loop multiplies each block with its group's matrix.

    Raises ShapeError if the shapes do not match, ArgumentError if the ends are not integers.
    """
    x, weights, ends = (tensor_of(t, "grouped_matmul") for t in (x, weights, ends))
    if x.ndim != 2 or weights.ndim != 3 or ends.ndim != 1 or x.shape[1] != weights.shape[1] or ends.shape[0] != weights.shape[0]:
        raise refuse(ShapeError, f"'grouped_matmul' of shapes {x.shape}, {weights.shape} and {ends.shape} takes (S, K), (G, K, N) and (G,)")
    if ends.dtype.kind != "integer":
        raise refuse(ArgumentError, f"the ends of 'grouped_matmul' are {ends.dtype}; give integers")
    count, groups = x.shape[0], weights.shape[0]
    if not (count and groups):
        return ops.zeros((count, weights.shape[2]), x.dtype)
    ends = ops.minimum(ends.astype("int32"), count)
    row = ops.arange(count).astype("int32")
    group = _passed(ends, row)  # `groups` for rows after the last end
    if groups <= _FEW_GROUPS:
        every = ops.einsum("sk,gkn->gsn", x, weights)
        return ops.take_at(every, [group, row])
    size = min(_MOST_ROWS, -(-count // groups))
    number = (count + groups * (size - 1)) // size  # blocks: the sum over groups of their rows / size, rounded up
    starts = ops.concat([ops.zeros((1,), "int32"), ends[:-1]], 0)
    last = ops.cumulative_sum((ends - starts + (size - 1)) // size, 0).astype("int32")  # blocks up to each group's end
    first = ops.concat([ops.zeros((1,), "int32"), last[:-1]], 0)
    block = ops.arange(number).astype("int32")
    owner = ops.minimum(_passed(last, block), groups - 1)
    begin = ops.take(starts, owner) + (block - ops.take(first, owner)) * size
    # Rows of a block beyond its group are computed, and read by nobody.
    rows = ops.minimum(begin.reshape((number, 1)) + ops.arange(size).astype("int32"), count - 1)

    def multiply(carry, each):
        block, owner = each
        return carry, block @ ops.take(weights, owner)
    _, made = control.scan(multiply, (), (ops.take(x, rows), owner))
    known = ops.minimum(group, groups - 1)
    place = ops.take(first, known) * size + row - ops.take(starts, known)
    place = ops.where(group < groups, place, number * size)  # out of range gives 0
    return ops.take(made.reshape((number * size, weights.shape[2])), place)


def _passed(ends, at):
    """How many of the ends are at most each of `at`."""
    return (ends.reshape((1, -1)) <= at.reshape((-1, 1))).astype("int32").sum(1).astype("int32")
