# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is computed of single elements: the rules of arithmetic that operations and importers share, in the body of a nest.

`element` is the type of the elements with its sign (ui32). The values may have it or the signless type of the same width (i32, in
programs of JAX): the rule follows `element`, constants and results have the type of the values.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .constants import as_signed, least
from .core import Value
from .types import is_float, is_unsigned, width


def _of(floats, signed=None, unsigned=None, bools=None):
    unsigned = unsigned or signed
    return floats, signed, unsigned, bools or unsigned


# The operation of a name on floats, signed integers, unsigned integers and booleans; None where there is none.
_OPERATIONS = {
    "add": _of("arith.addf", "arith.addi"), "sub": _of("arith.subf", "arith.subi"), "mul": _of("arith.mulf", "arith.muli"),
    "and": _of(None, "arith.andi"), "or": _of(None, "arith.ori"), "xor": _of(None, "arith.xori"),
    "max": _of("arith.maximumf", "arith.maxsi", "arith.maxui", "arith.ori"),  # NaN wins
    "min": _of("arith.minimumf", "arith.minsi", "arith.minui", "arith.andi"),
    "clz": _of(None, "math.ctlz"), "population_count": _of(None, "math.ctpop"),
    **{name: _of(f"math.{name}") for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1",
        "floor", "log", "log10", "log1p", "log2", "round", "roundeven", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "trunc")},
}

# Floats, signed integers, what has no sign. NaN differs from everything.
_PREDICATES = {"eq": ("oeq", "eq", "eq"), "ne": ("une", "ne", "ne"), "lt": ("olt", "slt", "ult"), "le": ("ole", "sle", "ule"),
               "gt": ("ogt", "sgt", "ugt"), "ge": ("oge", "sge", "uge")}
COMPARISONS = tuple(_PREDICATES)


def signless_order(element: str) -> bool:
    """Whether elements are compared and widened as numbers without a sign: unsigned integers and booleans."""
    return element == "i1" or is_unsigned(element)


def operation(name: str, element: str) -> str | None:
    """The operation of MLIR; None where elements of the type have none."""
    floats, signed, unsigned, bools = _OPERATIONS[name]
    return floats if is_float(element) else bools if element == "i1" else unsigned if is_unsigned(element) else signed


def apply(b, name: str, element: str, *values: Value) -> Value:
    """An operation of one name by the type of the elements."""
    return b.apply(operation(name, element), *values)


def combine(b, name: str, element: str) -> Callable[[Value, Value], Value]:
    """An operation of two scalars, as reductions take it."""
    return lambda x, y: apply(b, name, element, x, y)


def compare(b, name: str, element: str, x: Value, y: Value) -> Value:
    """One of COMPARISONS, an i1."""
    floats, signed, plain = _PREDICATES[name]
    return b.compare(floats if is_float(element) else plain if signless_order(element) else signed, x, y)


def number(b, value, element: str, like: str) -> Value:
    """A number of `element` as a scalar of the type `like`, which may lack the sign."""
    return b.constant(as_signed(value, element) if is_unsigned(element) and not is_unsigned(like) else value, like)


def negative(b, element: str, x: Value) -> Value:
    return b.apply("arith.negf", x) if is_float(element) else b.apply("arith.subi", b.constant(0, x.type), x)


def absolute(b, element: str, x: Value) -> Value:
    return x if is_unsigned(element) else b.apply("math.absf" if is_float(element) else "math.absi", x)


def complement(b, x: Value) -> Value:
    """All bits of an integer inverted, `not` of a boolean."""
    return b.apply("arith.xori", x, b.constant(1 if x.type == "i1" else -1, x.type))


def sign(b, element: str, x: Value) -> Value:
    """-1, 0 or 1; NaN and both zeros are their own sign."""
    zero, one = b.constant(0, x.type), b.constant(1, x.type)
    if is_float(element):
        return b.select(b.compare("one", x, zero), b.apply("math.copysign", one, x), x)
    if is_unsigned(element):
        return b.select(b.compare("ne", x, zero), one, zero)
    return b.select(b.compare("sgt", x, zero), one, b.select(b.compare("slt", x, zero), b.constant(-1, x.type), zero))


def logistic(b, x: Value) -> Value:
    """1 / (1 + exp(-x)) of a float."""
    one = b.constant(1, x.type)
    return b.apply("arith.divf", one, b.apply("arith.addf", one, b.apply("math.exp", b.apply("arith.negf", x))))


def is_nan(b, x: Value) -> Value:
    return b.compare("une", x, x)


def is_finite(b, x: Value) -> Value:
    return b.compare("olt", b.apply("math.absf", x), b.constant(math.inf, x.type))


def is_infinite(b, x: Value) -> Value:
    return b.compare("oeq", b.apply("math.absf", x), b.constant(math.inf, x.type))


def clamp(b, element: str, x: Value, low: Value | None, high: Value | None) -> Value:
    """Between two bounds; None is none. Where they cross the upper one wins."""
    x = x if low is None else apply(b, "max", element, x, low)
    return x if high is None else apply(b, "min", element, x, high)


def splat_of(x: Value):
    """The number that a constant has everywhere; None of other values."""
    return x.owner.attributes.get("splat") if x.owner is not None and x.owner.name == "arith.constant" else None


