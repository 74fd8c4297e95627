# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A reader of a known structure finds the leaves that tree.values finds, and refuses every other structure."""

import copy
import unittest

import numpy as np

import tessera as ts
from tessera import nn, tree
from tessera.arguments import is_value
from tessera.reader import Reader


def array(value=0.0):
    return ts.asarray(np.full(2, value, np.float32))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.scale, self.layers = nn.Linear(2, 2), 0.5, [nn.Linear(2, 2), nn.LayerNorm(2)]
        self.register_buffer("count", array())
        self.last = nn.Linear(2, 2)


def changed(change):
    made = Net()
    change(made)
    return made


def attribute(name, value):
    return changed(lambda m: object.__setattr__(m, name, value))


def values():
    weight = array()
    yield "module", Net()
    yield "setting", attribute("scale", 0.25)
    yield "type of a setting", attribute("scale", True)
    yield "attribute more", attribute("more", 1)
    yield "parameter more", changed(lambda m: m.layers.append(nn.Linear(2, 2)))
    yield "no bias", changed(lambda m: setattr(m, "last", nn.Linear(2, 2, bias=False)))
    yield "shared module", changed(lambda m: setattr(m, "last", m.first))
    yield "shared parameter", changed(lambda m: setattr(m.last, "weight", m.first.weight))
    yield "buffers", attribute("_buffers", ())
    yield "dict", {"a": array(), "b": [array(), 1.0]}
    yield "order", {"b": [array(), 1.0], "a": array()}
    yield "number", {"a": array(), "b": [array(), 1]}
    yield "array for a number", {"a": array(), "b": [array(), array()]}
    yield "NumPy", {"a": np.ones(2, np.float32), "b": [array(), 1.0]}
    yield "tuple", {"a": array(), "b": (array(), 1.0)}
    yield "longer", {"a": array(), "b": [array(), 1.0, 1.0]}
    yield "parameters", tree.ParameterDict({"a": array(), "b": array()})
    yield "frozen", tree.ParameterDict({"a": array(), "b": array()}, ["a"])
    yield "twice", [weight, weight]
    yield "once", [array(), array()]
    yield "empty", []


class Readers(unittest.TestCase):
    def test_pairs(self):
        for name, known in values():
            leaves, node = tree.values(known, is_value)
            reader = Reader.of(known, node, is_value)
            self.assertEqual(reader is None, name.startswith("shared"), name)
            if reader is None:
                continue
            for other, value in values():
                expected, structure = tree.values(value, is_value)
                found = reader.read(value)
                with self.subTest(known=name, read=other):
                    self.assertEqual(found is not None, name == other or {name, other} == {"twice", "once"})
                    if found is not None:
                        self.assertEqual(structure, node)
                        self.assertEqual(list(map(id, found)), list(map(id, expected)))

    def test_calls(self):
        """A module that changes between calls is recorded again."""
        net, x = Net(), array(1)

        def scaled(m, x):
            return m.last(x) * m.scale if len(m.layers) < 3 else x
        step = ts.jit(scaled)
        for change in (lambda: None, lambda: setattr(net, "scale", 2.0), lambda: setattr(net, "last", net.first),
                       lambda: setattr(net, "last", copy.deepcopy(net.first)), lambda: net.layers.append(nn.Linear(2, 2))):
            change()
            for _ in range(3):
                expected = x.numpy() @ net.last.weight.numpy() + net.last.bias.numpy()
                np.testing.assert_allclose(step(net, x).numpy(), expected * net.scale if len(net.layers) < 3 else x.numpy(), rtol=1e-5)


if __name__ == "__main__":
    unittest.main()
