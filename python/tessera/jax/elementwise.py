# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Primitives that work on each element alone."""

from __future__ import annotations

import math

from jax import lax

from ..ir import constants
from ..ir.sorting import ordered
from ..ir.types import width
from . import elements
from .registry import rule


def pointwise(ctx, eqn, values, body):
    """The result of `eqn` from the elements of `values`; operands of rank 0 and extents of 1 are broadcast."""
    return ctx.b.pointwise(values, eqn.outvars[0].aval.shape, body)


def _simple(name, floats, integers=None, unsigned=None):
    """A primitive that is one op: its names for floats, signed integers, unsigned ones."""
    @rule(*([name] if isinstance(name, str) else name))
    def _(ctx, eqn, *values):
        dtype = eqn.invars[0].aval.dtype
        op = floats if elements.is_float(dtype) else unsigned if elements.is_unsigned(dtype) and unsigned else integers
        if op is None:
            raise ctx.error(eqn, f"'{eqn.primitive}' of {dtype} is not supported")
        return pointwise(ctx, eqn, values, lambda *args: ctx.b.apply(op, *args))


_simple(("add", "add_any"), "arith.addf", "arith.addi")
_simple("sub", "arith.subf", "arith.subi")
_simple("mul", "arith.mulf", "arith.muli")
_simple("and", None, "arith.andi")
_simple("or", None, "arith.ori")
_simple("xor", None, "arith.xori")
_simple("abs", "math.absf", "math.absi")
_simple("atan2", "math.atan2")
_simple("clz", None, "math.ctlz")
_simple("population_count", None, "math.ctpop")
for _name, _op in dict(exp="exp", exp2="exp2", expm1="expm1", log="log", log1p="log1p", sqrt="sqrt", rsqrt="rsqrt", cbrt="cbrt",
                       sin="sin", cos="cos", tan="tan", asin="asin", acos="acos", atan="atan", sinh="sinh", cosh="cosh",
                       tanh="tanh", asinh="asinh", acosh="acosh", atanh="atanh", erf="erf", erfc="erfc", floor="floor",
                       ceil="ceil").items():
    _simple(_name, f"math.{_op}")


def extremum(b, largest, dtype):
    """max or min of two scalars; NaN wins."""
    def combine(x, y):
        kind = "max" if largest else "min"
        if elements.is_float(dtype):
            return b.apply(f"arith.{kind}imumf", x, y)
        sign = "u" if elements.is_unsigned(dtype) or elements.element_of(dtype) == "i1" else "s"
        if elements.element_of(dtype) == "i1":
            return b.apply("arith.ori" if largest else "arith.andi", x, y)
        return b.apply(f"arith.{kind}{sign}i", x, y)
    return combine


@rule("max", "min")
def _(ctx, eqn, a, c):
    return pointwise(ctx, eqn, [a, c], extremum(ctx.b, eqn.primitive.name == "max", eqn.invars[0].aval.dtype))


@rule("neg")
def _(ctx, eqn, x):
    b = ctx.b
    if elements.is_float(eqn.invars[0].aval.dtype):
        return pointwise(ctx, eqn, [x], lambda x: b.apply("arith.negf", x))
    return pointwise(ctx, eqn, [x], lambda x: b.apply("arith.subi", b.constant(0, x.type), x))


@rule("not")
def _(ctx, eqn, x):
    return pointwise(ctx, eqn, [x], lambda x: ctx.b.apply("arith.xori", x, ctx.b.constant(1 if x.type == "i1" else -1, x.type)))


@rule("div")
def _(ctx, eqn, x, y):
    b, dtype = ctx.b, eqn.invars[0].aval.dtype
    if elements.is_float(dtype):
        return pointwise(ctx, eqn, [x, y], lambda x, y: b.apply("arith.divf", x, y))
    name = "arith.divui" if elements.is_unsigned(dtype) else "arith.divsi"
    # As XLA: x / 0 is -1, and the least number over -1 is itself.
    return pointwise(ctx, eqn, [x, y], lambda x, y: _divide(b, name, x, y, lambda: b.constant(-1, x.type), lambda: x))


@rule("rem")
def _(ctx, eqn, x, y):
    b, dtype = ctx.b, eqn.invars[0].aval.dtype
    if elements.is_float(dtype):
        return pointwise(ctx, eqn, [x, y], lambda x, y: b.apply("arith.remf", x, y))
    name = "arith.remui" if elements.is_unsigned(dtype) else "arith.remsi"
    return pointwise(ctx, eqn, [x, y], lambda x, y: _divide(b, name, x, y, lambda: x, lambda: b.constant(0, x.type)))


