# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions and pooling: nests that read `stride * i + dilation * k` of a padded tensor.

Dilation of an input puts zeros between its elements, a negative padding cuts; both happen before the nest. Windows that
tile their dimension need no window at all: the dimension is split, and the inner part is reduced.
"""

from __future__ import annotations

import math
import re

from ..ir import AffineMap, TensorType
from . import elements
from .elementwise import compare, extremum
from .reductions import bound, narrow, wide
from .registry import rule
from .shapes import dilate


def _place(out: int, window: int, stride: int, dilation: int, sizes) -> str:
    """`out * stride + window * dilation`; the longer loop first, because it is the one that can be cut."""
    term = lambda loop, factor: f"d{loop}" if factor == 1 else f"d{loop} * {factor}"
    terms = [(sizes[out], term(out, stride)), (sizes[window], term(window, dilation))]
    return " + ".join(text for _, text in sorted(terms, key=lambda t: -t[0]))


def _edges(b, x, padding, fill):
    """Pads by (low, high) a dimension; negative numbers cut."""
    offsets = [max(0, -low) for low, _ in padding]
    sizes = [n + min(0, low) + min(0, high) for n, (low, high) in zip(x.type.shape, padding)]
    return b.pad(b.slice(x, offsets, sizes), [max(0, low) for low, _ in padding], [max(0, high) for _, high in padding], fill)


@rule("conv_general_dilated")
def _(ctx, eqn, lhs, rhs):
    b, p, out = ctx.b, eqn.params, eqn.outvars[0].aval
    numbers, element = p["dimension_numbers"], elements.element_of(out.dtype)
    if not elements.is_float(out.dtype):
        raise ctx.error(eqn, f"'conv_general_dilated' of {out.dtype} is not supported; use astype")
    if 0 in out.shape or 0 in lhs.type.shape or 0 in rhs.type.shape:
        return b.constant(0, TensorType(tuple(out.shape), element))
    space, spatial = len(out.shape) - 2, range(len(out.shape) - 2)
    lhs_space, rhs_space = numbers.lhs_spec[2:], numbers.rhs_spec[2:]

    steps, edges = [1] * lhs.type.rank, [(0, 0)] * lhs.type.rank
    for i in spatial:
        steps[lhs_space[i]], edges[lhs_space[i]] = p["lhs_dilation"][i], p["padding"][i]
    lhs = _edges(b, dilate(b, lhs, steps, 0), edges, 0)

    # Groups: a dimension of lhs and the output features of rhs split into (group, rest).
    groups = max(p["feature_group_count"], p["batch_group_count"])
    grouped = numbers.lhs_spec[1 if p["feature_group_count"] > 1 else 0] if groups > 1 else None
    # Loops: batch, group, output feature, output space; input feature, window.
    batch, group, feature, first, channel, window = 0, 1, 2, 3, 3 + space, 4 + space
    lhs_places, rhs_places = [None] * lhs.type.rank, [None] * rhs.type.rank
    sizes = [0] * (4 + 2 * space)
    sizes[group] = groups
    sizes[batch] = lhs.type.shape[numbers.lhs_spec[0]] // p["batch_group_count"]
    sizes[channel] = rhs.type.shape[numbers.rhs_spec[1]]
    sizes[feature] = rhs.type.shape[numbers.rhs_spec[0]] // groups
    lhs_places[numbers.lhs_spec[0]], lhs_places[numbers.lhs_spec[1]] = batch, channel
    rhs_places[numbers.rhs_spec[0]], rhs_places[numbers.rhs_spec[1]] = feature, channel
    for i in spatial:
        sizes[first + i], sizes[window + i] = out.shape[numbers.out_spec[2 + i]], rhs.type.shape[rhs_space[i]]
    for i in spatial:
        stride, d = p["window_strides"][i], lhs_space[i]
        if sizes[window + i] == 1:  # no window: every stride-th element
            length = (sizes[first + i] - 1) * stride + 1
            if lhs.type.shape[d] != sizes[first + i]:
                shape = list(lhs.type.shape)
                shape[d] = sizes[first + i]
                ones = [stride if k == d else 1 for k in range(len(shape))]
                assert length <= lhs.type.shape[d]
                lhs = b.slice(lhs, [0] * len(shape), shape, ones)
            lhs_places[d], rhs_places[rhs_space[i]] = first + i, "0"
        elif sizes[first + i] == 1:  # the whole dimension is one window
            length = (sizes[window + i] - 1) * p["rhs_dilation"][i] + 1
            shape, ones = list(lhs.type.shape), [1] * lhs.type.rank
            shape[d], ones[d] = sizes[window + i], p["rhs_dilation"][i]
            assert length <= lhs.type.shape[d]
            lhs = b.slice(lhs, [0] * len(shape), shape, ones)
            lhs_places[d], rhs_places[rhs_space[i]] = window + i, window + i
        else:
            lhs_places[d] = _place(first + i, window + i, stride, p["rhs_dilation"][i], sizes)
            rhs_places[rhs_space[i]] = window + i
    if groups > 1:
        lhs, lhs_places = _split(b, lhs, lhs_places, grouped, groups, group)
        rhs, rhs_places = _split(b, rhs, rhs_places, numbers.rhs_spec[0], groups, group)
    written = [None] * len(out.shape)
    written[numbers.out_spec[0]], written[numbers.out_spec[1]] = batch, feature
    for i in spatial:
        written[numbers.out_spec[2 + i]] = first + i
    at = written.index(feature)
    written[at:at] = [group] if groups > 1 else []
    result = _contract(b, lhs, lhs_places, rhs, rhs_places, written, sizes, wide(element))
    return narrow(b, b.reshape(result, out.shape), element)


def _split(b, x, places, dim, groups, loop):
    shape = x.type.shape
    x = b.reshape(x, (*shape[:dim], groups, shape[dim] // groups, *shape[dim + 1:]))
    return x, [*places[:dim], loop, *places[dim:]]


def _contract(b, lhs, lhs_places, rhs, rhs_places, written, sizes, element):
    """The sum of products; loops that nothing runs over are left out, dimensions of size 1 at "0" removed."""
    keep = [d for d, place in enumerate(rhs_places) if place != "0"]
    rhs = b.reshape(rhs, [rhs.type.shape[d] for d in keep])
    rhs_places = [rhs_places[d] for d in keep]
    used = sorted({loop for loop in (*rhs_places, *written, *[p for p in lhs_places if isinstance(p, int)])})
    number = {loop: i for i, loop in enumerate(used)}

    def renamed(place):
        if isinstance(place, int):
            return number[place]
        return re.sub(r"d(\d+)", lambda m: f"d{number[int(m[1])]}", place)
    lhs_places, rhs_places, written = [[renamed(p) for p in places] for places in (lhs_places, rhs_places, written)]
    sizes = [sizes[loop] for loop in used]
    if all(isinstance(p, int) for p in lhs_places):
        return b.contract(lhs, rhs, lhs_places, rhs_places, written, sizes, element)
    type = TensorType(tuple(sizes[i] for i in written), element)
    wider = lambda x: x if x.type == element else b.cast("arith.extf", x, element)
    result, = b.generic([(lhs, AffineMap(len(used), tuple(lhs_places))), (rhs, AffineMap(len(used), tuple(rhs_places)))],
                        [(b.constant(0, type), AffineMap(len(used), tuple(written)))],
                        ["parallel" if i in written else "reduction" for i in range(len(used))],
                        lambda x, w, acc: b.apply("arith.addf", acc, b.apply("arith.mulf", wider(x), wider(w))))
    return result


class _Windows:
    """Windows over the dimensions of a padded tensor, as far as they are longer than 1 or skip elements."""

    def __init__(self, shape, dims, strides, dilation, counts):
        self.shape, self.dims, self.strides, self.dilation, self.counts = shape, dims, strides, dilation, counts
        self.moving = [d for d, n in enumerate(dims) if n > 1]
        # Loops: the windows, then what is inside them.
        self.sizes = [*counts, *[dims[d] for d in self.moving]]
        inner = {d: len(counts) + i for i, d in enumerate(self.moving)}
        self.read = AffineMap(len(self.sizes), tuple(
            _place(d, inner[d], strides[d], dilation[d], self.sizes) if d in inner else d if strides[d] == 1 else f"d{d} * {strides[d]}"
            for d in range(len(counts))))
        self.outer = AffineMap(len(self.sizes), tuple(range(len(counts))))
        self.inner = AffineMap(len(self.sizes), tuple(range(len(counts), len(self.sizes))))

    def tiles(self) -> bool:
        return all(s == n and d == 1 for s, n, d in zip(self.strides, self.dims, self.dilation))

    def extents(self, b, element):
        """An operand that says how long windows are; its elements are not read."""
        return b.empty(TensorType(tuple(self.dims[d] for d in self.moving), element)), self.inner

    def iterators(self):
        return ["parallel"] * len(self.counts) + ["reduction"] * len(self.moving)

    def number(self, b, element):
        """In the body: the place inside the window, row-major."""
        number = b.constant(0, element)
        for i, d in enumerate(self.moving):
            here = b.cast("arith.index_cast", b.index(len(self.counts) + i), element)
            number = b.apply("arith.addi", b.apply("arith.muli", number, b.constant(self.dims[d], element)), here) if i else here
        return number

    def split(self, b, x):
        """For windows that tile: each dimension as (window, inside) where there is something inside; the inner dims."""
        x = b.slice(x, [0] * len(self.counts), [c * n for c, n in zip(self.counts, self.dims)])
        shape, inner = [], []
        for d, count in enumerate(self.counts):
            shape.append(count)
            if d in self.moving:
                inner.append(len(shape))
                shape.append(self.dims[d])
        return b.reshape(x, shape), inner

    def fold(self, b, x, combine, identity, element, prepare=lambda x: x):
        """Combines the elements of each window."""
        if self.tiles():
            parts, inner = self.split(b, x)
            return b.reduce(parts, inner, combine, identity, element, prepare)
        init = b.constant(identity, TensorType(tuple(self.counts), element))
        result, = b.generic([(x, self.read), self.extents(b, x.type.element)], [(init, self.outer)], self.iterators(),
                            lambda x, _, acc: combine(acc, prepare(x)))
        return result


def _windows(ctx, eqn, x, counts, fill):
    """The padded tensor and its windows."""
    b, p = ctx.b, eqn.params
    x = dilate(b, x, p.get("base_dilation") or [1] * x.type.rank, fill)
    x = _edges(b, x, p["padding"], fill)
    dilation = p.get("window_dilation") or [1] * x.type.rank
    return x, _Windows(x.type.shape, p["window_dimensions"], p["window_strides"], dilation, counts)


@rule("reduce_window_sum", "reduce_window_max", "reduce_window_min")
def _(ctx, eqn, x):
    b, dtype, element, kind = ctx.b, eqn.invars[0].aval.dtype, x.type.element, eqn.primitive.name[-3:]
    out = eqn.outvars[0].aval.shape
    if 0 in out:
        return b.constant(0, TensorType(tuple(out), element))
    if kind == "sum":
        to, floats = wide(element), elements.is_float(dtype)
        x, windows = _windows(ctx, eqn, x, out, 0)
        prepare = (lambda x: x) if to == element else (lambda x: b.cast("arith.extf", x, to))
        add = lambda acc, x: b.apply("arith.addf" if floats else "arith.addi", acc, x)
        return narrow(b, windows.fold(b, x, add, 0, to, prepare), element)
    least = bound(dtype, kind == "min")
    x, windows = _windows(ctx, eqn, x, out, least)
    return windows.fold(b, x, extremum(b, kind == "max", dtype), least, element)


@rule("select_and_scatter_add")
def _(ctx, eqn, source, operand):
    """Each window adds its element of `source` at the first place that has its greatest (or least) element.

    In gather form: a place collects from the windows that chose it."""
    b, p, dtype = ctx.b, eqn.params, eqn.invars[1].aval.dtype
    largest = {"ge": True, "le": False}.get(str(p["select_prim"]))
    if largest is None:
        raise ctx.error(eqn, f"'select_and_scatter_add' by {p['select_prim']} is not supported")
    if 0 in source.type.shape:
        return b.constant(0, operand.type)
    identity, element = bound(dtype, not largest), operand.type.element
    padded, windows = _windows(ctx, eqn, operand, source.type.shape, identity)
    best = windows.fold(b, padded, extremum(b, largest, dtype), identity, element)
    beyond = math.prod(windows.dims)
    if windows.tiles():
        return _undo_edges(b, _scatter_tiles(b, source, padded, best, windows, dtype, beyond), operand.type.shape, p["padding"])
    outer, read = windows.outer, windows.read

    def first(x, _, best, acc):
        here = b.select(compare(b, "eq", dtype, x, best), windows.number(b, "i32"), b.constant(beyond, "i32"))
        return b.apply("arith.minsi", acc, here)
    init = b.constant(beyond, TensorType(source.type.shape, "i32"))
    chosen, = b.generic([(padded, read), windows.extents(b, element), (best, outer)], [(init, outer)], windows.iterators(), first)
    return _collect(b, source, chosen, windows, operand.type.shape, p["padding"])


def _scatter_tiles(b, source, padded, best, windows, dtype, beyond):
    """Windows that tile: everything is elementwise in the split tensor."""
    parts, inner = windows.split(b, padded)
    outer = [d for d in range(parts.type.rank) if d not in inner]
    rank = parts.type.rank
    every, kept = AffineMap.identity(rank), AffineMap(rank, tuple(outer))

    def number():
        number = b.constant(0, "i32")
        for i, d in enumerate(inner):
            here = b.cast("arith.index_cast", b.index(d), "i32")
            number = b.apply("arith.addi", b.apply("arith.muli", number, b.constant(parts.type.shape[d], "i32")), here) if i else here
        return number

    def first(x, best, acc):
        return b.apply("arith.minsi", acc, b.select(compare(b, "eq", dtype, x, best), number(), b.constant(beyond, "i32")))
    chosen, = b.generic([(parts, every), (best, kept)], [(b.constant(beyond, TensorType(source.type.shape, "i32")), kept)],
                        ["reduction" if d in inner else "parallel" for d in range(rank)], first)
    element = source.type.element
    spread, = b.generic([(source, kept), (chosen, kept)], [(b.empty(TensorType(parts.type.shape, element)), every)], ["parallel"] * rank,
                        lambda s, c, _: b.select(b.compare("eq", c, number()), s, b.constant(0, element)))
    joined = b.reshape(spread, [c * n for c, n in zip(windows.counts, windows.dims)])
    return b.pad(joined, [0] * padded.type.rank, [n - m for n, m in zip(padded.type.shape, joined.type.shape)], 0)


def _undo_edges(b, x, shape, padding):
    """From the padded tensor to the operand's shape."""
    return _edges(b, x, [(-low, -high) for low, high in padding], 0) if any(map(any, padding)) else x


