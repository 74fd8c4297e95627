# RUN: %tessera_python %s
# REQUIRES: tessera-core, torch
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Selections by masks, whose sizes a program does not know, as computations with all elements."""

import unittest

import torch
from torch import nn
from torch.nn import functional as F
from torch_case import TorchCase

import tessera as ts


def written(x, mask, value):
    x = x.clone()
    x[mask] = value
    return x


class Selections(TorchCase):
    def setUp(self):
        super().setUp()
        self.x, self.y = torch.randn(4, 5), torch.randn(4, 5)

    def test_written(self):
        def elementwise(x, y):
            mask = y > 0
            return written(x, mask, (x[mask] - y[mask]) * 2 + y[mask].exp())

        def added(x, y):
            x = x.clone()
            x[y > 0] += 1
            return x
        self.check(elementwise, self.x, self.y)
        self.check(added, self.x, self.y)
        self.check(lambda x, y: written(x, y > 0, y[y > 0]), self.x, self.y)  # two equal masks
        self.check(lambda x, y: written(x, y > 0, 3.0), self.x, self.y)
        rows = self.y[:, 0] > 0
        self.check(lambda x, y: written(x, y[:, 0] > 0, y[y[:, 0] > 0] * torch.arange(5.0)), self.x, self.y)
        self.check(lambda x, y: written(x, rows, y[0]), self.x, self.y)

    def test_reduced(self):
        self.check(lambda x, y: (x[y > 0].sum(), x[y > 0].mean(), x[y > 0].max(), x[y[:, 0] > 0].amin()), self.x, self.y)
        self.check(lambda x, y: (x[y[:, 0] > 0].sum(0), x[y[:, 0] > 0].mean(0), x[y[:, 0] > 0].mean((0, 1))), self.x, self.y)

    def test_derivatives_of_functions_with_poles(self):
        """Elements that the mask leaves out have the derivative 0, also where a function has none there."""
        x = torch.tensor([[0.0, -1.0, 2.0], [0.5, 0.0, 3.0]])
        self.check(lambda x: (torch.log(x[x > 0]).sum(), (1 / x[x > 0]).sum(), torch.sqrt(x[x > 0]).mean()), x)
        self.check(lambda x: torch.sqrt(x[x > 0] - x[x > 0] * 0.5).sum(), x)

    def test_derivatives_of_what_is_beside(self):
        """Of a scalar that functions of selected elements have, where those that are left out are in no domain."""
        counts, w = torch.tensor([[0, 2, 0], [3, 0, 5]]), torch.tensor(1.5)
        x = torch.tensor([[-1.0, 3.0, 0.0], [2.0, 0.0, 4.0]])
        self.check(lambda w: (w / counts[counts > 0]).sum(), w)
        self.check(lambda x, w: (torch.acosh(x[x > 1] * w).sum(), torch.sqrt(x[x > 0] - w).nan_to_num(0.0).sum(), torch.pow(x[x > 1], w).mean()), x, w)
        self.check(lambda x: x.half()[x > 1].mean().float(), x * 10000)

    def test_pairs(self):
        """Broadcasting pairs selected elements with each other: (n,) and (n, 1)."""
        class Net(nn.Module):
            def forward(self, x, y):
                mask = x > 0
                return (x[mask] - y[mask][:, None]).sum()
        with self.assertRaises(ts.Error):
            ts.from_torch(Net(), (self.x, self.y))

    def test_losses(self):
        labels, mask = torch.tensor([1, 4, 0, 2]), torch.tensor([True, False, True, True])
        self.check(lambda x: F.cross_entropy(x[mask], labels[mask]), self.x)

        def of_pairs(x, y):
            chosen = y > 0
            return F.binary_cross_entropy_with_logits(x[chosen], torch.sigmoid(y)[chosen]), F.mse_loss(x[chosen], y[chosen])
        self.check(of_pairs, self.x, self.y)

    def test_products(self):
        labels, mask = torch.tensor([1, 4, 0, 2]), torch.tensor([True, False, True, True])
        self.check(lambda x, w: F.cross_entropy(x[mask] @ w, labels[mask], reduction="sum"), self.x, torch.randn(5, 6))

    def test_refused(self):
        class Net(nn.Module):
            def __init__(self, function):
                super().__init__()
                self.function = function

            def forward(self, x, y):
                return self.function(x, y)
        for function in (lambda x, y: x[y > 0], lambda x, y: x[y > 0].sort()[0].sum(), lambda x, y: (x[y > 0] + x[x > 0]).sum(),
                         lambda x, y: torch.cat([x[y > 0], x[y > 0]]).sum()):
            with self.assertRaises(ts.Error):
                ts.from_torch(Net(function), (self.x, self.y))


if __name__ == "__main__":
    unittest.main()
