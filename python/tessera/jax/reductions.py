# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions and prefix reductions."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core as jex_core

from ..ir.reductions import accumulate, first_of
from ..ir.scalars import combine, is_finite, wide, widened
from . import elements
from .definitions import definition
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
    result = b.reduce(x, eqn.params["axes"], combine(b, name, to), identity, to, None if to == element else lambda x: widened(b, x, to))
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


def _on_arrays(eqn, rank):
    """The function of a reduction, of scalars, on two lists of arrays of a rank."""
    program = eqn.params["jaxpr"] if "jaxpr" in eqn.params else eqn.params["computation"]
    consts = eqn.params.get("consts", ())
    function = jex_core.jaxpr_as_fun(program if isinstance(program, jex_core.ClosedJaxpr) else jex_core.ClosedJaxpr(program, consts))
    for _ in range(rank):
        function = jax.vmap(function)
    return lambda first, second: function(*first, *second)


@definition("reduce")
def _(eqn, *values):
    """By any associative function: neighbors are combined until one is left, then it and the initial value."""
    half = len(values) // 2
    arrays, inits, dims = list(values[:half]), values[half:], eqn.params["dimensions"]
    rest = [d for d in range(arrays[0].ndim) if d not in dims]
    arrays = [jnp.permute_dims(x, [*dims, *rest]).reshape((-1, *(x.shape[d] for d in rest))) for x in arrays]
    combine = _on_arrays(eqn, len(rest) + 1)
    arrays = [jnp.concatenate([jnp.broadcast_to(init, (1, *x.shape[1:])), x]) for x, init in zip(arrays, inits)]
    while arrays[0].shape[0] > 1:
        n = arrays[0].shape[0]
        pairs = combine([x[:n - n % 2:2] for x in arrays], [x[1::2] for x in arrays])
        arrays = [jnp.concatenate([pair, x[n - 1:]]) if n % 2 else pair for pair, x in zip(pairs, arrays)]
    return [x[0] for x in arrays]


@definition("reduce_window")
def _(eqn, *values):
    """A dimension after the other: windows of one, two, four ... elements are combined to those of each length."""
    half, p = len(values) // 2, eqn.params
    arrays, inits = values[:half], values[half:]
    config = [(low, high, step - 1) for (low, high), step in zip(p["padding"], p["base_dilation"])]
    arrays = [lax.pad(x, init, config) for x, init in zip(arrays, inits)]
    combine, cut = _on_arrays(eqn, arrays[0].ndim), lax.slice_in_dim
    for d, (size, dilation, stride) in enumerate(zip(p["window_dimensions"], p["window_dilation"], p["window_strides"])):
        n, done, covered, power = arrays[0].shape[d], None, 0, 1
        doubled = arrays
        while True:
            if size & power:
                if done is None:
                    done = doubled
                else:
                    length, at = n - (covered + power - 1) * dilation, covered * dilation
                    done = combine([cut(x, 0, length, axis=d) for x in done], [cut(x, at, at + length, axis=d) for x in doubled])
                covered += power
            if covered == size:
                break
            length = n - (2 * power - 1) * dilation
            if length > 0:
                at = power * dilation
                doubled = combine([cut(x, 0, length, axis=d) for x in doubled], [cut(x, at, at + length, axis=d) for x in doubled])
            power *= 2
        arrays = [cut(x, 0, max(0, n - (size - 1) * dilation), stride, axis=d) for x in done]
    return list(arrays)


@rule("psum", "pmax", "pmin")
def _(ctx, eqn, *values):
    """Over positional axes, outside of jax.shard_map."""
    axes = eqn.params["axes"]
    if not all(isinstance(axis, int) for axis in axes):
        raise ctx.error(eqn, f"'{eqn.primitive}' over {axes} is not supported outside of jax.shard_map and jax.vmap")
    function = {"psum": lax.reduce_sum, "pmax": lax.reduce_max, "pmin": lax.reduce_min}[eqn.primitive.name]
    results = []
    for v, x in zip(eqn.invars, values):
        aval = jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype)
        results += ctx.inline(jax.make_jaxpr(lambda x: function(x, axes))(aval), [x])
    return results
