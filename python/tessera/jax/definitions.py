# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Primitives that are defined by JAX programs of simpler ones, which are traced and imported."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from .registry import rule

DEFINITIONS: dict[str, Callable] = {}


def definition(*primitives: str):
    """Decorator: registers `f(eqn, *arrays)`, which returns an array or a list of one per result, as a primitive's program.

    The derivatives of a program have been taken before it is imported, so a definition needs none.
    """
    def register(function):
        for name in primitives:
            DEFINITIONS[name] = function
            rule(name)(lambda ctx, eqn, *values: ctx.inline(traced(eqn), values))
        return function
    return register


def traced(eqn):
    """The closed jaxpr of an equation's definition."""
    function = DEFINITIONS[eqn.primitive.name]

    def program(*arrays):
        results = function(eqn, *arrays)
        return list(results) if eqn.primitive.multiple_results else [results]
    return jax.make_jaxpr(program)(*[jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in eqn.invars])


def over_batches(function, *ranks: int):
    """A function of arrays of these ranks, mapped over leading dimensions that they share."""
    def mapped(*arrays):
        result = function
        for _ in range(arrays[0].ndim - ranks[0]):
            result = jax.vmap(result)
        return result(*arrays)
    return mapped


def in_single(function):
    """A function of floats, computed in f32 for 16-bit ones; operands are broadcast against each other."""
    def computed(*arrays):
        dtype = arrays[0].dtype
        wide = dtype if dtype in (jnp.float32, jnp.float64) else jnp.float32
        return function(*[x.astype(wide) for x in jnp.broadcast_arrays(*arrays)]).astype(dtype)
    return computed
