# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of many kinds in two stages have the losses and parameters of one: stages that call a layer twice, several values between stages,
methods as layers, loops in stages, state in stages, losses that call the pipeline twice."""

import functools
import unittest

import numpy as np

import tessera as ts
from tessera import nn, optim
from tessera.testing import difference

WIDTH = 8
R = np.random.default_rng(0)
X, Y = (R.standard_normal((8, WIDTH)).astype(np.float32) for _ in range(2))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.body = nn.LayerNorm(WIDTH), nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.gelu, nn.Linear(WIDTH, WIDTH))

    def forward(self, x):
        return x + self.body(self.norm(x))


class Twice(nn.Module):
    """One module, called two times."""

    def __init__(self):
        super().__init__()
        self.inner = Residual()

    def forward(self, x):
        return self.inner(self.inner(x))


class Pair(nn.Module):
    """A layer with two values, as in networks with a skip around several layers."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, pair):
        return {"x": self.linear(pair["x"]) + pair["skip"], "skip": pair["x"]}


class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return ts.fori_loop(2, lambda i, x: ts.tanh(self.linear(x)), x)


class Code(nn.Module):
    """An encoder whose transpose is the decoder."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return self.linear(x)

    def decoded(self, x):
        return x @ self.linear.weight.T


def doubled(x):
    return ts.tanh(x) * 2


def coded():
    code = Code()
    return [code, doubled, nn.Linear(WIDTH, WIDTH), code.decoded]


def loss(pipe, x, y):
    return nn.mse_loss(pipe(x), y)


def trained(layers, stages, of_batch):
    nn.init.seed(0)
    pipe = ts.pipeline(layers(), stages, 2)
    optimizer = optim.SGD(0.1)
    state = optimizer.init(pipe)

    @ts.jit
    def step(pipe, state, x, y):
        value, gradients = pipe.value_and_grad(of_batch)(pipe, x, y)
        return *optimizer.update(pipe, gradients, state), value
    pipe, state, value = step(pipe, state, X, Y)
    return [np.asarray(value), *map(np.asarray, pipe.parameters()), *[np.asarray(buffer) for _, buffer in pipe.named_buffers()]]


class Models(unittest.TestCase):
    def check(self, layers, of_batch=loss):
        one, two = trained(layers, 1, of_batch), trained(layers, 2, of_batch)
        self.assertEqual(len(one), len(two))
        for mine, other in zip(two, one):
            self.assertIsNone(difference(mine, other, 16))

    def test_module_called_twice(self):
        self.check(lambda: [Twice(), Twice()])

    def test_function_of_both_stages(self):
        self.check(lambda: [nn.Linear(WIDTH, WIDTH), ts.jit(doubled), nn.Linear(WIDTH, WIDTH), ts.checkpoint(doubled)])

    def test_several_values_between_stages(self):
        self.check(lambda: [lambda x: {"x": x, "skip": x * 0.5}, Pair(), Pair(), lambda pair: pair["x"]])

    def test_method_as_layer(self):
        self.check(coded)
        self.assertEqual(len(ts.pipeline(coded(), 2, 2).parameters()), 3)

    def test_loops(self):
        self.check(lambda: [Loop(), Loop()])

    def test_state(self):
        self.check(lambda: [nn.Linear(WIDTH, WIDTH), nn.Dropout(0.5), nn.Linear(WIDTH, WIDTH), nn.Dropout(0.25, seed=1)])

    def test_loss_calls_the_pipeline_twice(self):
        self.check(lambda: [Residual(), Residual()], lambda pipe, x, y: nn.mse_loss(pipe(x), y) + nn.mse_loss(pipe(-x), y))

    def test_stage_without_parameters(self):
        self.check(lambda: [ts.tanh, doubled, nn.Linear(WIDTH, WIDTH)])

    def test_parameters_from_outside(self):
        inner = nn.Linear(WIDTH, WIDTH)
        for function, name in ((lambda x: inner(x), "inner"), (functools.partial(lambda layer, x: layer(x), inner), "argument 0")):
            with self.assertRaisesRegex(ts.ArgumentError, rf"layer 1 of a pipeline is a function that uses the parameters of '{name}' \(Linear\)"):
                ts.pipeline([nn.Linear(WIDTH, WIDTH), function], 2, 2)

    def test_nested_layers(self):
        block = [nn.Sequential(nn.Linear(WIDTH, WIDTH), ts.tanh) for _ in range(2)]
        with self.assertRaisesRegex(ts.ArgumentError, "a nested nn.Sequential counts as one: give its layers, 4 in total"):
            ts.pipeline(block, 4, 2)


if __name__ == "__main__":
    unittest.main()
