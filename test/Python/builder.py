# RUN: %tessera_python %s
# REQUIRES: python
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The builder of programs: printing, deduplication, folding through ops. Needs only Python."""

import unittest

from tessera import ir
from tessera.ir import Port, TensorType
from tessera.ir.shapes import groups


def program(arguments, body):
    """The text of a function of tensors of f32; `body` gets the builder and the arguments and returns the results."""
    b = ir.Builder()
    with b.function("main", [Port(TensorType(shape, "f32")) for shape in arguments]) as function:
        values = body(b, *function.body.arguments)
        b.ret(function, values, [Port(v.type) for v in values])
    ir.simplify(function)
    return str(b.module)


def add(b):
    return lambda x, y: b.apply("arith.addf", x, y)


class Printing(unittest.TestCase):
    def test_whole_tensors_are_one_operation(self):
        text = program([(4, 8), (4, 8)], lambda b, x, y: [b.pointwise([x, y], (4, 8), add(b))])
        self.assertIn("%2 = arith.addf %0, %1 : tensor<4x8xf32>", text)

    def test_broadcast_operands_are_a_nest(self):
        text = program([(4, 8), (4, 1)], lambda b, x, y: [b.pointwise([x, y], (4, 8), add(b))])
        self.assertIn("affine_map<(d0, d1) -> (d0, 0)>", text)
        self.assertIn('iterator_types = ["parallel", "parallel"]', text)

    def test_locations(self):
        b = ir.Builder()
        with b.function("main", [Port(TensorType((2,), "f32"))]) as function, b.at(ir.Location("a.py", 3, 5)):
            x, = function.body.arguments
            b.ret(function, [b.apply("math.exp", x)], [Port(x.type)])
        self.assertIn("math.exp %0 : tensor<2xf32> loc(#loc0)", str(b.module))
        self.assertIn('#loc0 = loc("a.py":3:5)', str(b.module))

    def test_infinities_are_bits(self):
        text = program([(2,)], lambda b, x: [b.constant(float("-inf"), x.type)])
        self.assertIn("arith.constant dense<0xFF800000> : tensor<2xf32>", text)


class Simplification(unittest.TestCase):
    def test_equal_operations_are_made_once(self):
        text = program([(4, 8)], lambda b, x: [b.apply("math.exp", x), b.apply("math.exp", x)])
        self.assertEqual(text.count("math.exp"), 1)

    def test_equal_nests_are_made_once(self):
        def body(b, x):
            return [b.reduce(x, [1], add(b), 0), b.reduce(x, [1], add(b), 0)]
        self.assertEqual(program([(4, 8)], body).count("linalg.generic"), 1)

    def test_unused_operations_are_dropped(self):
        text = program([(4, 8)], lambda b, x: (b.apply("math.exp", x), [x])[1])
        self.assertNotIn("math.exp", text)

    def test_numbers_are_folded_into_nests(self):
        text = program([(4, 8)], lambda b, x: [b.pointwise([x, b.constant(2.0, TensorType((), "f32"))], (4, 8), add(b))])
        self.assertIn("arith.constant 2.0 : f32", text)

    def test_broadcasts_are_read_through(self):
        def body(b, x, y):
            spread = b.broadcast(b.reshape(y, (4, 1)), (4, 8), (0, 1))
            return [b.pointwise([x, spread], (4, 8), add(b))]
        text = program([(4, 8), (4,)], body)
        self.assertEqual(text.count("linalg.generic"), 1)
        self.assertNotIn("expand_shape", text)

    def test_sums_over_one_element_are_reshapes(self):
        text = program([(4, 1)], lambda b, x: [b.reduce(x, [1], add(b), 0)])
        self.assertIn("tensor.collapse_shape", text)
        self.assertNotIn("linalg.generic", text)

    def test_a_transposed_product_is_a_product(self):
        def body(b, x, y):
            return [b.transpose(b.contract(x, y, (0, 2), (2, 1), (0, 1), (4, 5, 8), "f32"), (1, 0))]
        text = program([(4, 8), (8, 5)], body)
        self.assertNotIn("linalg.transpose", text)
        self.assertIn("affine_map<(d0, d1, d2) -> (d1, d0)>", text)


class Groups(unittest.TestCase):
    def test_table(self):
        for source, target, expected in (
                ((8, 128, 512), (8, 128, 8, 64), [([0], [0]), ([1], [1]), ([2], [2, 3])]),
                ((6, 4), (8, 3), [([0, 1], [0, 1])]),
                ((8, 128), (8, 128, 1), [([0], [0]), ([1], [1, 2])]),
                ((1, 8), (8,), [([0, 1], [0])]),
                ((0, 4), (4, 0), None)):
            self.assertEqual(groups(source, target), expected, (source, target))


if __name__ == "__main__":
    unittest.main()
