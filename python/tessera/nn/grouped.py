# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of consecutive groups of rows with a matrix for each group, as mixtures of experts have."""

from __future__ import annotations

from .. import ops
from ..errors import ArgumentError, ShapeError
from ..ir.grouped import rows_by_matrix
from ..ir.scalars import wide
from ..ops.base import cast, common_type, op, operand, tensor_of
from ..source import refuse
from ..tensor import Tensor
from ..trace import check_meshes


def grouped_matmul(x, weights, ends) -> Tensor:
    """Rows of group g times weights[g]: x of shape (S, K), weights (G, K, N), result (S, N).

    `ends`: integers of shape (G,), ascending: group g has the rows from ends[g - 1] (0 for the first) to ends[g]. Rows
    from the last end on give 0. Groups may be empty.

    Work is that of S rows and at most one partly filled block of 128 rows per group.

    Raises ShapeError if the shapes do not match, ArgumentError if the ends are not integers.
    """
    x, weights, ends = (tensor_of(t, "grouped_matmul") for t in (x, weights, ends))
    if x.ndim != 2 or weights.ndim != 3 or ends.ndim != 1 or x.shape[1] != weights.shape[1] or ends.shape[0] != weights.shape[0]:
        raise refuse(ShapeError, f"'grouped_matmul' of shapes {x.shape}, {weights.shape} and {ends.shape} takes (S, K), (G, K, N) and (G,)")
    if ends.dtype.kind != "integer":
        raise refuse(ArgumentError, f"the ends of 'grouped_matmul' are {ends.dtype}; give integers")
    ends, row = ends.astype("int32"), ops.arange(x.shape[0]).astype("int32")
    # How many of the ends are at most the row: G for rows after the last end.
    group = (ends.reshape((1, -1)) <= row.reshape((-1, 1))).astype("int32").sum(1).astype("int32")
    return _rows_by_matrix(x, weights, group)


@op
def _rows_by_matrix(trace, x, weights, group):
    check_meshes("grouped_matmul", [x, weights, group])
    element = common_type("grouped_matmul", [x, weights]).element
    values = [operand(trace, v, element) for v in (x, weights)]
    return trace.tensor(cast(trace, rows_by_matrix(trace.builder, *values, operand(trace, group), wide(element)), element))
