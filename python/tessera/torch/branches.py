# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.cond: a branch of which only the chosen side is computed."""

from __future__ import annotations

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
