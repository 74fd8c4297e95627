# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting by counting: an element's place is the number of those before it.

The work is the square of the length, and all of it nests: nothing depends on the data but comparisons.
"""

from __future__ import annotations

from .types import AffineMap, TensorType, is_float, width


def ordered(b, x, unsigned: bool = False):
    """Signed integers in the order of sorting: -0 equals 0, NaN comes last. Unsigned numbers and booleans likewise."""
    def body(x):
        element = x.type
        if is_float(element):
            if element in ("f16", "bf16"):
                x, element = b.cast("arith.extf", x, "f32"), "f32"
            bits, zero = f"i{width(element)}", b.constant(0, element)
            x = b.select(b.compare("oeq", x, zero), zero, x)
            raw = b.cast("arith.bitcast", x, bits)
            low = b.constant((1 << (width(element) - 1)) - 1, bits)
            key = b.select(b.compare("slt", raw, b.constant(0, bits)), b.apply("arith.xori", raw, low), raw)
            return b.select(b.compare("uno", x, x), low, key)
        if element == "i1":
            return b.cast("arith.extui", x, "i32")
        if unsigned:
            return b.apply("arith.xori", x, b.constant(-(1 << (width(element) - 1)), element))
        return x
    return b.pointwise([x], x.type.shape, body)


def places(b, keys, dim, descending):
    """How many elements come before each along `dim`: less by the keys, equal ones by their index. An i32 tensor."""
    shape, rank = keys[0].type.shape, keys[0].type.rank
    own = AffineMap(rank + 1, tuple(range(rank)))
    other = AffineMap(rank + 1, tuple(rank if d == dim else d for d in range(rank)))
    before = "sgt" if descending else "slt"

    def body(*args):
        mine, others, acc = args[:len(keys)], args[len(keys):-1], args[-1]
        result = b.compare("slt", b.index(rank), b.index(dim))  # of equal keys the earlier comes first
        for x, y in reversed(list(zip(mine, others))):
            less = b.compare(before, y, x)
            result = b.apply("arith.ori", less, b.apply("arith.andi", b.compare("eq", y, x), result))
        return b.apply("arith.addi", acc, b.cast("arith.extui", result, "i32"))
    result, = b.generic([*[(k, own) for k in keys], *[(k, other) for k in keys]],
                        [(b.constant(0, TensorType(shape, "i32")), own)], ["parallel"] * rank + ["reduction"], body)
    return result


def placed(b, value, rank_of, dim, count):
    """The elements in their places 0 .. count - 1: out[r] is the one whose place is r. Without a value their indices (i32)."""
    rank, element = rank_of.type.rank, value.type.element if value is not None else "i32"
    shape = tuple(count if d == dim else n for d, n in enumerate(rank_of.type.shape))
    out = AffineMap(rank + 1, tuple(range(rank)))
    read = AffineMap(rank + 1, tuple(rank if d == dim else d for d in range(rank)))

    def body(*args):
        place, acc = args[-2:]
        x = args[0] if value is not None else b.cast("arith.index_cast", b.index(rank), element)
        here = b.cast("arith.index_cast", b.index(dim), "i32")
        return add(b, element, acc, b.select(b.compare("eq", place, here), x, b.constant(0, element)))
    inputs = [(value, read)] if value is not None else []
    result, = b.generic([*inputs, (rank_of, read)], [(b.constant(0, TensorType(shape, element)), out)],
                        ["parallel"] * rank + ["reduction"], body)
    return result


def add(b, element, x, y):
    """x + y, of booleans x or y: sums of which at most one term is not zero."""
    if element == "i1":
        return b.apply("arith.ori", x, y)
    return b.apply("arith.addf" if is_float(element) else "arith.addi", x, y)
