# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults of the package are raised as InternalError with the user's line; exceptions of the user's function are unchanged."""

import unittest
import warnings
from unittest import mock

import numpy as np

import tessera as ts
from tessera import optim, source

x = np.ones(3, np.float32)


def line(function, offset=1):
    return rf"faults.py:{function.__code__.co_firstlineno + offset}:\d+: error: internal error: "


def faulty(statement):
    """A function of the package with a fault."""
    space = {}
    exec(compile(f"def faulty(*_, **__):\n  {statement}", source._PACKAGE + "faulty.py", "exec"), space)
    return space["faulty"]


class Faults(unittest.TestCase):
    def test_inside_of_jit(self):
        def f(x):
            return ts.exp(x)
        for statement in ("{}['f8']", "assert False, 'odd'", "[][0]", "None.q", "unknown", "1 // 0", "len(3)", "raise AssertionError('odd')"):
            with mock.patch("tessera.ops.elementwise.elementwise", faulty(statement)):
                for call in (lambda: ts.jit(f)(x), lambda: f(x), lambda: ts.explain(f, x)):
                    with self.assertRaisesRegex(ts.InternalError, r"\(tessera/faulty.py:2\); this is a bug in Tessera: please report it") as caught:
                        call()
                    self.assertIsNotNone(caught.exception.__cause__)
                    self.assertRegex(str(caught.exception), line(f))

    def test_elsewhere(self):
        with mock.patch("tessera.optim.tree.flatten", faulty("[][0]")):
            with self.assertRaisesRegex(ts.InternalError, r"faults.py:\d+:\d+: error: internal error: IndexError: list index out of range"):
                optim.Adam(0.1).init({"w": x})

    def test_errors_of_the_user_pass(self):
        def f(x, key="a"):
            return x * {"b": 2}[key]
        with self.assertRaises(KeyError):
            ts.jit(f)(x)

        def g(x):
            assert x.shape == (4,), "mine"
            return x
        with self.assertRaisesRegex(AssertionError, "mine"):
            ts.jit(g)(x)
        with self.assertRaises(KeyError):
            ts.grad(lambda x: f(x).sum())(x)

    def test_calls_with_other_arguments_pass(self):
        with self.assertRaisesRegex(TypeError, "missing 1 required positional argument"):
            ts.jit(lambda x, y: x + y)(x)
        with self.assertRaisesRegex(TypeError, "positional argument"):
            ts.shard_tensor(x)

    def test_values_of_another_kind_are_no_faults(self):
        """An argument that an operation cannot take is named."""
        y = np.ones((2, 3), np.float32)
        for message, call in (("extents 2.5 of 'tile' are not an integer", lambda: ts.tile(y, 2.5)), ("axes None of 'permute_dims' are not a list", lambda: ts.permute_dims(y, None)),
                              ("offset None of 'diagonal' is not an integer", lambda: ts.diagonal(y, None)), ("k 'a' of 'tril' is not an integer", lambda: ts.tril(y, "a")),
                              ("subscripts 3 of 'einsum' are not a string", lambda: ts.ops.einsum(3, y)), ("correction None of 'var' is not a number", lambda: ts.ops.var(y, None, None)),
                              ("indices 3 of 'take_at' are not a list", lambda: ts.ops.take_at(y, 3)), ("indices 3 of 'put_at' are not a list", lambda: ts.ops.put_at(y, 3, y)),
                              ("num_classes 2.5 of 'one_hot' is not an integer", lambda: ts.ops.one_hot(np.ones(3, np.int32), 2.5))):
            with self.assertRaisesRegex(ts.Error, message) as caught:
                call()
            self.assertNotIsInstance(caught.exception, ts.InternalError)

    def test_errors_on_purpose_pass(self):
        with self.assertRaises(ts.ShapeError):
            ts.jit(lambda x: x + np.ones(4, np.float32))(x)
        with self.assertRaises(NotImplementedError):
            ts.jit(lambda x: ts.nn.Module()(x))(x)
        with self.assertRaisesRegex(TypeError, "a tensor of rank 0 has no length"):
            ts.jit(lambda x: len(x.sum()))(x)


class Warns(unittest.TestCase):
    def test_numbers_that_make_programs(self):
        scaled = ts.jit(lambda x, step: x * step)
        with self.assertWarnsRegex(ts.TesseraWarning, r"is recorded for the 8th time, for another value of 'step' \(7 after 6\)") as caught:
            for i in range(10):
                np.testing.assert_array_equal(scaled(x, i).numpy(), x * i)
        self.assertEqual((caught.filename, len(caught.warnings)), (__file__, 1))

    def test_shapes_that_make_programs_do_not(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            total = ts.jit(lambda x, n: x.sum() * n)
            for i in range(1, 10):
                self.assertEqual(total(np.ones(i, np.float32), i).item(), i * i)
            for i in range(9):
                total(x, float(i))


if __name__ == "__main__":
    unittest.main()
