# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scan, while and cond as scf loops and branches."""

from __future__ import annotations

from ..ir import Block
from .registry import rule


@rule("scan")
def _(ctx, eqn, *values):
    b, p = ctx.b, eqn.params
    consts, carried = values[:p["num_consts"]], values[p["num_consts"]:p["num_consts"] + p["num_carry"]]
    streams, length = values[len(consts) + len(carried):], p["length"]
    # Stacked results start as zeros and are written slice by slice.
    stacks = [b.constant(0, ctx.type(v.aval, "a result of 'scan'")) for v in eqn.outvars[len(carried):]]
    inits = [*carried, *stacks]
    if length == 0:  # nothing can be sliced
        return inits
    body = Block(["index", *[v.type for v in inits]])
    bounds = [b.constant(n, "index") for n in (0, length, 1)]
    with b.inside(body):
        step, *state = body.arguments
        if p["reverse"]:
            step = b.apply("arith.subi", b.constant(length - 1, "index"), step)
        results = ctx.inline(p["jaxpr"], [*consts, *state[:len(carried)], *[_element(b, s, step) for s in streams]])
        stacked = [_stored(b, stack, part, step) for stack, part in zip(state[len(carried):], results[len(carried):])]
        b.op("scf.yield", [*results[:len(carried)], *stacked], [])
    return b.op("scf.for", [*bounds, *inits], [v.type for v in inits], regions=[body]).results


def _element(b, stream, step):
    shape = stream.type.shape
    return b.reshape(b.slice(stream, [step, *[0] * (len(shape) - 1)], (1, *shape[1:])), shape[1:])


def _stored(b, stack, part, step):
    return b.update(stack, b.reshape(part, (1, *part.type.shape)), [step, *[0] * part.type.rank])


def scalar(b, value):
    """The element of a rank-0 tensor."""
    return b.op("tensor.extract", [value], [value.type.element]).result


@rule("while")
def _(ctx, eqn, *values):
    b, p = ctx.b, eqn.params
    split = p["cond_nconsts"] + p["body_nconsts"]
    cond_consts, body_consts, inits = values[:p["cond_nconsts"]], values[p["cond_nconsts"]:split], values[split:]
    types = [v.type for v in inits]
    before, after = Block(types), Block(types)
    with b.inside(before):
        again, = ctx.inline(p["cond_jaxpr"], [*cond_consts, *before.arguments])
        lanes = again.type.rank  # dimensions of vmap: the loop runs while any lane runs
        some = b.reduce(again, range(lanes), lambda x, y: b.apply("arith.ori", x, y), False) if lanes else again
        b.op("scf.condition", [scalar(b, some), *before.arguments], [])
    with b.inside(after):
        results = ctx.inline(p["body_jaxpr"], [*body_consts, *after.arguments])
        if lanes:
            again, = ctx.inline(p["cond_jaxpr"], [*cond_consts, *after.arguments])
            results = [_where(b, again, new, old) for new, old in zip(results, after.arguments)]
        b.op("scf.yield", results, [])
    return b.op("scf.while", inits, types, regions=[before, after]).results


def _where(b, lanes, new, old):
    """`new` in the lanes (leading dimensions) that still run, else `old`."""
    lanes = b.reshape(lanes, (*lanes.type.shape, *[1] * (new.type.rank - lanes.type.rank)))
    return b.pointwise([lanes, new, old], new.type.shape, lambda go, x, y: b.select(go, x, y))


@rule("platform_index")
def _(ctx, eqn):
    """The branch of platform "cpu", or the default one: programs are the same on all platforms."""
    platforms = eqn.params["platforms"]
    index = next((i for i, names in enumerate(platforms) if names is None or "cpu" in names), len(platforms) - 1)
    return ctx.b.constant(index, ctx.type(eqn.outvars[0].aval, "the platform"))


@rule("cond")
def _(ctx, eqn, which, *values):
    b, branches = ctx.b, eqn.params["branches"]
    types = [ctx.type(v.aval, "a result of 'cond'") for v in eqn.outvars]
    if not types:
        return []

    def choose(index, first):
        """The results of the branches from `first` on."""
        if first == len(branches) - 1:
            return ctx.inline(branches[first], values)
        here, others = Block(), Block()
        if which.type.element == "i1":
            condition = b.compare("eq", index, b.constant(0, "i1"))
        else:  # an index out of range selects the nearest branch
            condition = b.compare("sle", index, b.constant(first, index.type))
        with b.inside(here):
            b.op("scf.yield", ctx.inline(branches[first], values), [])
        with b.inside(others):
            b.op("scf.yield", choose(index, first + 1), [])
        return b.op("scf.if", [condition], types, regions=[here, others]).results

    return choose(scalar(b, which), 0) if len(branches) > 1 else ctx.inline(branches[0], values)
