# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gathers and scatters as loop nests with inferable sharding rules.

A gather also iterates over the operand's indexed dimensions and selects the element with the requested index:

    out[i, j] = fold(+, v) select(indices[i] == v, operand[v, j], 0)

If v is sharded, each device looks up the elements that it holds and the results are added. A scatter swaps the roles:

    out[v, j] = operand[v, j] combined with fold(op, i) select(indices[i] == v, updates[i, j], identity of op)

or, where updates replace elements, out[v, j] = select(indices[i] == v, updates[i, j], out[v, j]) for each i in order.

Nothing is multiplied, so that infinities and NaN are preserved.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex_core

from ..ir import AffineMap, TensorType
from ..ir.scalars import combine, negative, wide, widened
from ..ir.sorting import add
from . import elements
from .elements import bound, convert, kind_of
from .reductions import narrow
from .registry import rule

_NOWHERE = -(1 << 30)  # an index that matches no element, even with a window's offset added


def _mode(eqn) -> str:
    """The mode of a gather or scatter: clip, fill or promise."""
    name = str(eqn.params["mode"]).upper()
    return "clip" if "CLIP" in name else "fill" if "FILL" in name else "promise"


def _columns(ctx, eqn, indices, dtype):
    """The index vectors as one integer tensor per component."""
    b, shape = ctx.b, indices.type.shape
    unsigned = dtype.kind == "u" and dtype.itemsize >= 4  # may be negative as signed words
    to = "i64" if indices.type.element == "i64" or unsigned else "i32"
    columns = []
    for k in range(shape[-1]):
        offsets = [0] * len(shape)
        offsets[-1] = k
        column = b.reshape(b.slice(indices, offsets, (*shape[:-1], 1)), shape[:-1])
        if column.type.element == "i64" and unsigned:
            column = b.pointwise([column], shape[:-1], lambda x: b.apply("arith.minui", x, b.constant((1 << 63) - 1, x.type)))
        elif column.type.element != to:
            column = b.pointwise([column], shape[:-1], lambda x: convert(b, x, dtype, "int64" if to == "i64" else "int32"))
        columns.append(column)
    return columns


def _clamped(b, column, last):
    def body(x):
        low, high = b.constant(0, x.type), b.constant(last, x.type)
        return b.apply("arith.minsi", b.apply("arith.maxsi", x, low), high)
    return b.pointwise([column], column.type.shape, body)


def _inside(b, columns, lasts):
    """An i1 tensor: whether all components of an index vector are in [0, last]."""
    def body(*xs):
        result = None
        for x, last in zip(xs, lasts):
            fits = b.apply("arith.andi", b.compare("sge", x, b.constant(0, x.type)), b.compare("sle", x, b.constant(last, x.type)))
            result = fits if result is None else b.apply("arith.andi", result, fits)
        return result
    return b.pointwise(columns, columns[0].type.shape, body)


def _only_inside(b, columns, lasts):
    """The index columns, with vectors out of range replaced by _NOWHERE."""
    inside = _inside(b, columns, lasts)
    return [b.pointwise([inside, c], c.type.shape, lambda ok, x: b.select(ok, x, b.constant(_NOWHERE, x.type))) for c in columns]


def _matches(b, conditions):
    """Conjunction of index (+ offset) == loop, over triples (index element, loop, offset loop or None)."""
    result = None
    for index, loop, offset in conditions:
        here = b.cast("arith.index_cast", b.index(loop), index.type)
        if offset is not None:
            index = b.apply("arith.addi", index, b.cast("arith.index_cast", b.index(offset), index.type))
        same = b.compare("eq", index, here)
        result = same if result is None else b.apply("arith.andi", result, same)
    return result


