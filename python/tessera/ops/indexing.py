# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading at indices that are known when it runs: sums over the dimension looked up of what has the index.

    out[i, j] = sum over v of select(indices[i] == v, x[v, j], 0)

When v is cut, each device looks up what it holds and the results add up; the derivative is the same with the roles changed.
Nothing is multiplied, so that infinities and NaN stay where they are.
"""

from __future__ import annotations

from .. import dtypes
from ..errors import DTypeError, ShapeError
from ..ir import AffineMap, TensorType
from ..source import refuse
from ..tensor import Tensor
from ..trace import check_meshes
from .base import axis_of, convert, op, operand, tensor_of


def _indices(name, indices) -> Tensor:
    indices = tensor_of(indices, name)
    if indices.dtype.kind != "integer":
        raise refuse(DTypeError, f"indices of '{name}' are of {indices.dtype}; they are integers: convert with astype")
    return indices


def _lookup(trace, x, indices, places, index_places, loops, kept):
    """The nest: operand dims at `places`, indices at `index_places`; loop `loops` - 1 runs along what is looked up."""
    b, v = trace.builder, loops - 1
    value, index = operand(trace, x), operand(trace, indices)
    n = x.shape[places.index(v)]
    sizes = {place: extent for place, extent in zip((*places, *index_places), (*x.shape, *indices.shape))}

    def wrap(i):  # -1 is the last one
        return b.select(b.compare("slt", i, b.constant(0, i.type)), b.apply("arith.addi", i, b.constant(n, i.type)), i)
    index = b.pointwise([index], indices.shape, wrap)

    def body(x, i, acc):
        same = b.compare("eq", i, b.cast("arith.index_cast", b.index(v), i.type))
        picked = b.select(same, x, b.constant(0, x.type))
        if x.type == "i1":
            return b.apply("arith.ori", acc, picked)
        return b.apply("arith.addf" if x.type[0] in "fb" else "arith.addi", acc, picked)
    init = b.constant(0, TensorType(tuple(sizes[d] for d in kept), x.dtype.element))
    result, = b.generic([(value, AffineMap(loops, tuple(places))), (index, AffineMap(loops, tuple(index_places)))],
                        [(init, AffineMap(loops, tuple(kept)))], ["reduction" if d == v else "parallel" for d in range(loops)], body)
    return trace.tensor(result)


@op
def take(trace, x, indices, axis=0):
    """Slices of x along `axis`, in the shape of the indices. Negative ones count from the end; outside, elements are 0."""
    x, indices = tensor_of(x, "take"), _indices("take", indices)
    check_meshes("take", [x, indices])
    dim = axis_of("take", axis, x.ndim)
    if not x.size or not indices.size:
        return trace.tensor(trace.builder.constant(0, TensorType((*x.shape[:dim], *indices.shape, *x.shape[dim + 1:]), x.dtype.element)))
    loops = x.ndim + indices.ndim
    index_places = list(range(dim, dim + indices.ndim))
    places = [*range(dim), loops - 1, *range(dim + indices.ndim, loops - 1)]
    return _lookup(trace, x, indices, places, index_places, loops, list(range(loops - 1)))


@op
def take_along_axis(trace, x, indices, axis=-1):
    """out[.., i, ..] = x[.., indices[.., i, ..], ..]: the shapes are equal beside `axis`."""
    x, indices = tensor_of(x, "take_along_axis"), _indices("take_along_axis", indices)
    check_meshes("take_along_axis", [x, indices])
    dim = axis_of("take_along_axis", axis, x.ndim)
    if x.ndim != indices.ndim or any(n != m for d, (n, m) in enumerate(zip(x.shape, indices.shape)) if d != dim):
        raise refuse(ShapeError, f"shapes {x.shape} and {indices.shape} of 'take_along_axis' differ beside axis {dim}")
    places = [x.ndim if d == dim else d for d in range(x.ndim)]
    return _lookup(trace, x, indices, places, list(range(x.ndim)), x.ndim + 1, list(range(x.ndim)))


@op
def one_hot(trace, indices, num_classes, dtype="float32"):
    """1 at the index and 0 elsewhere, along a new last axis."""
    b, indices = trace.builder, _indices("one_hot", indices)
    value, rank, element = operand(trace, indices), indices.ndim, dtypes.dtype(dtype).element
    type = TensorType((*indices.shape, int(num_classes)), element)
    if not type.size:
        return trace.tensor(b.constant(0, type))
    result, = b.generic([(value, AffineMap(rank + 1, tuple(range(rank))))], [(b.empty(type), AffineMap.identity(rank + 1))],
                        ["parallel"] * (rank + 1),
                        lambda i, _: convert(b, b.compare("eq", i, b.cast("arith.index_cast", b.index(rank), i.type)), element))
    return trace.tensor(result)


