# RUN: %tessera_python %s
# REQUIRES: python
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of scalars: which operation a type gets, for signless values. Needs only Python."""

import unittest

from tessera import ir
from tessera.ir import Port, TensorType, scalars
from tessera.ir.types import signless

INTEGERS = ("i8", "i32", "i64", "ui8", "ui32", "ui64")
FLOATS = ("f16", "bf16", "f32", "f64")
BOTH = {**{name: lambda b, e, x, y, name=name: scalars.compare(b, name, e, x, y) for name in scalars.COMPARISONS},
        **{name: lambda b, e, x, y, name=name: scalars.apply(b, name, e, x, y) for name in ("add", "sub", "mul", "max", "min")},
        "negative": lambda b, e, x, _: scalars.negative(b, e, x), "absolute": lambda b, e, x, _: scalars.absolute(b, e, x),
        "sign": lambda b, e, x, _: scalars.sign(b, e, x), "power": lambda b, e, x, _: scalars.power(b, e, x, 5),
        "clamp": lambda b, e, x, y: scalars.clamp(b, e, x, y, y), "modulo": scalars.modulo}
WHOLE = {**{name: lambda b, e, x, y, name=name: scalars.divide(b, name, e, x, y, x, y) for name in ("div", "floordiv", "rem")},
         "least": lambda b, e, x, _: scalars.number(b, ir.build.constants.least(e), e, x.type),
         "greatest": lambda b, e, x, _: scalars.number(b, ir.build.constants.greatest(e), e, x.type)}


def text(element, given, body):
    """A program of two tensors of type `given`, whose elements are of `element`."""
    b = ir.Builder()
    with b.function("main", [Port(TensorType((4, 2), given))] * 2) as function:
        result = b.pointwise(function.body.arguments, (4, 2), lambda x, y: body(b, element, x, y))
        b.ret(function, [result], [Port(result.type)])
    return str(b.module)


class Scalars(unittest.TestCase):
    def test_signs(self):
        """Signless values give the same program as signed ones."""
        for element in (*INTEGERS, *FLOATS):
            for name, body in {**BOTH, **(WHOLE if element in INTEGERS else {})}.items():
                self.assertEqual(text(element, element, body), text(element, signless(element), body), f"{name} of {element}")

    def test_conversions(self):
        """The same with conversions of types, except for casts that only change the sign."""
        for source in (*INTEGERS, *FLOATS, "i1"):
            for target in (*INTEGERS, *FLOATS, "i1"):
                typed = text(source, source, lambda b, e, x, y: scalars.convert(b, x, source, target))
                plain = text(source, signless(source), lambda b, e, x, y: scalars.convert(b, x, source, target, signless(target)))
                if signless(source) != signless(target):
                    self.assertEqual(typed, plain, f"{source} to {target}")
                else:
                    self.assertNotIn("arith.", plain.replace("arith.bitcast", ""), f"{source} to {target}")

    def test_operations(self):
        """One name, by the type of the elements."""
        for name, element, operation in (("max", "f32", "arith.maximumf"), ("max", "i32", "arith.maxsi"), ("max", "ui32", "arith.maxui"),
                                         ("max", "i1", "arith.ori"), ("min", "i1", "arith.andi"), ("add", "ui8", "arith.addi"),
                                         ("exp", "f16", "math.exp"), ("exp", "i32", None), ("and", "f32", None)):
            self.assertEqual(scalars.operation(name, element), operation, f"{name} of {element}")

    def test_bounds(self):
        """Numbers beyond the signed range are written by their bits."""
        made = text("ui32", "i32", lambda b, e, x, y: b.apply("arith.addi", x, scalars.number(b, 2 ** 32 - 1, e, x.type)))
        self.assertIn("arith.constant -1 : i32", made)


if __name__ == "__main__":
    unittest.main()
