# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise operations, named as in the array API standard."""

from __future__ import annotations

import builtins

from .. import dtypes
from ..errors import ArgumentError
from ..ir import scalars
from ..ir.types import is_float, is_unsigned
from ..source import refuse
from ..tensor import Tensor
from ..trace import check_meshes
from .base import broadcast_shapes, cast, common_type, elementwise, is_number, need, op, operand, tensor_of
from .distributed import stop_gradient

__all__ = []


def _named(name):
    """Decorator: makes `apply(trace, ...)` the public operation `name`."""
    def register(function):
        function.__name__ = function.__qualname__ = name
        made = op(function)
        made.__module__ = __name__
        globals()[name] = made
        __all__.append(name)
        return made
    return register


def _floats(trace, name, x, body):
    """A unary operation on floats; integers are converted to float32."""
    if is_number(x):
        return elementwise(trace, name, [x], body, dtypes.float32)
    x = tensor_of(x, name)
    return elementwise(trace, name, [x], body, x.dtype if x.dtype.kind == "float" else dtypes.float32)


def _unary(name, what=None):
    def apply(trace, x):
        return _floats(trace, name, x, lambda b, x: scalars.apply(b, what or name, x.type, x))
    apply.__doc__ = f"Elementwise {name}, in the dtype of x; integers are converted to float32."
    _named(name)(apply)