@rule("gather")
def _(ctx, eqn, operand, indices):
    b, numbers, sizes = ctx.b, eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    element, out = operand.type.element, eqn.outvars[0].aval
    shape, rank = operand.type.shape, len(out.shape)
    if 0 in out.shape or 0 in shape:
        return b.constant(0, TensorType(out.shape, element))
    columns = _columns(ctx, eqn, indices, eqn.invars[1].aval.dtype)
    lasts = [shape[d] - sizes[d] for d in numbers.start_index_map]
    init = b.constant(0, TensorType(out.shape, element))
    batch_loops = [d for d in range(rank) if d not in numbers.offset_dims]
    if _mode(eqn) == "fill" and columns:
        # An index out of range matches no element: start its sum from the fill value.
        fill = _fill_value(eqn)
        start = b.pointwise([_inside(b, columns, lasts)], columns[0].type.shape,
                            lambda ok: b.select(ok, b.constant(0, element), b.constant(fill, element)))
        init = b.broadcast(start, out.shape, batch_loops)
        columns = _only_inside(b, columns, lasts)
    else:
        columns = [_clamped(b, c, last) for c, last in zip(columns, lasts)]
    places, matches, loops = [], [], rank
    windows = iter(map(int, numbers.offset_dims))  # rules of JAX make them NumPy's integers
    for d, n in enumerate(shape):
        if d in numbers.operand_batching_dims:
            at = numbers.start_indices_batching_dims[numbers.operand_batching_dims.index(d)]
            places.append(batch_loops[at])
            continue
        offset = None if d in numbers.collapsed_slice_dims else next(windows)
        if d not in numbers.start_index_map:
            if sizes[d] != n:
                operand = b.slice(operand, [0] * len(shape), [*operand.type.shape[:d], sizes[d], *operand.type.shape[d + 1:]])
            places.append("0" if offset is None else offset)
        elif sizes[d] == n and offset is not None:  # the slice can only begin at 0
            places.append(offset)
        else:
            places.append(loops)
            matches.append((columns[numbers.start_index_map.index(d)], loops, offset if sizes[d] > 1 else None))
            loops += 1
    if not matches:
        value = operand
        spread = [p for p in places if isinstance(p, int)]
        order = sorted(range(len(places)), key=lambda i: (isinstance(places[i], int), places[i] if isinstance(places[i], int) else 0))
        value = b.transpose(value, order)
        value = b.reshape(value, [shape_ for shape_, i in zip(value.type.shape, order) if isinstance(places[i], int)])
        value = b.broadcast(value, out.shape, sorted(spread))
        return value if _mode(eqn) != "fill" or not columns else b.pointwise(
            [init, value], out.shape, lambda start, x: b.apply("arith.addf" if elements.is_float(out.dtype) else "arith.addi", start, x))
    every = AffineMap(loops, tuple(batch_loops))

    def body(x, *rest):
        *found, acc = rest
        same = _matches(b, [(i, loop, offset) for i, (_, loop, offset) in zip(found, matches)])
        return add(b, element, acc, b.select(same, x, b.constant(0, element)))
    result, = b.generic([(operand, AffineMap(loops, tuple(places))), *[(c, every) for c, _, _ in matches]],
                        [(init, AffineMap(loops, tuple(range(rank))))],
                        ["parallel"] * rank + ["reduction"] * (loops - rank), body)
    return result


def _fill_value(eqn):
    dtype, fill = eqn.outvars[0].aval.dtype, eqn.params["fill_value"]
    if fill is not None:
        return fill
    if elements.is_float(dtype):
        return math.nan
    return True if elements.element_of(dtype) == "i1" else bound(dtype, elements.is_unsigned(dtype))


def _numbers(value):
    """The elements of an integer tensor that is put together of constants; None for others."""
    made = value.owner
    if made is None or not isinstance(value.type, TensorType):
        return None
    if "splat" in made.attributes:
        return np.full(value.type.shape, made.attributes["splat"])
    if made.name == "tensor.concat":
        parts = [_numbers(part) for part in made.operands]
        return None if any(part is None for part in parts) else np.concatenate(parts, made.attributes["dim"])
    return None


def _one_window(eqn, operand, indices, updates):
    """Offset and sizes of a scatter's only window, if the indices are constants and it is in bounds; else None."""
    numbers, at = eqn.params["dimension_numbers"], _numbers(indices)
    if at is None or at.ndim != 1:
        return None
    shape = operand.type.shape
    windows = iter(updates.type.shape)
    sizes = [1 if d in numbers.inserted_window_dims else next(windows) for d in range(len(shape))]
    offsets = [0] * len(shape)
    for d, start in zip(numbers.scatter_dims_to_operand_dims, at):
        offsets[d] = int(start) if _mode(eqn) != "clip" else min(max(int(start), 0), shape[d] - sizes[d])
    inside = all(0 <= offset <= n - size for offset, n, size in zip(offsets, shape, sizes))
    return (offsets, sizes) if inside else None


