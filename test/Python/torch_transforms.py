# RUN: %tessera_python %s
# REQUIRES: torch
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules that take derivatives by torch.func in their forward equal PyTorch's, as do their own gradients."""

import unittest

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vmap

import tessera as ts
from tessera.testing import difference


class Of(nn.Module):
    """A function of a small network and of the inputs."""

    def __init__(self, function, normalized=True):
        super().__init__()
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8) if normalized else nn.Identity(), nn.Tanh(), nn.Linear(8, 1)).eval()
        self.function = function

    def forward(self, *args):
        return self.function(self.model, *args)


def squares_of_each(model, x, y):
    """The squared length of the gradient of each example."""
    state = dict(model.named_parameters())
    loss = lambda state, x, y: ((functional_call(model, state, (x[None],)) - y) ** 2).sum()
    return sum((g.flatten(1) ** 2).sum(1) for g in vmap(grad(loss), (None, 0, 0))(state, x, y).values()).mean()


class Transforms(unittest.TestCase):
    def check(self, function, *inputs, normalized=True):
        module = Of(function, normalized)
        expected = module(*inputs)
        expected.backward()
        wanted = {name: p.grad.numpy() for name, p in module.named_parameters() if p.grad is not None}
        step = ts.jit(lambda m, *args: ts.value_and_grad(lambda m: m(*args))(m))
        mesh = ts.ProcessMesh([0, 1, 2], ["d"])
        for cut in (lambda x: x.numpy(), lambda x: ts.shard_tensor(x.numpy(), mesh, [ts.Shard(0)])):
            value, found = step(ts.from_torch(module, inputs), *map(cut, inputs))
            self.assertIsNone(difference(value.numpy(), expected.detach().numpy()))
            found = {name: np.asarray(t) for name, t in found.state_dict().items()}
            for name, gradient in wanted.items():
                self.assertIsNone(difference(found[name], gradient), name)

    def test_gradients_of_examples(self):
        self.check(squares_of_each, torch.randn(5, 6), torch.randn(5, 1))

    def test_jacobians(self):
        self.check(lambda m, x: vmap(jacrev(lambda x: m(x[None])[0, 0]))(x).pow(2).mean(), torch.randn(5, 6))
        self.check(lambda m, x: vmap(jacfwd(lambda x: m(x[None])[0, 0]))(x).pow(2).mean(), torch.randn(5, 6), normalized=False)
        self.check(lambda m, x: jvp(lambda x: m(x), (x,), (torch.cos(x),))[1].sum(), torch.randn(5, 6), normalized=False)

    def test_hessian(self):
        self.check(lambda m, x: vmap(hessian(lambda x: m(x[None])[0, 0]))(x).diagonal(dim1=1, dim2=2).sum(1).pow(2).mean(), torch.randn(5, 6), normalized=False)

    def test_of_parameters(self):
        """torch.export takes a wrapped tensor of this for a constant."""
        self.check(lambda m, x: grad(lambda x: (x @ m[0].weight.T).sin().sum())(x).pow(2).sum(), torch.randn(5, 6))

    def test_refused(self):
        def function(model, x):
            with torch.no_grad():
                scale = model(x).sum()
            return grad(lambda x: model(x).sum())(x).sum() * scale
        with self.assertRaisesRegex(ts.Error, rf"^{__file__}:\d+:\d+: error: 'Of' uses torch.no_grad\(\) beside derivatives of torch.func, .*use detach\(\)"):
            ts.from_torch(Of(function), (torch.randn(5, 6),))

    def test_not_traced(self):
        """PyTorch has no forward mode of batch_norm for tensors without values."""
        module = Of(lambda m, x: vmap(jacfwd(lambda x: m(x[None])[0, 0]))(x).pow(2).mean())
        with self.assertRaisesRegex(ts.Error, rf"^{__file__}:\d+:\d+: error: PyTorch cannot trace the derivatives that 'Of' takes by torch.func: .*jacrev"):
            ts.from_torch(module, (torch.randn(5, 6),))

    def test_location(self):
        """Operations have the line of the module."""
        program = ts.jit(lambda m, x: m(x))
        module = ts.from_torch(Of(lambda m, x: grad(lambda x: m(x).sum())(x).sum()), (torch.randn(6, 6),))
        found = program.explain(module, ts.shard_tensor(np.ones((6, 6), np.float32), ts.ProcessMesh([0, 1, 2], ["d"]), [ts.Shard(0)]))
        self.assertTrue(all(c["loc"].startswith(f"{__file__}:") for c in found["collectives"]), found["collectives"])
        self.assertTrue(found["collectives"])


if __name__ == "__main__":
    unittest.main()
