# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions and prefix reductions."""

from __future__ import annotations

import math

from ..ir.reductions import accumulate, first_of
from ..ir.scalars import combine, is_finite, wide, widened
from . import elements
from .elements import bound, kind_of
from .registry import rule


def narrow(b, value, element):
    """A tensor of type `wide(element)` truncated to `element`."""
    if value.type.element == element:
        return value
    return b.pointwise([value], value.type.shape, lambda x: b.cast("arith.truncf", x, element))


@rule("reduce_sum", "reduce_prod")
def _(ctx, eqn, x):
    b, element = ctx.b, x.type.element
    name, identity = ("add", 0) if eqn.primitive.name == "reduce_sum" else ("mul", 1)
    to = wide(element)
    result = b.reduce(x, eqn.params["axes"], combine(b, name, to), identity, to, lambda x: widened(b, x, to))
    return narrow(b, result, element)


@rule("reduce_max", "reduce_min")
def _(ctx, eqn, x):
    name, dtype = eqn.primitive.name.removeprefix("reduce_"), eqn.invars[0].aval.dtype
    return ctx.b.reduce(x, eqn.params["axes"], combine(ctx.b, name, kind_of(dtype)), bound(dtype, name == "min"))


@rule("reduce_and", "reduce_or", "reduce_xor")
def _(ctx, eqn, x):
    name = eqn.primitive.name.removeprefix("reduce_")
    ones = 1 if x.type.element == "i1" else -1
    return ctx.b.reduce(x, eqn.params["axes"], combine(ctx.b, name, x.type.element), ones if name == "and" else 0)


@rule("argmax", "argmin")
def _(ctx, eqn, x):
    """The extreme value, then the first index that has it: two reductions, so that the dimension can be sharded.

    NaN counts as extreme, as in JAX.
    """
    b, (dim,) = ctx.b, eqn.params["axes"]
    source, target = eqn.invars[0].aval.dtype, eqn.params["index_dtype"]
    name = eqn.primitive.name.removeprefix("arg")
    best = b.reduce(x, [dim], combine(b, name, kind_of(source)), bound(source, name == "min"))
    return first_of(b, x, best, dim, kind_of(source), elements.element_of(target))


@rule("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
def _(ctx, eqn, x):
    """Prefix reductions: out[i] combines x[j] for j <= i."""
    b, dim, reverse = ctx.b, eqn.params["axis"], eqn.params["reverse"]
    name, dtype, element = eqn.primitive.name.removeprefix("cum"), eqn.invars[0].aval.dtype, x.type.element
    if name == "logsumexp":
        if not elements.is_float(dtype):  # JAX traces it but cannot compile it
            raise ctx.error(eqn, f"'cumlogsumexp' of {dtype} is not supported; use astype(float)")
        to = wide(element)
        return narrow(b, accumulate(b, x, dim, lambda x, y: log_add_exp(b, x, y), -math.inf, to, reverse), element)
    if name in ("max", "min"):
        return accumulate(b, x, dim, combine(b, name, kind_of(dtype)), bound(dtype, name == "min"), element, reverse)
    to = wide(element)
    name, identity = ("add", 0) if name == "sum" else ("mul", 1)
    return narrow(b, accumulate(b, x, dim, combine(b, name, to), identity, to, reverse), element)


def log_add_exp(b, x, y):
    """log(exp(x) + exp(y))."""
    greatest = b.apply("arith.maximumf", x, y)
    # An infinite maximum is not subtracted: -inf - -inf would be NaN.
    shift = b.select(is_finite(b, greatest), greatest, b.constant(0, x.type))
    total = b.apply("arith.addf", *[b.apply("math.exp", b.apply("arith.subf", v, shift)) for v in (x, y)])
    return b.apply("arith.addf", b.apply("math.log", total), shift)