class _Scatter:
    """The nest of a scatter: loops 0 to R - 1 are the operand's dimensions, followed by those of the updates."""

    def __init__(self, ctx, eqn, operand, indices, updates):
        b, numbers = ctx.b, eqn.params["dimension_numbers"]
        self.b, self.rank = b, operand.type.rank
        shape = operand.type.shape
        window_dims = [d for d in range(self.rank) if d not in numbers.inserted_window_dims and d not in numbers.operand_batching_dims]
        sizes = dict.fromkeys(range(self.rank), 1) | dict(zip(window_dims, [updates.type.shape[d] for d in numbers.update_window_dims]))
        scattered = list(numbers.scatter_dims_to_operand_dims)
        columns = _columns(ctx, eqn, indices, eqn.invars[1].aval.dtype)
        lasts = [shape[d] - sizes[d] for d in scattered]
        if columns:
            columns = [_clamped(b, c, last) for c, last in zip(columns, lasts)] if _mode(eqn) == "clip" else _only_inside(b, columns, lasts)
        self.places = [None] * updates.type.rank  # loops of the updates' dimensions
        index_dims = [d for d in range(updates.type.rank) if d not in numbers.update_window_dims]
        loops, self.sizes = self.rank, []
        for at, d in enumerate(index_dims):
            if at in numbers.scatter_indices_batching_dims:
                self.places[d] = numbers.operand_batching_dims[numbers.scatter_indices_batching_dims.index(at)]
                continue
            self.places[d] = loops
            self.sizes.append(updates.type.shape[d])
            loops += 1
        self.matches = []  # (column, loop of the operand, loop of the window or None)
        self.at_zero = []  # operand dimensions written only at index 0
        for d, u in zip(window_dims, numbers.update_window_dims):
            column = columns[scattered.index(d)] if d in scattered else None
            if sizes[d] == shape[d]:
                self.places[u] = d  # the window begins at 0 or is dropped
                if column is not None:
                    self.matches.append((column, None, None))
                continue
            self.places[u] = loops
            self.sizes.append(sizes[d])
            if column is None:
                column = b.constant(0, TensorType(indices.type.shape[:-1], "i32"))
            self.matches.append((column, d, loops))
            loops += 1
        for d in numbers.inserted_window_dims:
            if d in scattered:
                self.matches.append((columns[scattered.index(d)], d, None))
            else:
                self.at_zero.append(d)
        self.loops, self.updates = loops, updates
        self.index_map = AffineMap(loops, tuple(self.places[d] for d in index_dims))
        self.update_map = AffineMap(loops, tuple(self.places))

    def fold(self, init, combine=None, identity=None, value=lambda x: x):
        """acc = combine(acc, value(update)) over the updates that target an element, starting from `init`; without
        combine: acc = value(update)."""
        b, element = self.b, init.type.element

        def body(x, *rest):
            *found, acc = rest
            same = None
            for index, (_, loop, offset) in zip(found, self.matches):
                here = b.compare("eq", index, b.constant(0, index.type)) if loop is None else _matches(b, [(index, loop, offset)])
                same = here if same is None else b.apply("arith.andi", same, here)
            for d in self.at_zero:
                here = b.compare("eq", b.index(d), b.constant(0, "index"))
                same = here if same is None else b.apply("arith.andi", same, here)
            x = value(x)
            if combine is None:
                return x if same is None else b.select(same, x, acc)
            return combine(acc, x if same is None else b.select(same, x, b.constant(identity, element)))
        result, = b.generic([(self.updates, self.update_map), *[(c, self.index_map) for c, _, _ in self.matches]],
                            [(init, AffineMap(self.loops, tuple(range(self.rank))))],
                            ["parallel"] * self.rank + ["reduction"] * (self.loops - self.rank), body)
        return result


@rule("scatter-add", "scatter_add", "scatter-sub", "scatter_sub", "scatter-mul", "scatter_mul", "scatter-min", "scatter_min",
      "scatter-max", "scatter_max")
def _(ctx, eqn, operand, indices, updates):
    b, dtype = ctx.b, eqn.invars[0].aval.dtype
    kind, element = eqn.primitive.name[-3:], operand.type.element
    if 0 in updates.type.shape or 0 in operand.type.shape:
        return operand
    if kind in ("add", "sub") and (window := _one_window(eqn, operand, indices, updates)):
        return _added(b, kind, operand, updates, *window)
    nest = _Scatter(ctx, eqn, operand, indices, updates)
    if kind in ("min", "max"):
        return nest.fold(operand, combine(b, kind, kind_of(dtype)), bound(dtype, kind == "min"))
    to = wide(element)
    value = widen = lambda x: widened(b, x, to)
    init = operand if to == element else b.pointwise([operand], operand.type.shape, widen)
    if kind == "sub":
        value = lambda x: negative(b, to, widen(x))
    if kind == "mul":
        folded = nest.fold(init, combine(b, "mul", to), 1, value)
    else:
        folded = nest.fold(init, lambda acc, x: add(b, to, acc, x), 0, value)
    return narrow(b, folded, element)


def _added(b, kind, operand, updates, offsets, sizes):
    """The operand and, in the window, the updates: one padded tensor, whose rows stay where those of the operand are."""
    part = b.reshape(updates, sizes)
    high = [n - offset - size for n, offset, size in zip(operand.type.shape, offsets, sizes)]
    part = b.pad(part, offsets, high, 0) if part.type.shape != operand.type.shape else part
    element, to = operand.type.element, wide(operand.type.element)

    def body(x, u):
        u = widened(b, u, to)
        total = add(b, to, widened(b, x, to), negative(b, to, u) if kind == "sub" else u)
        return total
    return narrow(b, b.pointwise([operand, part], operand.type.shape, body), element)


