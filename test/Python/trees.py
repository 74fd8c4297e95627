# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Subclasses of dict go through jit: their other attributes stay, and no constructor is called."""

import collections
import unittest

import numpy as np

import tessera as ts


class Output(collections.OrderedDict):
    """Like those of the package transformers: entries are also attributes, and the constructor reads its first value."""

    def __init__(self, state):
        super().__init__()
        self.first = float(state[0])
        self["state"] = state

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        object.__setattr__(self, key, value)


class Dictionaries(unittest.TestCase):
    x = np.arange(3, dtype=np.float32)

    def test_constructor(self):
        given = Output(self.x + 1)
        result = ts.jit(lambda out: out)(given)
        self.assertIs(type(result), Output)
        self.assertEqual(result.first, 1)
        np.testing.assert_array_equal(result["state"].numpy(), self.x + 1)
        self.assertIs(result.state, result["state"])

    def test_default(self):
        result = ts.jit(lambda a: collections.defaultdict(list, a=a * 2))(self.x)
        self.assertEqual(result["b"], [])
        np.testing.assert_array_equal(result["a"].numpy(), self.x * 2)

    def test_order(self):
        result = ts.jit(lambda a: collections.OrderedDict([("z", a), ("b", a + 1)]))(self.x)
        self.assertEqual(list(result), ["z", "b"])


if __name__ == "__main__":
    unittest.main()
