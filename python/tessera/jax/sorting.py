# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""sort and top_k, by counting (tessera.ir.sorting)."""

from __future__ import annotations

from ..ir.sorting import ordered, placed, places
from . import elements
from .elements import convert
from .registry import rule


@rule("sort")
def _(ctx, eqn, *values):
    b, dim = ctx.b, eqn.params["dimension"]
    keys = [ordered(b, v, elements.is_unsigned(o.aval.dtype)) for v, o in zip(values[:eqn.params["num_keys"]], eqn.invars)]
    rank_of = places(b, keys, dim, False)
    return [placed(b, v, rank_of, dim, v.type.shape[dim]) for v in values]


@rule("top_k")
def _(ctx, eqn, x):
    b, dim = ctx.b, eqn.params.get("axis", x.type.rank - 1) % x.type.rank
    rank_of = places(b, [ordered(b, x, elements.is_unsigned(eqn.invars[0].aval.dtype))], dim, True)
    count, target = eqn.params["k"], eqn.outvars[1].aval.dtype
    numbers = placed(b, None, rank_of, dim, count)
    numbers = b.pointwise([numbers], numbers.type.shape, lambda n: convert(b, n, "int32", target))
    return [placed(b, x, rank_of, dim, count), numbers]
