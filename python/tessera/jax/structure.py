# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of nested programs, and sharding annotations."""

from __future__ import annotations

from .elementwise import floor_divide
from .registry import rule


@rule("jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint", "custom_jvp_call", "custom_vjp_call",
      "custom_vjp_call_jaxpr", "custom_lin")
def _(ctx, eqn, *values):
    if eqn.params.get("differentiated"):
        ctx.dropped_checkpoints.append(ctx.location)
    if eqn.params.get("name") == "floor_divide" and (quotient := floor_divide(ctx, eqn, values)) is not None:
        return quotient
    inner = next(eqn.params[name] for name in ("jaxpr", "call_jaxpr", "fun_jaxpr") if name in eqn.params)
    return ctx.inline(inner, values)


def _is_automatic(mesh):
    """Whether JAX leaves all axes of a mesh to the compiler."""
    kinds = getattr(mesh, "axis_types", ())
    return bool(kinds) and all(getattr(kind, "name", "") == "Auto" for kind in kinds)


@rule("sharding_constraint", "reshard")
def _(ctx, eqn, x):
    # `x.at[i].set(y)` reshards y, too, to the axes that are explicit in its type.
    if eqn.primitive.name == "reshard" and _is_automatic(getattr(eqn.params["dst_sharding"], "mesh", None)):
        return x
    sharding = eqn.params.get("sharding", eqn.params.get("dst_sharding"))
    constraint = ctx.shardings.convert(sharding, x.type.rank, f"a constraint on {x.type}", ctx.location)
    return ctx.b.shard(x, constraint) if constraint is not None else x
