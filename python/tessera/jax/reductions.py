# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Primitives that reduce or accumulate along dimensions."""

from __future__ import annotations

import math

from ..ir import AffineMap, TensorType, constants
from . import elements
from .elementwise import compare, extremum
from .registry import rule


def wide(element: str) -> str:
    """What sums of an element type are kept in."""
    return "f32" if element in ("f16", "bf16") else element


def narrow(b, value, element):
    """A tensor of `wide(element)` as one of `element`."""
    if value.type.element == element:
        return value
    return b.pointwise([value], value.type.shape, lambda x: b.cast("arith.truncf", x, element))


@rule("reduce_sum", "reduce_prod")
def _(ctx, eqn, x):
    b, element = ctx.b, x.type.element
    sums = eqn.primitive.name == "reduce_sum"
    name = ("arith.add" if sums else "arith.mul") + ("f" if elements.is_float(eqn.invars[0].aval.dtype) else "i")
    to = wide(element)
    prepare = (lambda x: b.cast("arith.extf", x, to)) if to != element else None
    result = b.reduce(x, eqn.params["axes"], lambda acc, x: b.apply(name, acc, x), 0 if sums else 1, to, prepare)
    return narrow(b, result, element)


@rule("reduce_max", "reduce_min")
def _(ctx, eqn, x):
    largest, dtype = eqn.primitive.name == "reduce_max", eqn.invars[0].aval.dtype
    return ctx.b.reduce(x, eqn.params["axes"], extremum(ctx.b, largest, dtype), bound(dtype, not largest))


def bound(dtype, largest):
    """The greatest or least number of a type, for unsigned ones as signed numbers of the same bits."""
    if elements.is_unsigned(dtype):
        return -1 if largest else 0
    element = elements.element_of(dtype)
    return constants.greatest(element) if largest else constants.least(element)


@rule("reduce_and", "reduce_or", "reduce_xor")
def _(ctx, eqn, x):
    name = eqn.primitive.name.removeprefix("reduce_")
    ones = 1 if x.type.element == "i1" else -1
    op = {"and": "arith.andi", "or": "arith.ori", "xor": "arith.xori"}[name]
    return ctx.b.reduce(x, eqn.params["axes"], lambda acc, x: ctx.b.apply(op, acc, x), ones if name == "and" else 0)


@rule("argmax", "argmin")
def _(ctx, eqn, x):
    """First the extreme value, then the least index that has it: both can be cut along the dimension. NaN is extreme,
    as in JAX."""
    b, (dim,) = ctx.b, eqn.params["axes"]
    source, target = eqn.invars[0].aval.dtype, eqn.params["index_dtype"]
    largest, element = eqn.primitive.name == "argmax", elements.element_of(target)
    best = b.reduce(x, [dim], extremum(b, largest, source), bound(source, not largest))
    rank = x.type.rank
    kept = tuple(d for d in range(rank) if d != dim)
    type = TensorType(tuple(x.type.shape[d] for d in kept), element)
    last = x.type.shape[dim] - 1

    def body(x, best, acc):
        same = compare(b, "eq", source, x, best)
        if elements.is_float(source):
            same = b.apply("arith.ori", same, b.compare("une", x, x))
        here = b.cast("arith.index_cast", b.index(dim), element)
        return b.apply("arith.minsi", acc, b.select(same, here, b.constant(last, element)))
    result, = b.generic([(x, AffineMap.identity(rank)), (best, AffineMap(rank, kept))],
                        [(b.constant(last, type), AffineMap(rank, kept))],
                        ["reduction" if d == dim else "parallel" for d in range(rank)], body)
    return result


@rule("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
def _(ctx, eqn, x):
    """out[i] combines x[j] for j <= i: a reduction over j with what lies beyond i left out."""
    b, dim, reverse = ctx.b, eqn.params["axis"], eqn.params["reverse"]
    name, dtype = eqn.primitive.name, eqn.invars[0].aval.dtype
    floats, element = elements.is_float(dtype), x.type.element
    if name == "cumlogsumexp":
        return cumulative_logsumexp(ctx, x, dim, reverse)
    to, identity = element, {"cumsum": 0, "cumprod": 1}.get(name)
    if name in ("cumsum", "cumprod"):
        to = wide(element)
        op = ("arith.add" if name == "cumsum" else "arith.mul") + ("f" if floats else "i")
        combine = lambda acc, x: b.apply(op, acc, x)
    else:
        combine = extremum(b, name == "cummax", dtype)
        identity = bound(dtype, name == "cummin")
    return narrow(b, accumulate(b, x, dim, reverse, combine, identity, to), element)


def accumulate(b, x, dim, reverse, combine, identity, element, others=(), prepare=None):
    """A nest with one loop more than `x` has dimensions: loop `dim` is the result's, the last one runs along `x`."""
    rank = x.type.rank
    read = AffineMap(rank + 1, tuple(rank if d == dim else d for d in range(rank)))
    write = AffineMap(rank + 1, tuple(range(rank)))

    def body(x, *rest):
        *others, acc = rest
        seen = b.compare("sge" if reverse else "sle", b.index(rank), b.index(dim))
        x = x if x.type == element else b.cast("arith.extf", x, element)
        x = prepare(x, *others) if prepare else x
        return combine(acc, b.select(seen, x, b.constant(identity, element)))
    result, = b.generic([(x, read), *[(o, write) for o in others]],
                        [(b.constant(identity, TensorType(x.type.shape, element)), write)],
                        ["parallel"] * rank + ["reduction"], body)
    return result


def cumulative_logsumexp(ctx, x, dim, reverse):
    b, element = ctx.b, x.type.element
    greatest = accumulate(b, x, dim, reverse, lambda acc, x: b.apply("arith.maximumf", acc, x), -math.inf, element)
    # Of an infinite maximum nothing is subtracted: -inf - -inf would be NaN.
    shift = b.pointwise([greatest], x.type.shape, lambda m: b.select(
        b.compare("olt", b.apply("math.absf", m), b.constant(math.inf, m.type)), m, b.constant(0, m.type)))
    sums = accumulate(b, x, dim, reverse, lambda acc, x: b.apply("arith.addf", acc, x), 0, element, [shift],
                      lambda x, m: b.apply("math.exp", b.apply("arith.subf", x, m)))
    return b.pointwise([sums, shift], x.type.shape, lambda s, m: b.apply("arith.addf", b.apply("math.log", s), m))