def _divide(b, name, x, y, by_zero, overflow):
    """Division without its traps: by 0, and for signed numbers the least one by -1."""
    one = b.constant(1, x.type)
    zero = b.compare("eq", y, b.constant(0, y.type))
    safe = b.select(zero, one, y)
    if name.endswith("ui"):
        return b.select(zero, by_zero(), b.apply(name, x, safe))
    least = b.compare("eq", x, b.constant(constants.least(x.type), x.type))
    wraps = b.apply("arith.andi", least, b.compare("eq", y, b.constant(-1, y.type)))
    quotient = b.apply(name, x, b.select(wraps, one, safe))
    return b.select(zero, by_zero(), b.select(wraps, overflow(), quotient))


@rule("shift_left", "shift_right_logical", "shift_right_arithmetic")
def _(ctx, eqn, x, y):
    b = ctx.b
    name = {"shift_left": "arith.shli", "shift_right_logical": "arith.shrui", "shift_right_arithmetic": "arith.shrsi"}[eqn.primitive.name]

    def body(x, y):
        bits = b.constant(width(x.type), x.type)
        inside = b.compare("ult", y, bits)
        if name == "arith.shrsi":
            return b.apply(name, x, b.select(inside, y, b.constant(width(x.type) - 1, x.type)))
        zero = b.constant(0, x.type)
        return b.select(inside, b.apply(name, x, b.select(inside, y, zero)), zero)
    return pointwise(ctx, eqn, [x, y], body)


_PREDICATES = {"eq": ("oeq", "eq", "eq"), "ne": ("une", "ne", "ne"), "lt": ("olt", "slt", "ult"), "le": ("ole", "sle", "ule"),
               "gt": ("ogt", "sgt", "ugt"), "ge": ("oge", "sge", "uge")}


def compare(b, name, dtype, x, y):
    floats, signed, unsigned = _PREDICATES[name]
    plain = elements.is_unsigned(dtype) or elements.element_of(dtype) == "i1"
    return b.compare(floats if elements.is_float(dtype) else unsigned if plain else signed, x, y)


@rule(*_PREDICATES)
def _(ctx, eqn, x, y):
    return pointwise(ctx, eqn, [x, y], lambda x, y: compare(ctx.b, eqn.primitive.name, eqn.invars[0].aval.dtype, x, y))


@rule("nextafter")
def _(ctx, eqn, x, y):
    """The bits of a float are its magnitude in order, below a sign: one more leads away from 0, one less towards it."""
    b, element = ctx.b, x.type.element
    bits, size = f"i{width(element)}", width(element)

    def body(x, y):
        zero = b.constant(0, x.type)
        here, there = [b.cast("arith.bitcast", v, bits) for v in (x, y)]
        one, sign, rest = b.constant(1, bits), b.constant(-(1 << (size - 1)), bits), b.constant((1 << (size - 1)) - 1, bits)
        signs_differ = b.compare("slt", b.apply("arith.xori", here, there), b.constant(0, bits))
        farther = b.compare("ugt", b.apply("arith.andi", here, rest), b.apply("arith.andi", there, rest))
        step = b.select(b.apply("arith.ori", signs_differ, farther), b.constant(-1, bits), one)
        least = b.apply("arith.ori", b.apply("arith.andi", there, sign), one)  # from 0 the smallest number of y's sign
        moved = b.select(b.compare("oeq", x, zero), least, b.apply("arith.addi", here, step))
        moved = b.select(b.compare("oeq", x, y), there, moved)
        return b.select(b.compare("uno", x, y), b.constant(math.nan, x.type), b.cast("arith.bitcast", moved, element))
    return pointwise(ctx, eqn, [x, y], body)


@rule("le_to", "lt_to")
def _(ctx, eqn, x, y):
    """In the order of sorting, where NaN comes last."""
    unsigned = elements.is_unsigned(eqn.invars[0].aval.dtype)
    keys = [ordered(ctx.b, v, unsigned) for v in (x, y)]
    return pointwise(ctx, eqn, keys, lambda x, y: ctx.b.compare("sle" if eqn.primitive.name == "le_to" else "slt", x, y))


@rule("is_finite")
def _(ctx, eqn, x):
    b = ctx.b
    return pointwise(ctx, eqn, [x], lambda x: b.compare("olt", b.apply("math.absf", x), b.constant(math.inf, x.type)))


