# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of rows with the matrix of their group: sums of which one group counts, as look-ups are."""

from __future__ import annotations

from .build import Builder
from .types import AffineMap, TensorType, is_float


def rows_by_matrix(b: Builder, x, weights, group, element: str, order=(0, 1, 2)):
    """(m, k), (g, k, n) -> (m, n): row i times weights[group[i]], in `element`; a group out of range gives 0.

    `order`: the dimensions of the weights that are g, k and n.
    """
    (rows, depth), (groups, _, columns) = x.type.shape, [weights.type.shape[d] for d in order]
    places = [(2, 3, 1)[order.index(d)] for d in range(3)]
    init = b.constant(0, TensorType((rows, columns), element))
    if not rows or not depth or not groups or not columns:
        return init
    term = _term(b, element, lambda: b.index(2))
    result, = b.generic([(x, AffineMap(4, (0, 3))), (weights, AffineMap(4, tuple(places))), (group, AffineMap(4, (0,)))],
                        [(init, AffineMap(4, (0, 1)))], ["parallel", "parallel", "reduction", "reduction"], term)
    return result


def sums_of_groups(b: Builder, x, y, group, groups: int, element: str):
    """(m, k), (m, n) -> (g, k, n): for each group the sum over its rows i of x[i] y[i], in `element`."""
    (rows, depth), (_, columns) = x.type.shape, y.type.shape
    init = b.constant(0, TensorType((groups, depth, columns), element))
    if not rows or not depth or not groups or not columns:
        return init
    term = _term(b, element, lambda: b.index(0))
    result, = b.generic([(x, AffineMap(4, (3, 1))), (y, AffineMap(4, (3, 2))), (group, AffineMap(4, (3,)))],
                        [(init, AffineMap(4, (0, 1, 2)))], ["parallel", "parallel", "parallel", "reduction"], term)
    return result


def _term(b, element, group_loop):
    """The body: acc + (x y where the row's group is that of the iteration, else 0)."""
    multiply, add = ("arith.mulf", "arith.addf") if is_float(element) else ("arith.muli", "arith.addi")

    def body(x, y, group, acc):
        x, y = [v if v.type == element else b.cast("arith.extf", v, element) for v in (x, y)]
        same = b.compare("eq", group, b.cast("arith.index_cast", group_loop(), group.type))
        return b.apply(add, acc, b.select(same, b.apply(multiply, x, y), b.constant(0, element)))
    return body
