# RUN: %tessera_python %s
# REQUIRES: torch
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules of PyTorch: forward and gradients equal PyTorch's, on one device and cut."""

import copy
import pickle
import unittest
from unittest import mock

import numpy as np
import torch
from torch import nn

import tessera as ts
from tessera import ProcessMesh, Replicate, Shard, optim, shard_tensor
from tessera.testing import difference

torch.manual_seed(0)


class Transformer(nn.Module):
    def __init__(self, symbols=11, features=8, heads=2):
        super().__init__()
        self.token, self.heads = nn.Embedding(symbols, features), heads
        self.norm, self.qkv, self.out = nn.LayerNorm(features), nn.Linear(features, 3 * features), nn.Linear(features, features)
        self.up, self.down, self.head = nn.Linear(features, 16), nn.Linear(16, features), nn.Linear(features, symbols)

    def forward(self, tokens):
        x = self.token(tokens)
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        split = lambda t: t.view(*t.shape[:2], self.heads, -1).transpose(1, 2)
        a = nn.functional.scaled_dot_product_attention(split(q), split(k), split(v), is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(x.shape))
        x = x + self.down(nn.functional.gelu(self.up(x)))
        return self.head(x).log_softmax(-1)


def convnet():
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, stride=2), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3, groups=2, padding=1),
                         nn.SiLU(), nn.GroupNorm(2, 6), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.5), nn.Linear(6, 5)).eval()


