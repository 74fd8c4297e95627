# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting along a dimension in NumPy's order: NaN last, -0 equal to 0."""

from __future__ import annotations

from .types import is_float, width


def ordered(b, x, unsigned: bool = False):
    """Signed integers that sort in the order of x: -0 equals 0, NaN is last. Also for unsigned integers and booleans.
    """
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


def sort(b, values, dim: int, unsigned=(), keys: int = 1, descending: bool = False, limit: int | None = None) -> list:
    """The values sorted by the first `keys` of them, stably; limit: only the first `limit` elements.

    unsigned: which values are unsigned integers. Their highest bit is flipped for the sort: `ext.sort` compares signed
    integers.
    """
    def flipped(value):
        bits = value.type.element
        return b.pointwise([value], value.type.shape, lambda x: b.apply("arith.xori", x, b.constant(-(1 << (width(bits) - 1)), bits)))
    turned = [i < keys and u and v.type.element != "i1" for i, (v, u) in enumerate(zip(values, [*unsigned, *[False] * len(values)]))]
    results = b.sort([flipped(v) if t else v for v, t in zip(values, turned)], dim, keys, descending, limit)
    return [flipped(v) if t else v for v, t in zip(results, turned)]


def add(b, element, x, y):
    """x + y, or x | y for booleans: sums with at most one non-zero term."""
    if element == "i1":
        return b.apply("arith.ori", x, y)
    return b.apply("arith.addf" if is_float(element) else "arith.addi", x, y)
