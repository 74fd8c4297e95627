# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Higher-order operations: branches of which only the chosen side is computed, and loops."""

from __future__ import annotations

from .. import control
from ..ir.core import Block
from ..ops.base import op
from .registry import rule


@rule("cond")
@op
def cond(trace, condition, then, otherwise, operands):
    """`then` and `otherwise` are functions of the operands, of rank-0 bool `condition`; results have equal shapes and types."""
    b, blocks, types = trace.builder, [], []
    for branch in then, otherwise:
        blocks.append(Block())
        with trace.region(blocks[-1], "a branch of torch.cond"):
            values = [trace.value(value) for value in branch(*operands)]
            b.op("scf.yield", values, [])
        types = [value.type for value in values]
    chosen = b.op("tensor.extract", [trace.value(condition)], ["i1"]).result
    return [trace.tensor(value) for value in b.op("scf.if", [chosen], types, regions=blocks).results]


@rule("scan")
def _(combine, init, xs, others):
    """`combine` is a function of carries, slices of `xs` along their first axes and `others`; the results are last carries, then stacked ones."""
    def body(carry, slices):
        results = combine(*carry, *slices, *others)
        return list(results[:len(init)]), list(results[len(init):])
    carry, stacked = control.scan(body, list(init), list(xs))
    return [*carry, *stacked]


@rule("map_impl")
def _(function, xs, others):
    return control.scan(lambda carry, slices: (carry, list(function(*slices, *others))), [], list(xs))[1]


@rule("while_loop")
@op
def while_loop(trace, condition, body, carried, others):
    """Has no derivative, because the number of iterations is not known."""
    b, inits = trace.builder, [trace.value(value) for value in carried]
    types = [value.type for value in inits]
    blocks = Block(types), Block(types)
    for block, function in zip(blocks, (condition, body)):
        with trace.region(block, "a loop of torch.while_loop"):
            found = function(*map(trace.tensor, block.arguments), *others)
            if function is condition:
                again = b.op("tensor.extract", [trace.value(found[0])], ["i1"]).result
                b.op("scf.condition", [again, *block.arguments], [])
            else:
                b.op("scf.yield", [trace.value(value) for value in found], [])
    return [trace.tensor(value) for value in b.op("scf.while", inits, types, regions=list(blocks)).results]
