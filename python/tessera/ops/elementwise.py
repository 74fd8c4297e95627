# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on each element alone, by their names in the array API standard."""

from __future__ import annotations

import builtins
import math

from .. import dtypes
from ..errors import ArgumentError
from ..ir import constants
from ..ir.types import is_float, is_unsigned
from ..source import refuse
from ..tensor import Tensor
from ..trace import check_meshes
from .base import broadcast_shapes, cast, common_type, elementwise, is_number, need, op, operand, tensor_of

__all__ = []


def _named(name):
    def register(function):
        function.__name__ = function.__qualname__ = name
        made = op(function)
        made.__module__ = __name__
        globals()[name] = made
        __all__.append(name)
        return made
    return register


def _floats(trace, name, x, body):
    """Of integers as float32."""
    if is_number(x):
        return elementwise(trace, name, [x], body, dtypes.float32)
    x = tensor_of(x, name)
    return elementwise(trace, name, [x], body, x.dtype if x.dtype.kind == "float" else dtypes.float32)


def _unary(name, what):
    def apply(trace, x):
        return _floats(trace, name, x, lambda b, x: b.apply(what, x))
    apply.__doc__ = f"{name} of each element; of integers as float32."
    _named(name)(apply)


for _name in ("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
              "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "floor", "ceil", "trunc"):
    _unary(_name, f"math.{_name}")
_unary("round", "math.roundeven")


def extremum(b, largest):
    """max or min of two scalars; NaN wins."""
    def combine(x, y):
        kind = "max" if largest else "min"
        if is_float(x.type):
            return b.apply(f"arith.{kind}imumf", x, y)
        if x.type == "i1":
            return b.apply("arith.ori" if largest else "arith.andi", x, y)
        return b.apply(f"arith.{kind}{'ui' if is_unsigned(x.type) else 'si'}", x, y)
    return combine


def _binary(name, floats, integers, doc):
    def apply(trace, x1, x2):
        def body(b, x, y):
            return b.apply(floats if is_float(x.type) else integers, x, y)
        result = common_type(name, [x if is_number(x) else tensor_of(x, name) for x in (x1, x2)])
        return elementwise(trace, name, [x1, x2], body, dtypes.int64 if result is dtypes.bool_ else None)
    apply.__doc__ = doc
    _named(name)(apply)


_binary("add", "arith.addf", "arith.addi", "Sums; operands are broadcast.")
_binary("subtract", "arith.subf", "arith.subi", "Differences; operands are broadcast.")
_binary("multiply", "arith.mulf", "arith.muli", "Products; operands are broadcast.")


@_named("divide")
def _(trace, x1, x2):
    """Quotients; of integers as float32."""
    common = common_type("divide", [x if is_number(x) else tensor_of(x, "divide") for x in (x1, x2)])
    return elementwise(trace, "divide", [x1, x2], lambda b, x, y: b.apply("arith.divf", x, y),
                       common if common.kind == "float" else dtypes.float32)


def _safe(b, name, x, y, by_zero, overflow):
    """Integer division without its traps: by 0, and of the least number by -1."""
    one = b.constant(1, x.type)
    zero = b.compare("eq", y, b.constant(0, y.type))
    if is_unsigned(x.type):
        name = "arith.remui" if "rem" in name else "arith.divui"
        return b.select(zero, by_zero, b.apply(name, x, b.select(zero, one, y)))
    wraps = b.apply("arith.andi", b.compare("eq", x, b.constant(constants.least(x.type), x.type)),
                    b.compare("eq", y, b.constant(-1, y.type)))
    result = b.apply(name, x, b.select(wraps, one, b.select(zero, one, y)))
    return b.select(zero, by_zero, b.select(wraps, overflow, result))


@_named("floor_divide")
def _(trace, x1, x2):
    """Quotients rounded down; of integers by 0 it is 0."""
    def body(b, x, y):
        if is_float(x.type):
            return b.apply("math.floor", b.apply("arith.divf", x, y))
        return _safe(b, "arith.floordivsi", x, y, b.constant(0, x.type), x)
    return elementwise(trace, "floor_divide", [x1, x2], body)


@_named("remainder")
def _(trace, x1, x2):
    """What floor_divide leaves, with the sign of the divisor; of integers by 0 it is 0."""
    def body(b, x, y):
        zero = b.constant(0, x.type)
        rest = b.apply("arith.remf", x, y) if is_float(x.type) else _safe(b, "arith.remsi", x, y, zero, zero)
        if is_unsigned(x.type):
            return rest
        less = (lambda v: b.compare("olt" if is_float(v.type) else "slt", v, zero))
        other = b.compare("une" if is_float(x.type) else "ne", rest, zero)
        signs = b.apply("arith.xori", less(rest), less(y))
        return b.select(b.apply("arith.andi", other, signs), b.apply("arith.addf" if is_float(x.type) else "arith.addi", rest, y), rest)
    return elementwise(trace, "remainder", [x1, x2], body)


@_named("pow")
def _(trace, x1, x2):
    """Powers. A small integer exponent is written as products."""
    if isinstance(x2, int) and not isinstance(x2, bool) or isinstance(x2, float) and x2.is_integer():
        n = int(x2)
        x1 = tensor_of(x1, "pow")
        if n < 0 and x1.dtype.kind != "float":
            raise refuse(ArgumentError, f"'pow' of {x1.dtype} by {n}: integers have no negative powers; convert with astype")
        if builtins.abs(n) <= 64:
            def body(b, x):
                multiply = "arith.mulf" if is_float(x.type) else "arith.muli"
                result, square, k = None, x, builtins.abs(n)
                while k:
                    if k & 1:
                        result = square if result is None else b.apply(multiply, result, square)
                    k >>= 1
                    square = b.apply(multiply, square, square) if k else square
                one = b.constant(1, x.type)
                result = one if result is None else result
                return b.apply("arith.divf", one, result) if n < 0 else result
            return elementwise(trace, "pow", [x1], body)
    common = common_type("pow", [x if is_number(x) else tensor_of(x, "pow") for x in (x1, x2)])
    return elementwise(trace, "pow", [x1, x2], lambda b, x, y: b.apply("math.powf", x, y),
                       common if common.kind == "float" else dtypes.float32)


@_named("atan2")
def _(trace, x1, x2):
    """The angle of the point (x2, x1)."""
    return elementwise(trace, "atan2", [x1, x2], lambda b, x, y: b.apply("math.atan2", x, y))


@_named("maximum")
def _(trace, x1, x2):
    """The greater of both; NaN wins."""
    return elementwise(trace, "maximum", [x1, x2], lambda b, x, y: extremum(b, True)(x, y))


@_named("minimum")
def _(trace, x1, x2):
    """The less of both; NaN wins."""
    return elementwise(trace, "minimum", [x1, x2], lambda b, x, y: extremum(b, False)(x, y))


@_named("clip")
def _(trace, x, min=None, max=None):
    """Between `min` and `max`; None is no bound."""
    if min is not None:
        x = elementwise(trace, "clip", [x, min], lambda b, x, y: extremum(b, True)(x, y))
    if max is not None:
        x = elementwise(trace, "clip", [x, max], lambda b, x, y: extremum(b, False)(x, y))
    return x


@_named("negative")
def _(trace, x):
    """-x."""
    return elementwise(trace, "negative", [x], lambda b, x: b.apply("arith.negf", x) if is_float(x.type)
                       else b.apply("arith.subi", b.constant(0, x.type), x))


@_named("abs")
def _(trace, x):
    """|x|."""
    return elementwise(trace, "abs", [x], lambda b, x: x if is_unsigned(x.type) else b.apply("math.absf" if is_float(x.type) else "math.absi", x))


@_named("square")
def _(trace, x):
    """x * x."""
    return elementwise(trace, "square", [x], lambda b, x: b.apply("arith.mulf" if is_float(x.type) else "arith.muli", x, x))


@_named("sign")
def _(trace, x):
    """-1, 0 or 1; NaN is its own sign."""
    def body(b, x):
        zero, one = b.constant(0, x.type), b.constant(1, x.type)
        if is_float(x.type):
            return b.select(b.compare("one", x, zero), b.apply("math.copysign", one, x), x)
        if is_unsigned(x.type):
            return b.select(b.compare("ne", x, zero), one, zero)
        return b.select(b.compare("sgt", x, zero), one, b.select(b.compare("slt", x, zero), b.constant(-1, x.type), zero))
    return elementwise(trace, "sign", [x], body)


@_named("sigmoid")
def _(trace, x):
    """1 / (1 + exp(-x))."""
    def body(b, x):
        one = b.constant(1, x.type)
        return b.apply("arith.divf", one, b.apply("arith.addf", one, b.apply("math.exp", b.apply("arith.negf", x))))
    return _floats(trace, "sigmoid", x, body)


def _comparison(name, floats, integers, plain):
    def apply(trace, x1, x2):
        return elementwise(trace, name, [x1, x2], lambda b, x, y: b.compare(floats if is_float(x.type) else plain if x.type == "i1" or is_unsigned(x.type) else integers, x, y))
    apply.__doc__ = f"Whether {name.replace('_', ' ')}: a bool for each element."
    _named(name)(apply)


for _arguments in (("equal", "oeq", "eq", "eq"), ("not_equal", "une", "ne", "ne"), ("less", "olt", "slt", "ult"),
                   ("less_equal", "ole", "sle", "ule"), ("greater", "ogt", "sgt", "ugt"), ("greater_equal", "oge", "sge", "uge")):
    _comparison(*_arguments)


def _logical(name, what, only=None):
    def apply(trace, x1, x2):
        if only:
            return elementwise(trace, name, [x1, x2], lambda b, x, y: b.apply(what, x, y), only)
        for x in (x1, x2):
            if not is_number(x):
                need(name, tensor_of(x, name), "integer", "bool")
        return elementwise(trace, name, [x1, x2], lambda b, x, y: b.apply(what, x, y))
    apply.__doc__ = f"{name} of each pair of elements."
    _named(name)(apply)


for _name in ("and", "or", "xor"):
    _logical(f"logical_{_name}", f"arith.{_name}i", dtypes.bool_)
    _logical(f"bitwise_{_name}", f"arith.{_name}i")


@_named("logical_not")
def _(trace, x):
    """True where the element is 0."""
    return elementwise(trace, "logical_not", [x], lambda b, x: b.apply("arith.xori", x, b.constant(1, "i1")), dtypes.bool_)


@_named("isnan")
def _(trace, x):
    """Whether it is no number."""
    return _floats(trace, "isnan", x, lambda b, x: b.compare("une", x, x))


@_named("isfinite")
def _(trace, x):
    """Whether it is neither infinite nor NaN."""
    return _floats(trace, "isfinite", x, lambda b, x: b.compare("olt", b.apply("math.absf", x), b.constant(math.inf, x.type)))


@_named("isinf")
def _(trace, x):
    """Whether it is infinite."""
    return _floats(trace, "isinf", x, lambda b, x: b.compare("oeq", b.apply("math.absf", x), b.constant(math.inf, x.type)))


@_named("where")
def _(trace, condition, x1, x2):
    """x1 where the condition holds, x2 elsewhere; all are broadcast."""
    condition = tensor_of(condition, "where")
    pair = [x if is_number(x) else tensor_of(x, "where") for x in (x1, x2)]
    check_meshes("where", [condition, *[x for x in pair if isinstance(x, Tensor)]])
    element = common_type("where", pair).element
    shape = broadcast_shapes("where", [condition.shape, *[x.shape for x in pair if isinstance(x, Tensor)]])
    b, values = trace.builder, [operand(trace, condition, "i1"), *[operand(trace, x, element) for x in pair]]
    values = [v if not v.type.rank else b.reshape(v, (1,) * (len(shape) - v.type.rank) + v.type.shape) for v in values]
    return trace.tensor(b.pointwise(values, shape, lambda c, x, y: b.select(c, x, y)))


@_named("astype")
def _(trace, x, dtype):
    """The elements as another type; floats become integers by truncation."""
    x = tensor_of(x, "astype")
    return trace.tensor(cast(trace, operand(trace, x), dtypes.dtype(dtype).element))
