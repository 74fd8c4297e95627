# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise primitives."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax

from .. import ir
from ..ir import scalars
from ..ir.sorting import ordered
from ..ir.types import width
from . import elements
from .registry import rule
from .special import between_widths, mulhi


def pointwise(ctx, eqn, values, body):
    """The result of `eqn` by `body` on the elements of `values`; rank-0 operands and extents of 1 are broadcast."""
    aval = eqn.outvars[0].aval
    if _is_key(aval):  # select_n: keys have their words as a last dimension
        shape = ctx.shape(eqn)
        values = [v if _is_key(operand.aval) or not v.type.rank else ctx.b.reshape(v, (*v.type.shape, 1)) for operand, v in zip(eqn.invars, values)]
        return ctx.b.pointwise(values, shape, body)
    return ctx.b.pointwise(values, aval.shape, body)


def _is_key(aval) -> bool:
    return jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key)


def _kind(eqn, operand=0) -> str:
    return elements.kind_of(eqn.invars[operand].aval.dtype)


def _simple(primitive, name=None):
    """Registers a primitive that is one operation of tessera.ir.scalars."""
    name = name or primitive

    @rule(primitive)
    def _(ctx, eqn, *values):
        if scalars.operation(name, _kind(eqn)) is None:
            raise ctx.error(eqn, f"'{eqn.primitive}' of {eqn.invars[0].aval.dtype} is not supported")
        return pointwise(ctx, eqn, values, lambda *args: scalars.apply(ctx.b, name, _kind(eqn), *args))


for _name in ("acos", "acosh", "add", "and", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "clz", "cos", "cosh", "erf", "erfc",
              "exp", "exp2", "expm1", "floor", "log", "log1p", "max", "min", "mul", "or", "population_count", "rsqrt", "sin", "sinh", "sqrt",
              "sub", "tan", "tanh", "xor"):
    _simple(_name)
_simple("add_any", "add")


@rule("abs")
def _(ctx, eqn, x):
    return pointwise(ctx, eqn, [x], lambda x: scalars.absolute(ctx.b, _kind(eqn), x))


@rule("neg")
def _(ctx, eqn, x):
    return pointwise(ctx, eqn, [x], lambda x: scalars.negative(ctx.b, _kind(eqn), x))


@rule("not")
def _(ctx, eqn, x):
    return pointwise(ctx, eqn, [x], lambda x: scalars.complement(ctx.b, x))


@rule("div")
def _(ctx, eqn, x, y):
    b = ctx.b
    if elements.is_float(eqn.invars[0].aval.dtype):
        return pointwise(ctx, eqn, [x, y], lambda x, y: b.apply("arith.divf", x, y))
    # As in XLA: x / 0 is -1, and the least integer divided by -1 is itself.
    return pointwise(ctx, eqn, [x, y], lambda x, y: scalars.divide(b, "div", _kind(eqn), x, y, b.constant(-1, x.type), x))


def floor_divide(ctx, eqn, values):
    """`x // c` of integers with a positive constant c as one operation; None for others.

    JAX expands it to signs and remainders, after it has converted both operands to the type of the result.
    """
    result, divisor = eqn.outvars[0].aval.dtype, scalars.splat_of(values[1])
    if not all(jnp.issubdtype(t, jnp.integer) for t in (result, *[v.aval.dtype for v in eqn.invars])) \
            or divisor is None or not 0 < divisor <= jnp.iinfo(result).max:
        return None
    x = values[0] if eqn.invars[0].aval.dtype == result else pointwise(
        ctx, eqn, values[:1], lambda x: elements.convert(ctx.b, x, eqn.invars[0].aval.dtype, result))
    y = ctx.b.constant(divisor, ir.TensorType((), x.type.element))
    return pointwise(ctx, eqn, [x, y], lambda x, y: scalars.divide(ctx.b, "floordiv", elements.kind_of(result), x, y, x, x))


@rule("rem")
def _(ctx, eqn, x, y):
    b = ctx.b
    if elements.is_float(eqn.invars[0].aval.dtype):
        return pointwise(ctx, eqn, [x, y], lambda x, y: b.apply("arith.remf", x, y))
    return pointwise(ctx, eqn, [x, y], lambda x, y: scalars.divide(b, "rem", _kind(eqn), x, y, x, b.constant(0, x.type)))


_SHIFTS = {"shift_left": "shli", "shift_right_logical": "shrui", "shift_right_arithmetic": "shrsi"}


@rule(*_SHIFTS)
def _(ctx, eqn, x, y):
    return pointwise(ctx, eqn, [x, y], lambda x, y: scalars.shift(ctx.b, _SHIFTS[eqn.primitive.name], x, y))


@rule(*scalars.COMPARISONS)
def _(ctx, eqn, x, y):
    if _is_key(eqn.invars[0].aval):  # eq or ne of all their words
        b, words = ctx.b, x.type.shape[-1]
        name, join, start = ("ne", "arith.ori", False) if eqn.primitive.name == "ne" else ("eq", "arith.andi", True)
        shape = (*eqn.outvars[0].aval.shape, words)
        x, y = [b.broadcast(v, shape, [len(shape) - 1]) if v.type.rank < len(shape) else v for v in (x, y)]
        same = b.pointwise([x, y], shape, lambda x, y: b.compare(name, x, y))
        return b.reduce(same, [len(shape) - 1], lambda x, y: b.apply(join, x, y), start)
    return pointwise(ctx, eqn, [x, y], lambda x, y: scalars.compare(ctx.b, eqn.primitive.name, _kind(eqn), x, y))


