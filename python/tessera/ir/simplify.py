# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Simplifications of complete functions, which need the uses of values."""

from __future__ import annotations

from .core import Block, Function, Operation, Value
from .types import AffineMap


def simplify(function: Function) -> None:
    """Removes dead operations and folds transposes into contractions."""
    drop_dead(function.body)
    fold_transposes(function.body)
    drop_dead(function.body)


def drop_dead(block: Block) -> None:
    """Removes operations whose results are unused. All operations are free of side effects."""
    used: set[Value] = set()

    def visit(block: Block):
        kept = []
        for operation in reversed(block.operations):
            if operation.results and not any(r in used for r in operation.results):
                continue
            used.update(operation.operands)
            for region in operation.regions:
                visit(region)
            kept.append(operation)
        block.operations = kept[::-1]

    visit(block)


def fold_transposes(body: Block) -> None:
    """Folds a transpose that is the only use of a contraction into the contraction's result map."""
    uses: dict[Value, int] = {}
    for block in _blocks(body):
        for operation in block.operations:
            for value in operation.operands:
                uses[value] = uses.get(value, 0) + 1
    for block in _blocks(body):
        operations: list[Operation] = []
        here = {id(operation) for operation in block.operations}
        for operation in block.operations:
            product = operation.operands[0].owner if operation.name == "linalg.transpose" else None
            if product is None or product.name != "linalg.contract" or uses[product.result] != 1 or id(product) not in here:
                operations.append(operation)
                continue
            permutation, maps = operation.attributes["permutation"], product.attributes["maps"]
            written = AffineMap(maps[2].loops, tuple(maps[2].results[d] for d in permutation))
            zero = Operation("arith.constant", [], [operation.result.type], dict(product.operands[2].owner.attributes),
                             location=product.location)
            # The transpose becomes the contraction in place, so that its uses remain valid.
            operation.name, operation.location = product.name, product.location
            operation.operands = [*product.operands[:2], zero.result]
            operation.attributes = {"maps": (*maps[:2], written)}
            operations += [zero, operation]
        block.operations = operations


def _blocks(block: Block):
    yield block
    for operation in block.operations:
        if operation.name != "linalg.generic":
            for region in operation.regions:
                yield from _blocks(region)
