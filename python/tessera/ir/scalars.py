# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar arithmetic inside loop nests, shared by operations and importers.

`element` is the element type with its sign (ui32). Values have that type or the signless type of the same width (i32,
in JAX programs): `element` selects the operation, and constants and results have the type of the values.
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


# The operation for floats, signed integers, unsigned integers and booleans; None: not supported.
_OPERATIONS = {
    "add": _of("arith.addf", "arith.addi"), "sub": _of("arith.subf", "arith.subi"), "mul": _of("arith.mulf", "arith.muli"),
    "and": _of(None, "arith.andi"), "or": _of(None, "arith.ori"), "xor": _of(None, "arith.xori"),
    "max": _of("arith.maximumf", "arith.maxsi", "arith.maxui", "arith.ori"),  # propagates NaN
    "min": _of("arith.minimumf", "arith.minsi", "arith.minui", "arith.andi"),
    "clz": _of(None, "math.ctlz"), "population_count": _of(None, "math.ctpop"),
    **{name: _of(f"math.{name}") for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1",
        "floor", "log", "log10", "log1p", "log2", "round", "roundeven", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "trunc")},
}

# The predicate for floats, signed integers, and unsigned integers and booleans. NaN is not equal to anything.
_PREDICATES = {"eq": ("oeq", "eq", "eq"), "ne": ("une", "ne", "ne"), "lt": ("olt", "slt", "ult"), "le": ("ole", "sle", "ule"),
               "gt": ("ogt", "sgt", "ugt"), "ge": ("oge", "sge", "uge")}
COMPARISONS = tuple(_PREDICATES)


def signless_order(element: str) -> bool:
    """Whether elements are compared and extended as unsigned numbers: unsigned integers and booleans."""
    return element == "i1" or is_unsigned(element)


def operation(name: str, element: str) -> str | None:
    """The MLIR operation of a name for an element type; None if not supported."""
    floats, signed, unsigned, bools = _OPERATIONS[name]
    return floats if is_float(element) else bools if element == "i1" else unsigned if is_unsigned(element) else signed


def apply(b, name: str, element: str, *values: Value) -> Value:
    """The operation `name` for an element type, applied to scalars."""
    return b.apply(operation(name, element), *values)


def combine(b, name: str, element: str) -> Callable[[Value, Value], Value]:
    """The operation `name` as a function of two scalars, for reductions."""
    return lambda x, y: apply(b, name, element, x, y)


def compare(b, name: str, element: str, x: Value, y: Value) -> Value:
    """One of COMPARISONS, as i1."""
    floats, signed, plain = _PREDICATES[name]
    return b.compare(floats if is_float(element) else plain if signless_order(element) else signed, x, y)


def number(b, value, element: str, like: str) -> Value:
    """The constant `value` of type `element` as a scalar of type `like`, which may be signless."""
    return b.constant(as_signed(value, element) if is_unsigned(element) and not is_unsigned(like) else value, like)


def negative(b, element: str, x: Value) -> Value:
    """-x; for integers 0 - x, which wraps."""
    return b.apply("arith.negf", x) if is_float(element) else b.apply("arith.subi", b.constant(0, x.type), x)


def absolute(b, element: str, x: Value) -> Value:
    """|x|; the least signed integer stays negative."""
    return x if is_unsigned(element) else b.apply("math.absf" if is_float(element) else "math.absi", x)


def complement(b, x: Value) -> Value:
    """Bitwise not of an integer, logical not of a boolean."""
    return b.apply("arith.xori", x, b.constant(1 if x.type == "i1" else -1, x.type))


def sign(b, element: str, x: Value) -> Value:
    """-1, 0 or 1; returns NaN and signed zeros unchanged."""
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
    """As i1, of a float."""
    return b.compare("une", x, x)


def is_finite(b, x: Value) -> Value:
    """As i1, of a float: neither infinite nor NaN."""
    return b.compare("olt", b.apply("math.absf", x), b.constant(math.inf, x.type))


def is_infinite(b, x: Value) -> Value:
    """As i1, of a float of either sign."""
    return b.compare("oeq", b.apply("math.absf", x), b.constant(math.inf, x.type))