for _name in ("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
              "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "floor", "ceil", "trunc"):
    _unary(_name)
_unary("round", "roundeven")


def _both(name):
    """The body of a binary operation on elements of one type."""
    return lambda b, x, y: scalars.apply(b, name, x.type, x, y)


def _binary(name, what, doc):
    def apply(trace, x1, x2):
        result = common_type(name, [x if is_number(x) else tensor_of(x, name) for x in (x1, x2)])
        return elementwise(trace, name, [x1, x2], _both(what), dtypes.int64 if result is dtypes.bool_ else None)
    apply.__doc__ = doc
    _named(name)(apply)


_binary("add", "add", "x1 + x2, broadcast.")
_binary("subtract", "sub", "x1 - x2, broadcast.")
_binary("multiply", "mul", "x1 * x2, broadcast.")


def _of_floats(trace, name, x1, x2, what):
    """A binary operation on floats; integers are converted to float32."""
    common = common_type(name, [x if is_number(x) else tensor_of(x, name) for x in (x1, x2)])
    return elementwise(trace, name, [x1, x2], lambda b, x, y: b.apply(what, x, y), common if common.kind == "float" else dtypes.float32)


@_named("divide")
def _(trace, x1, x2):
    """x1 / x2, broadcast; integers are converted to float32."""
    return _of_floats(trace, "divide", x1, x2, "arith.divf")


@_named("floor_divide")
def _(trace, x1, x2):
    """x1 / x2 rounded down, broadcast; integer division by 0 gives 0."""
    def body(b, x, y):
        if is_float(x.type):
            return b.apply("math.floor", b.apply("arith.divf", x, y))
        return scalars.divide(b, "floordiv", x.type, x, y, b.constant(0, x.type), x)
    return elementwise(trace, "floor_divide", [x1, x2], body)


@_named("remainder")
def _(trace, x1, x2):
    """x1 - x2 * floor_divide(x1, x2), with the sign of x2, broadcast; an integer modulo 0 gives 0."""
    return elementwise(trace, "remainder", [x1, x2], lambda b, x, y: scalars.modulo(b, x.type, x, y))


@_named("pow")
def _(trace, x1, x2):
    """x1 ** x2, broadcast. Constant integer exponents up to 64 become products; others are computed as floats, integers in float32.

    Raises ArgumentError for an integer x1 with a negative constant exponent.
    """
    if isinstance(x2, int) and not isinstance(x2, bool) or isinstance(x2, float) and x2.is_integer():
        n = int(x2)
        x1 = tensor_of(x1, "pow")
        if n < 0 and x1.dtype.kind != "float":
            raise refuse(ArgumentError, f"'pow' of {x1.dtype} to the power {n}: integers have no negative powers; convert with astype")
        if builtins.abs(n) <= 64:
            return elementwise(trace, "pow", [x1], lambda b, x: scalars.power(b, x.type, x, n))
    return _of_floats(trace, "pow", x1, x2, "math.powf")


@_named("atan2")
def _(trace, x1, x2):
    """The angle of the point (x2, x1) in (-pi, pi], broadcast; integers are converted to float32."""
    return _of_floats(trace, "atan2", x1, x2, "math.atan2")


@_named("maximum")
def _(trace, x1, x2):
    """The greater of x1 and x2, broadcast; propagates NaN."""
    return elementwise(trace, "maximum", [x1, x2], _both("max"))


@_named("minimum")
def _(trace, x1, x2):
    """The lesser of x1 and x2, broadcast; propagates NaN."""
    return elementwise(trace, "minimum", [x1, x2], _both("min"))


@_named("clip")
def _(trace, x, min=None, max=None):
    """x limited to [min, max], broadcast; a bound of None is not applied. If min > max the result is max."""
    if min is not None:
        x = elementwise(trace, "clip", [x, min], _both("max"))
    if max is not None:
        x = elementwise(trace, "clip", [x, max], _both("min"))
    return x


@_named("negative")
def _(trace, x):
    """-x."""
    return elementwise(trace, "negative", [x], lambda b, x: scalars.negative(b, x.type, x))


@_named("abs")
def _(trace, x):
    """|x|."""
    return elementwise(trace, "abs", [x], lambda b, x: scalars.absolute(b, x.type, x))


@_named("square")
def _(trace, x):
    """x * x."""
    return elementwise(trace, "square", [x], lambda b, x: scalars.apply(b, "mul", x.type, x, x))


@_named("sign")
def _(trace, x):
    """-1, 0 or 1, in the dtype of x; NaN for NaN. Its derivative is 0."""
    x = stop_gradient(x)
    return elementwise(trace, "sign", [x], lambda b, x: scalars.sign(b, x.type, x))


@_named("sigmoid")
def _(trace, x):
    """1 / (1 + exp(-x)); integers are converted to float32."""
    def body(b, x):  # of exp(-|x|), which does not overflow: 1 / inf**2 * inf in the derivative is not a number
        above, one = b.compare("ogt", x, b.constant(0, x.type)), b.constant(1, x.type)
        power = b.apply("math.exp", b.select(above, b.apply("arith.negf", x), x))
        return b.apply("arith.divf", b.select(above, one, power), b.apply("arith.addf", one, power))
    return _floats(trace, "sigmoid", x, body)


def _comparison(name, what):
    def apply(trace, x1, x2):
        return elementwise(trace, name, [x1, x2], lambda b, x, y: scalars.compare(b, what, x.type, x, y))
    apply.__doc__ = f"Elementwise comparison ({name.replace('_', ' ')}), broadcast; the result is bool."
    _named(name)(apply)


for _name, _what in dict(equal="eq", not_equal="ne", less="lt", less_equal="le", greater="gt", greater_equal="ge").items():
    _comparison(_name, _what)


def _logical(name, what, only=None):
    def apply(trace, x1, x2):
        if only:
            return elementwise(trace, name, [x1, x2], _both(what), only)
        for x in (x1, x2):
            if not isinstance(x, (bool, int)):
                need(name, tensor_of(x, name), "integer", "bool")
        return elementwise(trace, name, [x1, x2], _both(what))
    apply.__doc__ = f"Elementwise {name.replace('_', ' ')}, broadcast."
    _named(name)(apply)


for _name in ("and", "or", "xor"):
    _logical(f"logical_{_name}", _name, dtypes.bool_)
    _logical(f"bitwise_{_name}", _name)


def _shift(name, left):
    def apply(trace, x1, x2):
        for x in (x1, x2):
            if not isinstance(x, int) or isinstance(x, bool):
                need(name, tensor_of(x, name), "integer")
        which = lambda element: "shli" if left else "shrui" if is_unsigned(element) else "shrsi"
        return elementwise(trace, name, [x1, x2], lambda b, x, y: scalars.shift(b, which(x.type), x, y))
    apply.__doc__ = f"Elementwise {name.replace('_', ' ')}, broadcast; by the width of the type or more: 0, or the sign bit of a right shift."
    _named(name)(apply)


_shift("bitwise_left_shift", True)
_shift("bitwise_right_shift", False)


@_named("copysign")
def _(trace, x1, x2):
    """|x1| with the sign of x2, broadcast; integers are converted to float32."""
    return _of_floats(trace, "copysign", x1, x2, "math.copysign")


@_named("hypot")
def _(trace, x1, x2):
    """sqrt(x1 * x1 + x2 * x2), broadcast, without overflow; integers are converted to float32."""
    common = common_type("hypot", [x if is_number(x) else tensor_of(x, "hypot") for x in (x1, x2)])

    def body(b, x, y):
        x, y = b.apply("math.absf", x), b.apply("math.absf", y)
        first = b.compare("oge", x, y)
        greater, lesser = b.select(first, x, y), b.select(first, y, x)
        part = b.apply("arith.divf", lesser, greater)
        root = b.apply("arith.mulf", greater, b.apply("math.sqrt", b.apply("arith.addf", b.constant(1, x.type), b.apply("arith.mulf", part, part))))
        alone = b.apply("arith.ori", b.compare("oeq", greater, b.constant(0, x.type)), scalars.is_infinite(b, greater))
        return b.select(alone, greater, root)
    return elementwise(trace, "hypot", [x1, x2], body, common if common.kind == "float" else dtypes.float32)


@_named("logical_not")
def _(trace, x):
    """True where the element is 0 or False."""
    return elementwise(trace, "logical_not", [x], scalars.complement, dtypes.bool_)


@_named("isnan")
def _(trace, x):
    """Whether each element is NaN."""
    return _floats(trace, "isnan", x, scalars.is_nan)


@_named("isfinite")
def _(trace, x):
    """Whether each element is neither infinite nor NaN."""
    return _floats(trace, "isfinite", x, scalars.is_finite)


@_named("isinf")
def _(trace, x):
    """Whether each element is infinite."""
    return _floats(trace, "isinf", x, scalars.is_infinite)


@_named("where")
def _(trace, condition, x1, x2):
    """Elements of x1 where `condition` (bool) is true, of x2 elsewhere; all three are broadcast."""
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
    """x converted to dtype. Floats are truncated to integers and saturate; NaN becomes 0."""
    x = tensor_of(x, "astype")
    return trace.tensor(cast(trace, operand(trace, x), dtypes.dtype(dtype).element))