class Imports(unittest.TestCase):
    mesh = ProcessMesh(np.arange(4).reshape(2, 2), ["dp", "tp"])

    def check(self, module, x):
        expected = module(x)
        weight = torch.randn_like(expected)
        (expected * weight).sum().backward()
        wanted = {name: p.grad.numpy() for name, p in module.named_parameters()}
        imported = ts.from_torch(module, (x,))
        self.assertTrue(np.shares_memory(next(iter(imported.weights.values())).numpy(), next(module.parameters()).detach().numpy()))

        @ts.jit
        def both(imported, x):
            loss = lambda m, x: (lambda y: ((y * weight.numpy()).sum(), y))(m(x))
            (_, y), gradients = ts.value_and_grad(loss, has_aux=True)(imported, x)
            return y, gradients
        cut = optim.shard_parameters(imported, self.mesh, lambda name, p: [Replicate(), Shard(0)] if p.ndim == 2 else None)
        for model, data in ((imported, x.numpy()), (cut, shard_tensor(x.numpy(), self.mesh, [Shard(0)]))):
            y, gradients = both(model, data)
            self.assertIsNone(difference(y.numpy(), expected.detach().numpy()))
            for name, g in wanted.items():
                self.assertIsNone(difference(gradients.weights[name].numpy(), g), name)

    def test_perceptron(self):
        self.check(nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3), nn.Tanh()), torch.randn(6, 5))

    def test_transformer(self):
        self.check(Transformer(), torch.randint(0, 11, (4, 6)))

    def test_convnet(self):
        self.check(convnet(), torch.randn(4, 3, 16, 16))

    def test_one_program(self):
        """A call outside jit is one program, not one per operation; buffers change as in jit."""
        x = torch.randn(4, 6)
        module = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Tanh())
        model = ts.from_torch(copy.deepcopy(module), (x,))
        with mock.patch("tessera.ops.base.run_eagerly", side_effect=AssertionError("an operation of its own")):
            for _ in range(2):
                self.assertIsNone(difference(model(x.numpy()).numpy(), module(x).detach().numpy()))
        self.assertEqual(len(model._form.programs), 1)
        self.assertIsNone(difference(model.state_dict()["1.running_mean"], module[1].running_mean.numpy()))

    def test_copies(self):
        """A copy has separate values, and shares the graph."""
        x = torch.randn(4, 6)
        model = ts.from_torch(nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6)), (x,))
        before = model.state_dict()["1.running_mean"].copy()
        copied = copy.deepcopy(model)
        copied(x.numpy())
        np.testing.assert_array_equal(model.state_dict()["1.running_mean"], before)
        self.assertGreater(np.abs(copied.state_dict()["1.running_mean"] - before).max(), 0)
        with self.assertRaisesRegex(ts.ArgumentError, r"torch_import.py:\d+:\d+: error: 'Sequential' cannot be pickled: .* save its state_dict"):
            pickle.dumps(model)

    def test_example_inputs(self):
        """One tensor may stand for several inputs, also a parameter; inputs may be trees, whose keys are in any order."""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.ones(3))

            def forward(self, x, pair, *, scale):
                return x * self.w - pair["a"] * 2 + pair["b"][0] * scale
        net, x = Net(), torch.ones(3)
        model = ts.from_torch(net, (net.w, {"a": x, "b": [x]}), {"scale": x})
        x, a, b, scale = np.float32([[1, 2, 3], [10, 20, 30], [100, 200, 300], [1, 2, 1]])
        for pair in {"a": a, "b": [b]}, {"b": [b], "a": a}:
            np.testing.assert_array_equal(model(x, pair, scale=scale).numpy(), x - 2 * a + b * scale)
        with self.assertRaisesRegex(ts.ArgumentError, "was exported with inputs of another structure"):
            model(x, {"a": a, "c": [b]}, scale=scale)

    def test_exported(self):
        module = nn.Linear(3, 2)
        program = torch.export.export(module, (torch.zeros(4, 3),))
        x = np.ones((4, 3), np.float32)
        np.testing.assert_allclose(ts.from_torch(program)(x).numpy(), module(torch.from_numpy(x)).detach().numpy(), rtol=1e-5)

    def test_refused(self):
        class Odd(nn.Module):
            def forward(self, x):
                return torch.special.bessel_j0(x) + torch.nextafter(x, x)
        with self.assertRaisesRegex(ts.Error, r"torch_import.py:\d+:1: error: operation 'aten.\w+.default' of 'Odd' is not supported; also 'aten."):
            ts.from_torch(Odd(), (torch.ones(3),))
        linear = nn.Linear(3, 2)
        linear.weight = nn.Parameter(linear.weight.to(torch.float8_e4m3fn), requires_grad=False)
        with self.assertRaisesRegex(ts.DTypeError, r"torch_import.py:\d+:\d+: error: parameter 'weight' of 'Linear' is of float8_e4m3fn; .* convert it"):
            ts.from_torch(linear, (torch.ones(4, 3, dtype=torch.float8_e4m3fn),))

        class Narrow(nn.Module):
            def forward(self, x):
                return x.to(torch.float8_e5m2).float()
        with self.assertRaisesRegex(ts.DTypeError, r"torch_import.py:\d+:1: error: the result of operation 'aten._to_copy.*' of 'Narrow' is of f"):
            ts.from_torch(Narrow(), (torch.ones(3),))
        with self.assertRaisesRegex(ts.ArgumentError, "takes example inputs"):
            ts.from_torch(nn.Linear(3, 2))
        linear = ts.from_torch(nn.Linear(3, 2), torch.zeros(4, 3))
        with self.assertRaisesRegex(ts.ShapeError, r"torch_import.py:\d+:\d+: error: input 0 of 'Linear' has shape \(5, 3\); it was exported for \(4, 3\)"):
            linear(np.zeros((5, 3), np.float32))
        with self.assertRaisesRegex(ts.DTypeError, "input 0 of 'Linear' is of float64; it was exported for float32"):
            linear(np.zeros((4, 3)))
        with self.assertRaisesRegex(ts.Error, "torch.export refuses 'Linear': .*reduction dim"):
            ts.from_torch(nn.Linear(3, 2), (np.zeros((4, 5), np.float32),))
        with self.assertRaisesRegex(ts.ArgumentError, "not int"):
            ts.from_torch(3)
        with self.assertRaisesRegex(ts.ArgumentError, "was exported with 1 inputs, not 2"):
            ts.from_torch(nn.Linear(3, 2), (torch.zeros(4, 3),))(torch.zeros(4, 3), 1)

    def test_functions_of_pytorch(self):
        """Functions refuse tensors of tessera; operators with one on the right are tessera's, and conversions work."""
        for function, message in ((lambda x: torch.sin(x), "'torch.sin' takes PyTorch's tensors, not those of tessera; use ts.sin"),
                                  (lambda x: nn.functional.relu(x), "use ts.nn.relu"), (lambda x: torch.linalg.det(x), "compute on tensors")):
            with self.assertRaisesRegex(ts.DTypeError, r"torch_import.py:\d+:\d+: error: .*" + message):
                ts.jit(function)(np.ones((3, 3), np.float32))
        x, y = torch.rand(3), ts.asarray(np.float32([1, 2, 3]))
        for found in (ts.jit(lambda y: y * x)(y), ts.jit(lambda y: x * y)(y)):
            self.assertIsNone(difference(found.numpy(), x.numpy() * y.numpy()))
        self.assertTrue(torch.equal(torch.as_tensor(y), torch.from_dlpack(y)))


if __name__ == "__main__":
    unittest.main()
