# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Primitives that move elements."""

from __future__ import annotations

from ..ir import AffineMap, TensorType
from ..ir.windows import dilate
from .registry import rule


@rule("reshape", "squeeze", "expand_dims")
def _(ctx, eqn, x):
    if eqn.params.get("dimensions") is not None and eqn.primitive.name == "reshape":
        x = ctx.b.transpose(x, eqn.params["dimensions"])
    return ctx.b.reshape(x, ctx.shape(eqn))


@rule("broadcast_in_dim")
def _(ctx, eqn, x):
    shape, dims = ctx.shape(eqn), [int(d) for d in eqn.params["broadcast_dimensions"]]
    return ctx.b.broadcast(x, shape, [*dims, *range(len(eqn.outvars[0].aval.shape), len(shape))])


@rule("transpose")
def _(ctx, eqn, x):
    permutation = eqn.params["permutation"]
    return ctx.b.transpose(x, [*permutation, *range(len(permutation), x.type.rank)])


@rule("concatenate")
def _(ctx, eqn, *values):
    return ctx.b.concat(values, eqn.params["dimension"])


@rule("stack")
def _(ctx, eqn, *values):
    b, axis, shape = ctx.b, eqn.params["axis"], values[0].type.shape
    return b.concat([b.reshape(v, (*shape[:axis], 1, *shape[axis:])) for v in values], axis)


@rule("unstack")
def _(ctx, eqn, x):
    b, axis, shape = ctx.b, eqn.params["axis"], x.type.shape
    sizes = (*shape[:axis], 1, *shape[axis + 1:])
    parts = [b.slice(x, [i if d == axis else 0 for d in range(len(shape))], sizes) for i in range(shape[axis])]
    return [b.reshape(part, (*shape[:axis], *shape[axis + 1:])) for part in parts]


@rule("tile")
def _(ctx, eqn, x):
    """Repeats each dimension: broadcasts a new dimension before it and joins the two."""
    b, shape = ctx.b, x.type.shape
    reps = eqn.params["reps"]
    wide = [n for pair in zip(reps, shape) for n in pair]
    return b.reshape(b.broadcast(x, wide, range(1, 2 * len(shape), 2)), [r * n for r, n in zip(reps, shape)])


@rule("empty", "empty2")
def _(ctx, eqn):
    return ctx.b.constant(0, ctx.type(eqn.outvars[0].aval, f"result of '{eqn.primitive}'"))


@rule("split")
def _(ctx, eqn, x):
    results, at, axis = [], 0, eqn.params["axis"]
    for i in range(len(eqn.outvars)):
        offsets, shape = [0] * x.type.rank, ctx.shape(eqn, i)
        offsets[axis] = at
        at += shape[axis]
        results.append(ctx.b.slice(x, offsets, shape))
    return results


@rule("slice")
def _(ctx, eqn, x):
    starts, strides = eqn.params["start_indices"], eqn.params["strides"]
    words = x.type.rank - len(starts)
    return ctx.b.slice(x, [*starts, *[0] * words], ctx.shape(eqn), [*strides, *[1] * words] if strides else None)


@rule("rev")
def _(ctx, eqn, x):
    shape, dims = x.type.shape, eqn.params["dimensions"]
    places = tuple(f"-d{d} + {n - 1}" if d in dims and n > 1 else d for d, n in enumerate(shape))
    return copy(ctx.b, x, AffineMap(len(shape), places))


def copy(b, x, places: AffineMap):
    """A tensor of the shape of x with the elements of x at the index map `places`."""
    value, = b.generic([(x, places)], [(b.empty(x.type), AffineMap.identity(x.type.rank))], ["parallel"] * x.type.rank,
                       lambda element, _: element)
    return value


@rule("iota")
def _(ctx, eqn):
    aval, dim = eqn.outvars[0].aval, eqn.params["dimension"]
    return ctx.iota(aval.shape, dim, aval.dtype)


@rule("pad")
def _(ctx, eqn, x, fill):
    return pad(ctx, eqn, x, fill, eqn.params["padding_config"])


def pad(ctx, eqn, x, fill, config):
    """Pads by (low, high, interior) per dimension; interior elements by dilation, negative edges by slicing."""
    b = ctx.b
    number = fill.owner.attributes.get("splat") if fill.owner is not None else None
    if number is None:  # a computed value: select it where a mask shows padding
        zero, one = b.constant(0, TensorType((), x.type.element)), b.constant(1, TensorType(x.type.shape, "i1"))
        inside = pad(ctx, eqn, one, b.constant(0, TensorType((), "i1")), config)
        padded = pad(ctx, eqn, x, zero, config)
        return b.pointwise([inside, padded, fill], padded.type.shape, lambda here, x, f: b.select(here, x, f))
    if any(interior for _, _, interior in config):
        x = dilate(b, x, [interior + 1 for _, _, interior in config], number)
    offsets = [max(0, -low) for low, _, _ in config]
    sizes = [n + min(0, low) + min(0, high) for n, (low, high, _) in zip(x.type.shape, config)]
    if any(n < 0 for n in sizes):
        raise ctx.error(eqn, f"'pad' removes more elements than exist: {config}")
    x = b.slice(x, offsets, sizes)
    return b.pad(x, [max(0, low) for low, _, _ in config], [max(0, high) for _, high, _ in config], number)
