# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""sort and top_k as ext.sort."""

from __future__ import annotations

from ..ir.sorting import sort
from . import elements
from .elements import convert
from .registry import rule


def _unsigned(eqn):
    return [elements.is_unsigned(v.aval.dtype) for v in eqn.invars]


@rule("sort")
def _(ctx, eqn, *values):
    return sort(ctx.b, values, eqn.params["dimension"], _unsigned(eqn), eqn.params["num_keys"])


@rule("top_k")
def _(ctx, eqn, x):
    b, dim = ctx.b, eqn.params.get("axis", x.type.rank - 1) % x.type.rank
    values, numbers = sort(b, [x, b.iota(x.type.shape, dim)], dim, _unsigned(eqn), descending=True, limit=eqn.params["k"])
    target = eqn.outvars[1].aval.dtype
    return [values, b.pointwise([numbers], numbers.type.shape, lambda n: convert(b, n, "int32", target))]


@rule("approx_top_k")
def _(ctx, eqn, x):
    """Exact, with recall 1."""
    b, k, dim = ctx.b, eqn.params["k"], eqn.params["reduction_dimension"] % x.type.rank
    values, numbers = sort(b, [x, b.iota(x.type.shape, dim)], dim, _unsigned(eqn), descending=eqn.params["is_max_k"], limit=k)
    target = eqn.outvars[1].aval.dtype
    return [values, b.pointwise([numbers], numbers.type.shape, lambda n: convert(b, n, "int32", target))]