def clamp(b, element: str, x: Value, low: Value | None, high: Value | None) -> Value:
    """min(max(x, low), high); a bound of None is not applied. If low > high the result is high."""
    x = x if low is None else apply(b, "max", element, x, low)
    return x if high is None else apply(b, "min", element, x, high)


def splat_of(x: Value):
    """The number of a constant with equal elements; None for other values."""
    return x.owner.attributes.get("splat") if x.owner is not None and x.owner.name == "arith.constant" else None


def divide(b, name: str, element: str, x: Value, y: Value, by_zero: Value, overflow: Value) -> Value:
    """Integer division (`name` is div, floordiv or rem) without undefined behavior.

    Returns `by_zero` for y = 0 and `overflow` for the least integer divided by -1.
    """
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
    """The remainder of floor division, with the sign of the divisor; 0 for integers modulo 0."""
    zero = b.constant(0, x.type)
    rest = b.apply("arith.remf", x, y) if is_float(element) else divide(b, "rem", element, x, y, zero, zero)
    if is_unsigned(element):
        return rest
    signs = b.apply("arith.xori", compare(b, "lt", element, rest, zero), compare(b, "lt", element, y, zero))
    moves = b.apply("arith.andi", compare(b, "ne", element, rest, zero), signs)
    return b.select(moves, apply(b, "add", element, rest, y), rest)


def power(b, element: str, x: Value, n: int) -> Value:
    """x to a constant integer, by repeated squaring; n < 0 only for floats."""
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
    """`name` is shli, shrui or shrsi. Shifting by the bit width or more gives 0, or the sign bit for shrsi."""
    inside = b.compare("ult", y, b.constant(width(x.type), x.type))
    if name == "shrsi":
        return b.apply("arith.shrsi", x, b.select(inside, y, b.constant(width(x.type) - 1, x.type)))
    zero = b.constant(0, x.type)
    return b.select(inside, b.apply(f"arith.{name}", x, b.select(inside, y, zero)), zero)


def convert(b, x: Value, source: str, target: str, to: str | None = None) -> Value:
    """A scalar converted from element type `source` to `target`; `to` is the type of the result if that is signless.

    Floats are truncated to integers and saturate, NaN becomes 0. Integers that get narrower or unsigned keep their low
    bits.
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
    """A float converted to an integer, saturating."""
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
    """The accumulator type of sums of `element`: f32 for 16-bit floats."""
    return "f32" if element in ("f16", "bf16") else element


def widened(b, x: Value, to: str) -> Value:
    """A float extended to a type at least as wide."""
    return x if x.type == to else b.cast("arith.extf", x, to)


# Giles, Approximating the erfinv function, 2012.
_ERF_INV_CENTRAL = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
                    0.246640727, 1.50140941)
_ERF_INV_TAIL = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
                 1.00167406, 2.83297682)


def erf_inv(b, x: Value) -> Value:
    """The inverse error function of an f32, in single precision, as XLA computes it."""
    def polynomial(coefficients, w):
        result = b.constant(coefficients[0], "f32")
        for c in coefficients[1:]:
            result = b.apply("arith.addf", b.apply("arith.mulf", result, w), b.constant(c, "f32"))
        return result
    w = b.apply("arith.negf", b.apply("math.log1p", b.apply("arith.negf", b.apply("arith.mulf", x, x))))
    central = polynomial(_ERF_INV_CENTRAL, b.apply("arith.subf", w, b.constant(2.5, "f32")))
    tail = polynomial(_ERF_INV_TAIL, b.apply("arith.subf", b.apply("math.sqrt", w), b.constant(3.0, "f32")))
    near = b.select(b.compare("olt", w, b.constant(5.0, "f32")), central, tail)
    edge = b.compare("oeq", b.apply("math.absf", x), b.constant(1.0, "f32"))
    return b.apply("arith.mulf", x, b.select(edge, b.constant(math.inf, "f32"), near))


def row_major(b, extents: dict[int, int], element: str = "i32") -> Value:
    """The row-major linear index of the current iteration over the given loops (loop -> extent); 0 without loops."""
    result = None
    for loop, extent in extents.items():
        here = b.cast("arith.index_cast", b.index(loop), element)
        result = here if result is None else b.apply("arith.addi", b.apply("arith.muli", result, b.constant(extent, element)), here)
    return b.constant(0, element) if result is None else result
