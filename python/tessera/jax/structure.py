# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of nested programs, and sharding annotations."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax.extend import core as jex_core

from .elementwise import floor_divide
from .registry import rule


@rule("jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint", "custom_jvp_call", "custom_vjp_call",
      "custom_vjp_call_jaxpr", "custom_lin")
def _(ctx, eqn, *values):
    inner = next(eqn.params[name] for name in ("jaxpr", "call_jaxpr", "fun_jaxpr") if name in eqn.params)
    if eqn.params.get("name") == "floor_divide" and _same(inner, _jax_floor_divide(*[v.aval for v in eqn.invars])) \
            and (quotient := floor_divide(ctx, eqn, values)) is not None:
        return quotient
    return ctx.inline(inner, values)


@functools.lru_cache(maxsize=256)
def _jax_floor_divide(*avals):
    """The program of jnp.floor_divide for such operands; None if it takes no such operands."""
    if len(avals) != 2:
        return None
    call, = jax.make_jaxpr(jnp.floor_divide)(*avals).eqns or [None]
    return call.params.get("jaxpr") if call is not None else None


def _same(one, other) -> bool:
    """Whether two programs are the same up to the names of their variables. A call's name says nothing: users take it, too."""
    one, other = getattr(one, "jaxpr", one), getattr(other, "jaxpr", other)
    if other is None or (len(one.invars), len(one.eqns), len(one.constvars)) != (len(other.invars), len(other.eqns), len(other.constvars)):
        return False
    known = dict(zip(one.invars, other.invars))

    def equal(a, b):
        if isinstance(a, jex_core.Literal) or isinstance(b, jex_core.Literal):
            return isinstance(a, jex_core.Literal) and isinstance(b, jex_core.Literal) and a.aval == b.aval and a.val == b.val
        return known.get(a) is b
    for a, b in zip(one.eqns, other.eqns):
        if a.primitive is not b.primitive or len(a.invars) != len(b.invars) or a.params.keys() != b.params.keys() \
                or not all(equal(v, w) for v, w in zip(a.invars, b.invars)):
            return False
        for name, value in a.params.items():
            nested = hasattr(value, "jaxpr") or hasattr(value, "eqns")
            if not (_same(value, b.params[name]) if nested else value == b.params[name]):
                return False
        known.update(zip(a.outvars, b.outvars))
    return all(equal(v, w) for v, w in zip(one.outvars, other.outvars))


def _is_automatic(mesh):
    """Whether JAX leaves all axes of a mesh, of which there may be none, to the compiler."""
    kinds = getattr(mesh, "axis_types", None)
    return kinds is not None and all(getattr(kind, "name", "") == "Auto" for kind in kinds)


@rule("sharding_constraint", "reshard")
def _(ctx, eqn, x):
    # `x.at[i].set(y)` reshards y, too, to the axes that are explicit in its type.
    if eqn.primitive.name == "reshard" and _is_automatic(getattr(eqn.params["dst_sharding"], "mesh", None)):
        return x
    sharding = eqn.params.get("sharding", eqn.params.get("dst_sharding"))
    constraint = ctx.shardings.convert(sharding, x.type.rank, f"a constraint on {x.type}", ctx.location)
    return ctx.b.shard(x, constraint) if constraint is not None else x