def divide(b, name: str, element: str, x: Value, y: Value, by_zero: Value, overflow: Value) -> Value:
    """Integer division (`name` is div, floordiv or rem) without its traps: by 0, and of the least number by -1."""
    if splat_of(y) not in (None, 0, -1):
        return b.apply(f"arith.{'rem' if name == 'rem' else 'div'}ui" if is_unsigned(element) else f"arith.{name}si", x, y)
    one = b.constant(1, x.type)
    zero = b.compare("eq", y, b.constant(0, y.type))
    safe = b.select(zero, one, y)
    if is_unsigned(element):
        return b.select(zero, by_zero, b.apply("arith.remui" if name == "rem" else "arith.divui", x, safe))
    wraps = b.apply("arith.andi", b.compare("eq", x, b.constant(least(element), x.type)), b.compare("eq", y, b.constant(-1, y.type)))
    result = b.apply(f"arith.{name}si", x, b.select(wraps, one, safe))
    return b.select(zero, by_zero, b.select(wraps, overflow, result))


def modulo(b, element: str, x: Value, y: Value) -> Value:
    """What floor division leaves, with the sign of the divisor; of integers by 0 it is 0."""
    zero = b.constant(0, x.type)
    rest = b.apply("arith.remf", x, y) if is_float(element) else divide(b, "rem", element, x, y, zero, zero)
    if is_unsigned(element):
        return rest
    signs = b.apply("arith.xori", compare(b, "lt", element, rest, zero), compare(b, "lt", element, y, zero))
    moves = b.apply("arith.andi", compare(b, "ne", element, rest, zero), signs)
    return b.select(moves, apply(b, "add", element, rest, y), rest)


def power(b, element: str, x: Value, n: int) -> Value:
    """x to a known integer, by squaring; negative powers are of floats."""
    result, square, k = None, x, abs(n)
    while k:
        if k & 1:
            result = square if result is None else apply(b, "mul", element, result, square)
        k >>= 1
        square = apply(b, "mul", element, square, square) if k else square
    one = b.constant(1, x.type)
    result = one if result is None else result
    return b.apply("arith.divf", one, result) if n < 0 else result


def shift(b, name: str, x: Value, y: Value) -> Value:
    """`name` is shli, shrui or shrsi; by the width or more everything is shifted out."""
    inside = b.compare("ult", y, b.constant(width(x.type), x.type))
    if name == "shrsi":
        return b.apply("arith.shrsi", x, b.select(inside, y, b.constant(width(x.type) - 1, x.type)))
    zero = b.constant(0, x.type)
    return b.select(inside, b.apply(f"arith.{name}", x, b.select(inside, y, zero)), zero)


def convert(b, x: Value, source: str, target: str, to: str | None = None) -> Value:
    """A scalar of one element type as one of another; `to` is the type of the result, without its sign where values have none.

    Floats become integers by truncation, those out of range the nearest integer, NaN 0. Integers that get narrower or lose their
    sign keep their low bits.
    """
    to = to or target
    if x.type == to and source == target:
        return x
    if is_float(source) and is_float(target):
        if width(source) == width(target):  # f16 and bf16
            x, source = b.cast("arith.extf", x, "f32"), "f32"
        return b.cast("arith.extf" if width(target) > width(source) else "arith.truncf", x, to)
    if target == "i1":
        return compare(b, "ne", source, x, b.constant(0, x.type))
    if is_float(source):
        return _truncated(b, x, target, to)
    if is_float(target):
        return b.cast("arith.uitofp" if signless_order(source) else "arith.sitofp", x, to)
    if width(target) > width(source):
        return b.cast("arith.extui" if signless_order(source) else "arith.extsi", x, to)
    if width(target) < width(source):
        return b.cast("arith.trunci", x, to)
    return x if x.type == to else b.cast("arith.bitcast", x, to)


def _truncated(b, x, target, to):
    """A float as an integer."""
    if width(x.type) == 16:
        x = b.cast("arith.extf", x, "f32")
    bits, unsigned = width(target), is_unsigned(target)
    low, high = (0, 2 ** bits) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    beyond, below = b.constant(float(high), x.type), b.constant(float(low), x.type)
    defined = b.apply("arith.andi", b.compare("olt", x, beyond), b.compare("ogt", x, below))
    inside = b.cast("arith.fptoui" if unsigned else "arith.fptosi", b.select(defined, x, b.constant(0, x.type)), to)
    inside = b.select(b.compare("ole", x, below), b.constant(low, to), inside)
    return b.select(b.compare("oge", x, beyond), number(b, high - 1, target, to), inside)


def wide(element: str) -> str:
    """The element type that sums of `element` are kept in."""
    return "f32" if element in ("f16", "bf16") else element


def widened(b, x: Value, to: str) -> Value:
    """A float as one of a type as wide or wider."""
    return x if x.type == to else b.cast("arith.extf", x, to)


def row_major(b, extents: dict[int, int], element: str = "i32") -> Value:
    """The row-major number of the iteration over loops of such extents, by loop; 0 without loops."""
    result = None
    for loop, extent in extents.items():
        here = b.cast("arith.index_cast", b.index(loop), element)
        result = here if result is None else b.apply("arith.addi", b.apply("arith.muli", result, b.constant(extent, element)), here)
    return b.constant(0, element) if result is None else result