@rule("sign")
def _(ctx, eqn, x):
    b, dtype = ctx.b, eqn.invars[0].aval.dtype

    def body(x):
        zero, one = b.constant(0, x.type), b.constant(1, x.type)
        if elements.is_unsigned(dtype):
            return b.select(b.compare("eq", x, zero), zero, one)
        if elements.is_float(dtype):  # NaN and both zeros are their own sign
            unit = b.apply("math.copysign", one, x)
            return b.select(b.compare("one", x, zero), unit, x)
        return b.select(b.compare("sgt", x, zero), one, b.select(b.compare("slt", x, zero), b.constant(-1, x.type), zero))
    return pointwise(ctx, eqn, [x], body)


@rule("round")
def _(ctx, eqn, x):
    even = eqn.params["rounding_method"] == lax.RoundingMethod.TO_NEAREST_EVEN
    name = "math.roundeven" if even else "math.round"
    return pointwise(ctx, eqn, [x], lambda x: ctx.b.apply(name, x))


@rule("logistic")
def _(ctx, eqn, x):
    b = ctx.b

    def body(x):
        one = b.constant(1, x.type)
        return b.apply("arith.divf", one, b.apply("arith.addf", one, b.apply("math.exp", b.apply("arith.negf", x))))
    return pointwise(ctx, eqn, [x], body)


@rule("square")
def _(ctx, eqn, x):
    name = "arith.mulf" if elements.is_float(eqn.invars[0].aval.dtype) else "arith.muli"
    return pointwise(ctx, eqn, [x], lambda x: ctx.b.apply(name, x, x))


@rule("pow")
def _(ctx, eqn, x, y):
    """An integer exponent is brought to the type of the base, as XLA does."""
    base, power = [v.aval.dtype for v in eqn.invars]
    return pointwise(ctx, eqn, [x, y], lambda x, y: ctx.b.apply("math.powf", x, elements.convert(ctx.b, y, power, base)))


@rule("integer_pow")
def _(ctx, eqn, x):
    b, power = ctx.b, eqn.params["y"]
    floats = elements.is_float(eqn.invars[0].aval.dtype)
    multiply = lambda x, y: b.apply("arith.mulf" if floats else "arith.muli", x, y)

    def body(x):
        result, square, n = None, x, abs(power)
        while n:  # by squaring, as XLA does
            if n & 1:
                result = square if result is None else multiply(result, square)
            n >>= 1
            square = multiply(square, square) if n else square
        one = b.constant(1, x.type)
        if result is None:
            return one
        return b.apply("arith.divf", one, result) if power < 0 else result
    return pointwise(ctx, eqn, [x], body)


@rule("clamp")
def _(ctx, eqn, low, x, high):
    dtype = eqn.invars[1].aval.dtype
    return pointwise(ctx, eqn, [low, x, high], lambda low, x, high:
                     extremum(ctx.b, False, dtype)(extremum(ctx.b, True, dtype)(x, low), high))


@rule("select_n")
def _(ctx, eqn, which, *cases):
    b = ctx.b
    if len(cases) == 1:
        return cases[0]

    def body(which, *cases):
        if which.type == "i1":
            return b.select(which, cases[1], cases[0])
        result = cases[-1]
        for i in reversed(range(len(cases) - 1)):
            result = b.select(compare(b, "lt", eqn.invars[0].aval.dtype, which, b.constant(i + 1, which.type)), cases[i], result)
        return result
    return pointwise(ctx, eqn, [which, *cases], body)


@rule("real", "copy", "copy_p", "name", "stop_gradient", "optimization_barrier", "reduce_precision", "device_put", "pvary", "mesh_cast")
def _(ctx, eqn, *values):
    if eqn.primitive.name == "reduce_precision":
        kept = {"f64": (11, 52), "f32": (8, 23), "bf16": (8, 7), "f16": (5, 10)}[values[0].type.element]
        if (eqn.params["exponent_bits"], eqn.params["mantissa_bits"]) != kept:
            raise ctx.error(eqn, "'reduce_precision' to a format that is no element type is not supported; use astype")
    return list(values)


@rule("convert_element_type")
def _(ctx, eqn, x):
    source, target = eqn.invars[0].aval.dtype, eqn.params["new_dtype"]
    return pointwise(ctx, eqn, [x], lambda x: elements.convert(ctx.b, x, source, target))


@rule("bitcast_convert_type")
def _(ctx, eqn, x):
    if eqn.outvars[0].aval.shape != eqn.invars[0].aval.shape:
        raise ctx.error(eqn, "'bitcast_convert_type' between types of different width is not supported")
    target = elements.element_of(eqn.params["new_dtype"])
    if target == x.type.element:
        return x
    return pointwise(ctx, eqn, [x], lambda x: ctx.b.cast("arith.bitcast", x, target))
