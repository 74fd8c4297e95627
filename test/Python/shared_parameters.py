# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A parameter that several places of a module hold is one: one leaf, one gradient, one update, the same value everywhere afterwards."""

import unittest

import numpy as np

import tessera as ts
from tessera import nn, optim, tree
from tessera.testing import difference

R = np.random.default_rng(0)
IDS, TARGETS = (R.integers(0, 16, (8,)) for _ in range(2))


class Language(nn.Module):
    """The last product is by the table of the first layer; one layer is there twice, one norm has two names."""

    def __init__(self, shares=True):
        super().__init__()
        nn.init.seed(0)
        self.embedding = nn.Embedding(16, 8)
        block = nn.Linear(8, 8)
        self.body = nn.Sequential(block, ts.tanh, block)
        self.norm = nn.BatchNorm(8)
        self.again = self.norm
        if shares:
            self.table = self.embedding.weight

    def forward(self, ids):
        x = self.again(self.norm(self.embedding(ids)))
        return self.body(x) @ (self.table if hasattr(self, "table") else self.embedding.weight).T


def loss(model, ids, targets):
    return nn.cross_entropy(model(ids), targets)


def trained(model, steps=3):
    optimizer = optim.AdamW(0.1)
    state, losses = optimizer.init(model), []

    @ts.jit(donate=True)
    def step(model, state, ids, targets):
        value, gradients = ts.value_and_grad(loss)(model, ids, targets)
        return *optimizer.update(model, gradients, state), value
    for _ in range(steps):
        model, state, value = step(model, state, IDS, TARGETS)
        losses.append(np.asarray(value))
    return model, losses


class SharedParameters(unittest.TestCase):
    def test_one_leaf(self):
        leaves = {leaf.path: leaf.shared for leaf in tree.flatten(Language())[0]}
        self.assertEqual(leaves["embedding.weight"], ("table",))
        self.assertEqual(leaves["body.layers.0.bias"], ("body.layers.2.bias",))
        self.assertEqual(leaves["norm.running_var"], ("again.running_var",))
        self.assertEqual(len(leaves), 7)

    def test_trained_as_one(self):
        shares, losses = trained(Language())
        for mine, theirs in zip(losses, trained(Language(shares=False))[1]):
            self.assertIsNone(difference(mine, theirs, 8))
        self.assertIs(shares.table, shares.embedding.weight)
        self.assertIs(shares.body[0], shares.body[2])
        self.assertIs(shares.norm, shares.again)

    def test_gradient_is_the_sum(self):
        class Two(nn.Module):
            def __init__(self, a, b):
                super().__init__()
                self.a, self.b = a, b

            def forward(self, x):
                return (ts.tanh(x @ self.a) @ self.b).sum()
        w, x = ts.asarray(R.standard_normal((4, 4)).astype("float32")), R.standard_normal((2, 4)).astype("float32")
        apart = ts.grad(lambda model, x: model(x))(Two(w, ts.asarray(w.numpy())), x)
        one = ts.grad(lambda model, x: model(x))(Two(w, w), x)
        self.assertIs(one.a, one.b)
        self.assertIsNone(difference(np.asarray(one.a), np.asarray(apart.a) + np.asarray(apart.b), 4))

    def test_buffers_of_two_modules(self):
        """Modules whose buffers begin with one tensor update it separately."""
        first, second = nn.BatchNorm(4), nn.BatchNorm(4)
        second.running_mean = first.running_mean
        model = nn.Sequential(first, lambda x: x + 1, second)
        model(R.standard_normal((8, 4)).astype("float32"))
        self.assertIsNot(first.running_mean, second.running_mean)
        self.assertFalse(np.array_equal(first.running_mean.numpy(), second.running_mean.numpy()))

    def test_arguments_are_apart(self):
        """A model and its average share initial tensors, but are two arguments."""
        model = nn.Linear(4, 4)
        average = tree.rebuild(model, [leaf.value for leaf in tree.flatten(model)[0]])
        gradient = ts.grad(lambda model, average, x: ((model(x) - average(x) * 2) ** 2).sum())(model, average, np.ones((2, 4), "float32"))
        expected = ts.grad(lambda model, x: ((model(x) - ts.stop_gradient(model(x)) * 2) ** 2).sum())(model, np.ones((2, 4), "float32"))
        np.testing.assert_array_equal(gradient.weight.numpy(), expected.weight.numpy())

    def test_state(self):
        model = Language()
        state = model.state_dict()
        np.testing.assert_array_equal(state["table"], state["embedding.weight"])
        state = {name: value + 1 for name, value in state.items() if name != "table"}
        model.load_state_dict(state)
        self.assertIs(model.table, model.embedding.weight)
        np.testing.assert_array_equal(model.table.numpy(), state["embedding.weight"])


if __name__ == "__main__":
    unittest.main()