@rule("nextafter")
def _(ctx, eqn, x, y):
    """Floats as sign and magnitude bits: adding 1 to the bits moves away from 0, subtracting 1 towards 0."""
    b, element = ctx.b, x.type.element
    bits, size = f"i{width(element)}", width(element)

    def body(x, y):
        zero = b.constant(0, x.type)
        here, there = [b.cast("arith.bitcast", v, bits) for v in (x, y)]
        one, sign, rest = b.constant(1, bits), b.constant(-(1 << (size - 1)), bits), b.constant((1 << (size - 1)) - 1, bits)
        signs_differ = b.compare("slt", b.apply("arith.xori", here, there), b.constant(0, bits))
        farther = b.compare("ugt", b.apply("arith.andi", here, rest), b.apply("arith.andi", there, rest))
        step = b.select(b.apply("arith.ori", signs_differ, farther), b.constant(-1, bits), one)
        least = b.apply("arith.ori", b.apply("arith.andi", there, sign), one)  # from 0: the smallest number with the sign of y
        moved = b.select(b.compare("oeq", x, zero), least, b.apply("arith.addi", here, step))
        moved = b.select(b.compare("oeq", x, y), there, moved)
        return b.select(b.compare("uno", x, y), b.constant(math.nan, x.type), b.cast("arith.bitcast", moved, element))
    return pointwise(ctx, eqn, [x, y], body)


@rule("mulhi")
def _(ctx, eqn, x, y):
    """The high half of a product of integers."""
    b, aval, size = ctx.b, eqn.outvars[0].aval, width(x.type.element)
    if size == 64:
        return ctx.inline(jax.make_jaxpr(mulhi)(*[jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in eqn.invars]), [x, y])
    extend = "arith.extui" if elements.is_unsigned(aval.dtype) else "arith.extsi"

    def body(x, y):
        product = b.apply("arith.muli", *[b.cast(extend, v, "i64") for v in (x, y)])
        return b.cast("arith.trunci", b.apply("arith.shrui", product, b.constant(size, "i64")), x.type)
    return pointwise(ctx, eqn, [x, y], body)


@rule("le_to", "lt_to")
def _(ctx, eqn, x, y):
    """Comparison in sorting order, with NaN last."""
    unsigned = elements.is_unsigned(eqn.invars[0].aval.dtype)
    keys = [ordered(ctx.b, v, unsigned) for v in (x, y)]
    return pointwise(ctx, eqn, keys, lambda x, y: ctx.b.compare("sle" if eqn.primitive.name == "le_to" else "slt", x, y))


@rule("is_finite")
def _(ctx, eqn, x):
    return pointwise(ctx, eqn, [x], lambda x: scalars.is_finite(ctx.b, x))


@rule("sign")
def _(ctx, eqn, x):
    return pointwise(ctx, eqn, [x], lambda x: scalars.sign(ctx.b, _kind(eqn), x))


@rule("round")
def _(ctx, eqn, x):
    even = eqn.params["rounding_method"] == lax.RoundingMethod.TO_NEAREST_EVEN
    return pointwise(ctx, eqn, [x], lambda x: scalars.apply(ctx.b, "roundeven" if even else "round", _kind(eqn), x))


@rule("logistic")
def _(ctx, eqn, x):
    return pointwise(ctx, eqn, [x], lambda x: scalars.logistic(ctx.b, x))


@rule("square")
def _(ctx, eqn, x):
    return pointwise(ctx, eqn, [x], lambda x: scalars.apply(ctx.b, "mul", _kind(eqn), x, x))


@rule("pow")
def _(ctx, eqn, x, y):
    """Powers; an integer exponent is converted to the type of the base, as in XLA."""
    base, power = [v.aval.dtype for v in eqn.invars]
    return pointwise(ctx, eqn, [x, y], lambda x, y: ctx.b.apply("math.powf", x, elements.convert(ctx.b, y, power, base)))


@rule("integer_pow")
def _(ctx, eqn, x):
    return pointwise(ctx, eqn, [x], lambda x: scalars.power(ctx.b, _kind(eqn), x, eqn.params["y"]))


@rule("clamp")
def _(ctx, eqn, low, x, high):
    return pointwise(ctx, eqn, [low, x, high], lambda low, x, high: scalars.clamp(ctx.b, _kind(eqn, 1), x, low, high))


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
            result = b.select(scalars.compare(b, "lt", _kind(eqn), which, b.constant(i + 1, which.type)), cases[i], result)
        return result
    return pointwise(ctx, eqn, [which, *cases], body)


@rule("real", "copy", "copy_p", "name", "stop_gradient", "optimization_barrier", "device_put", "pvary", "mesh_cast")
def _(ctx, eqn, *values):
    return list(values)


@rule("convert_element_type")
def _(ctx, eqn, x):
    source, target = eqn.invars[0].aval.dtype, eqn.params["new_dtype"]
    return pointwise(ctx, eqn, [x], lambda x: elements.convert(ctx.b, x, source, target))


@rule("bitcast_convert_type")
def _(ctx, eqn, x):
    if eqn.outvars[0].aval.shape != eqn.invars[0].aval.shape:
        aval, target = eqn.invars[0].aval, eqn.params["new_dtype"]
        return ctx.inline(jax.make_jaxpr(lambda x: between_widths(x, target))(jax.ShapeDtypeStruct(aval.shape, aval.dtype)), [x])
    target = elements.element_of(eqn.params["new_dtype"])
    if target == x.type.element:
        return x
    return pointwise(ctx, eqn, [x], lambda x: ctx.b.cast("arith.bitcast", x, target))