@rule("scatter")
def _(ctx, eqn, operand, indices, updates):
    """The last of several updates of one element wins: the nest assigns in order."""
    b = ctx.b
    if 0 in updates.type.shape or 0 in operand.type.shape:
        return operand
    nest = _Scatter(ctx, eqn, operand, indices, updates)
    if eqn.params["update_jaxpr"] is not None:
        return _applied(ctx, eqn, operand, indices, updates, math.prod(nest.sizes) == 1)
    if window := _one_window(eqn, operand, indices, updates):
        return b.update(operand, b.reshape(updates, window[1]), window[0])
    return nest.fold(operand)


def _applied(ctx, eqn, operand, indices, updates, single):
    """`.at[].apply(f)`: f once per occurrence of an index.

    In rounds, on the elements that are selected alone: each reads them, applies f and writes them back, up to the
    greatest count of an element.
    """
    p, jaxpr, numbers = eqn.params, eqn.params["update_jaxpr"], eqn.params["dimension_numbers"]
    reads = [v for inner in jaxpr.eqns for v in inner.invars] + list(jaxpr.outvars)
    if any(v is jaxpr.invars[1] for v in reads):
        raise ctx.error(eqn, "'scatter' with a function of the element and the update is not supported; use "
                             "`.at[].apply(f)`, with f of the element")
    shape, selected = operand.type.shape, updates.type.shape
    fixed = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    windows = iter([selected[d] for d in numbers.update_window_dims])
    sizes = [1 if d in fixed else next(windows) for d in range(len(shape))]
    places = lax.GatherDimensionNumbers(numbers.update_window_dims, numbers.inserted_window_dims, numbers.scatter_dims_to_operand_dims,
                                        numbers.operand_batching_dims, numbers.scatter_indices_batching_dims)
    function = jex_core.jaxpr_as_fun(jex_core.ClosedJaxpr(jaxpr, p["update_consts"]))
    each = lambda x: function(x, np.zeros((), eqn.invars[0].aval.dtype))[0]
    for _ in selected:
        each = jax.vmap(each)

    def program(x, indices):
        read = lambda values: lax.gather(values, indices, places, sizes, mode="clip" if _mode(eqn) == "clip" else "fill", fill_value=0)
        write = lambda x, values: lax.scatter(x, indices, values, numbers, mode=p["mode"], unique_indices=p["unique_indices"])
        if p["unique_indices"] or single:
            return write(x, each(read(x)))
        counts = read(lax.scatter_add(jnp.zeros(shape, jnp.int32), indices, jnp.ones(selected, jnp.int32), numbers, mode=p["mode"]))
        most = counts.max(initial=0)

        def once(state):
            done, x = state
            values = read(x)
            return done + 1, write(x, jnp.where(counts > done, each(values), values))
        return lax.while_loop(lambda state: state[0] < most, once, (jnp.int32(0), x))[1]
    avals = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in eqn.invars[:2]]
    return ctx.inline(jax.make_jaxpr(program)(*avals), [operand, indices])


def scalar_index(ctx, value, dtype, last):
    """A rank-0 integer tensor clamped to [0, last], as a value of type index; a Python integer if it is constant."""
    b = ctx.b
    if last == 0:  # a slice of a whole dimension, which so may be cut
        return 0
    if value.owner is not None and "splat" in value.owner.attributes:
        return min(max(int(value.owner.attributes["splat"]), 0), last)
    scalar = convert(b, b.op("tensor.extract", [value], [value.type.element]).result, dtype, "int64")
    low, high = b.constant(0, "i64"), b.constant(last, "i64")
    return b.cast("arith.index_cast", b.apply("arith.minsi", b.apply("arith.maxsi", scalar, low), high), "index")


@rule("dynamic_slice")
def _(ctx, eqn, operand, *starts):
    sizes = ctx.shape(eqn)
    offsets = [scalar_index(ctx, s, v.aval.dtype, n - size)
               for s, v, n, size in zip(starts, eqn.invars[1:], operand.type.shape, sizes)]
    return ctx.b.slice(operand, [*offsets, *[0] * (len(sizes) - len(offsets))], sizes)


@rule("dynamic_update_slice")
def _(ctx, eqn, operand, part, *starts):
    offsets = [scalar_index(ctx, s, v.aval.dtype, n - size)
               for s, v, n, size in zip(starts, eqn.invars[2:], operand.type.shape, part.type.shape)]
    return ctx.b.update(operand, part, offsets)
