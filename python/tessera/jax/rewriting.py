# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traces a jaxpr again with other functions in place of some primitives, at any depth."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import jax
from jax.extend import core as jex_core

try:  # not public, see importer.py
    from jax._src.source_info_util import user_context
except ImportError:
    user_context = None

from .importer import subprograms

# Calls, which are evaluated in place. Derivatives have been taken before a program is imported.
CALLS = ("jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr",
         "custom_lin")

Rules = Mapping[str, Callable]


def mentions(jaxpr, names) -> bool:
    """Whether a jaxpr or one inside of it has a primitive of these names."""
    return any(eqn.primitive.name in names or any(mentions(inner, names) for inner in subprograms(eqn)) for eqn in jaxpr.eqns)


def rewritten(closed, rules: Rules):
    """A closed jaxpr with each equation of a primitive in `rules` traced as rules[name](eqn, *values), which returns a list."""
    avals = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in closed.in_avals]
    return jax.make_jaxpr(lambda *values: evaluated(closed.jaxpr, closed.consts, values, rules))(*avals)


def evaluated(jaxpr, consts, arguments, rules: Rules) -> list:
    """The results of a jaxpr on values, by `rules`."""
    environment = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *arguments)))
    for eqn in jaxpr.eqns:
        values = [v.val if isinstance(v, jex_core.Literal) else environment[v] for v in eqn.invars]
        if user_context is None:
            results = _results(eqn, values, rules)
        else:
            with user_context(eqn.source_info.traceback, name_stack=eqn.source_info.name_stack):
                results = _results(eqn, values, rules)
        environment.update(zip(eqn.outvars, results, strict=True))
    return [v.val if isinstance(v, jex_core.Literal) else environment[v] for v in jaxpr.outvars]


def program_of(eqn):
    """The jaxpr and the constants of a call."""
    called = next(eqn.params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if key in eqn.params)
    return (called.jaxpr, called.consts) if isinstance(called, jex_core.ClosedJaxpr) else (called, ())


def _results(eqn, values, rules):
    name = eqn.primitive.name
    if name in rules:
        return rules[name](eqn, *values)
    if name in CALLS:
        return evaluated(*program_of(eqn), values, rules)
    parameters = {key: None if key in ("sharding", "out_sharding") and _is_manual(value) else _inner(value, rules) for key, value in eqn.params.items()}
    bound = eqn.primitive.get_bind_params(parameters)
    functions, parameters = bound if isinstance(bound, tuple) else ((), bound)  # a tuple before JAX 0.10
    found = eqn.primitive.bind(*functions, *values, **parameters)
    return found if eqn.primitive.multiple_results else [found]


def _inner(value, rules):
    """A parameter, with the programs in it rewritten."""
    if isinstance(value, jex_core.ClosedJaxpr):
        return rewritten(value, rules)
    if isinstance(value, tuple) and any(isinstance(item, jex_core.ClosedJaxpr) for item in value):
        items = [_inner(item, rules) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def _is_manual(sharding) -> bool:
    """Whether it is the sharding of a value of one device, inside of jax.shard_map."""
    return bool(getattr(getattr(sharding, "mesh", None), "manual_axes", ()))
