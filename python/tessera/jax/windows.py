# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions and pooling: nests that read `stride * i + dilation * k` of a padded tensor.

Input dilation inserts zeros between elements and negative padding crops, both before the nest. Windows that tile their
dimension are expressed by splitting the dimension and reducing the inner part.
"""

from __future__ import annotations

import math

from ..ir import AffineMap, TensorType
from ..ir.scalars import combine, compare, row_major, wide, widened
from ..ir.windows import Windows, convolve, dilate, edges
from . import elements
from .elements import bound, kind_of
from .reductions import narrow
from .registry import rule


@rule("conv_general_dilated")
def _(ctx, eqn, lhs, rhs):
    b, p, out = ctx.b, eqn.params, eqn.outvars[0].aval
    numbers, element = p["dimension_numbers"], elements.element_of(out.dtype)
    if not elements.is_float(out.dtype):
        raise ctx.error(eqn, f"'conv_general_dilated' of {out.dtype} is not supported; use astype")
    if 0 in out.shape or 0 in lhs.type.shape or 0 in rhs.type.shape:
        return b.constant(0, TensorType(tuple(out.shape), element))
    spatial = range(len(out.shape) - 2)
    lhs_space = numbers.lhs_spec[2:]

    steps, padding = [1] * lhs.type.rank, [(0, 0)] * lhs.type.rank
    for i in spatial:
        steps[lhs_space[i]], padding[lhs_space[i]] = p["lhs_dilation"][i], p["padding"][i]
    lhs = edges(b, dilate(b, lhs, steps, 0), padding, 0)

    result = convolve(b, lhs, rhs, (numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec), out.shape, p["window_strides"],
                      p["rhs_dilation"], p["feature_group_count"], p["batch_group_count"], wide(element))
    return narrow(b, result, element)


def _windows(ctx, eqn, x, counts, fill):
    """The padded tensor and its windows."""
    b, p = ctx.b, eqn.params
    x = dilate(b, x, p.get("base_dilation") or [1] * x.type.rank, fill)
    x = edges(b, x, p["padding"], fill)
    dilation = p.get("window_dilation") or [1] * x.type.rank
    return x, Windows(x.type.shape, p["window_dimensions"], p["window_strides"], dilation, counts)


@rule("reduce_window_sum", "reduce_window_max", "reduce_window_min")
def _(ctx, eqn, x):
    b, dtype, element, kind = ctx.b, eqn.invars[0].aval.dtype, x.type.element, eqn.primitive.name[-3:]
    out = eqn.outvars[0].aval.shape
    if 0 in out:
        return b.constant(0, TensorType(tuple(out), element))
    if kind == "sum":
        to = wide(element)
        x, windows = _windows(ctx, eqn, x, out, 0)
        return narrow(b, windows.fold(b, x, combine(b, "add", to), 0, to, lambda x: widened(b, x, to)), element)
    least = bound(dtype, kind == "min")
    x, windows = _windows(ctx, eqn, x, out, least)
    return windows.fold(b, x, combine(b, kind, kind_of(dtype)), least, element)


@rule("select_and_scatter_add")
def _(ctx, eqn, source, operand):
    """Each window adds its element of `source` at the first position of its maximum (or minimum).

    In gather form: a position sums over the windows that selected it.
    """
    b, p, dtype = ctx.b, eqn.params, eqn.invars[1].aval.dtype
    largest = {"ge": True, "le": False}.get(str(p["select_prim"]))
    if largest is None:
        raise ctx.error(eqn, f"'select_and_scatter_add' by {p['select_prim']} is not supported")
    if 0 in source.type.shape:
        return b.constant(0, operand.type)
    identity, element = bound(dtype, not largest), operand.type.element
    padded, windows = _windows(ctx, eqn, operand, source.type.shape, identity)
    best = windows.fold(b, padded, combine(b, "max" if largest else "min", kind_of(dtype)), identity, element)
    beyond = math.prod(windows.dims)
    if windows.tiles():
        return _undoedges(b, _scatter_tiles(b, source, padded, best, windows, dtype, beyond), operand.type.shape, p["padding"])
    outer, read = windows.outer, windows.read

    def first(x, _, best, acc):
        here = b.select(compare(b, "eq", kind_of(dtype), x, best), windows.number(b, "i32"), b.constant(beyond, "i32"))
        return b.apply("arith.minsi", acc, here)
    init = b.constant(beyond, TensorType(source.type.shape, "i32"))
    chosen, = b.generic([(padded, read), windows.extents(b, element), (best, outer)], [(init, outer)], windows.iterators(), first)
    return _collect(b, source, chosen, windows, operand.type.shape, p["padding"])


def _scatter_tiles(b, source, padded, best, windows, dtype, beyond):
    """The case of tiling windows: elementwise in the split tensor."""
    parts, inner = windows.split(b, padded)
    outer = [d for d in range(parts.type.rank) if d not in inner]
    rank = parts.type.rank
    every, kept = AffineMap.identity(rank), AffineMap(rank, tuple(outer))

    number = lambda: row_major(b, {d: parts.type.shape[d] for d in inner})

    def first(x, best, acc):
        return b.apply("arith.minsi", acc, b.select(compare(b, "eq", kind_of(dtype), x, best), number(), b.constant(beyond, "i32")))
    chosen, = b.generic([(parts, every), (best, kept)], [(b.constant(beyond, TensorType(source.type.shape, "i32")), kept)],
                        ["reduction" if d in inner else "parallel" for d in range(rank)], first)
    element = source.type.element
    spread, = b.generic([(source, kept), (chosen, kept)], [(b.empty(TensorType(parts.type.shape, element)), every)], ["parallel"] * rank,
                        lambda s, c, _: b.select(b.compare("eq", c, number()), s, b.constant(0, element)))
    joined = b.reshape(spread, [c * n for c, n in zip(windows.counts, windows.dims)])
    return b.pad(joined, [0] * padded.type.rank, [n - m for n, m in zip(padded.type.shape, joined.type.shape)], 0)


def _undoedges(b, x, shape, padding):
    """Removes the padding."""
    return edges(b, x, [(-low, -high) for low, high in padding], 0) if any(map(any, padding)) else x


def _collect(b, source, chosen, windows, shape, padding):
    """The sum at each position over the windows that selected it.

    Position q of the padded tensor is element k of window (q - k) / stride: windows are dilated by the stride, and q
    reads them backwards from there.
    """
    rank, padded = len(shape), windows.shape
    spread = [dilate(b, v, windows.strides, fill) for v, fill in ((source, 0), (chosen, -1))]
    reach = [(n - 1) * d for n, d in zip(windows.dims, windows.dilation)]
    margins = [(r, n - m) for r, n, m in zip(reach, padded, spread[0].type.shape)]
    spread = [edges(b, v, margins, fill) for v, fill in zip(spread, (0, -1))]
    back = Windows(spread[0].type.shape, windows.dims, [1] * rank, windows.dilation, padded)
    element, last = source.type.element, math.prod(windows.dims) - 1

    def body(s, c, _, acc):
        k = b.apply("arith.subi", b.constant(last, "i32"), back.number(b, "i32"))
        value = b.select(b.compare("eq", c, k), s, b.constant(0, element))
        return b.apply("arith.addf" if element in ("f64", "f32", "f16", "bf16") else "arith.addi", acc, value)
    result, = b.generic([(spread[0], back.read), (spread[1], back.read), back.extents(b, element)],
                        [(b.constant(0, TensorType(tuple(padded), element)), back.outer)], back.iterators(), body)
    return _undoedges(b, result, shape, padding)