def _collect(b, source, chosen, windows, shape, padding):
    """Place q of the padded tensor is number k of window (q - k) / stride: windows are spread by the stride, and q reads
    them backwards from there."""
    rank, padded = len(shape), windows.shape
    spread = [dilate(b, v, windows.strides, fill) for v, fill in ((source, 0), (chosen, -1))]
    reach = [(n - 1) * d for n, d in zip(windows.dims, windows.dilation)]
    edges = [(r, n - m) for r, n, m in zip(reach, padded, spread[0].type.shape)]
    spread = [_edges(b, v, edges, fill) for v, fill in zip(spread, (0, -1))]
    back = _Windows(spread[0].type.shape, windows.dims, [1] * rank, windows.dilation, padded)
    element, last = source.type.element, math.prod(windows.dims) - 1

    def body(s, c, _, acc):
        k = b.apply("arith.subi", b.constant(last, "i32"), back.number(b, "i32"))
        value = b.select(b.compare("eq", c, k), s, b.constant(0, element))
        return b.apply("arith.addf" if element in ("f64", "f32", "f16", "bf16") else "arith.addi", acc, value)
    result, = b.generic([(spread[0], back.read), (spread[1], back.read), back.extents(b, element)],
                        [(b.constant(0, TensorType(tuple(padded), element)), back.outer)], back.iterators(), body)
    return _undo_edges(b, result, shape, padding)
