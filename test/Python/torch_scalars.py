# RUN: %tessera_python %s
# REQUIRES: torch
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers that a module makes of tensors, as by item(): values and gradients equal PyTorch's."""

import math
import unittest

import numpy as np
import torch
from torch import nn

import tessera as ts
from tessera.testing import difference

torch.manual_seed(0)
FLOATS = {
    "product": lambda w, x: w * x * x.sum().item(), "of a parameter": lambda w, x: w * (w * x).sum().item(),
    "arithmetic": lambda w, x: w * x / (2 + abs(x.max().item()) * 3 - 1), "clamp": lambda w, x: torch.clamp(w * x, max=x.mean().item()),
    "full": lambda w, x: w + torch.full((5,), x.max().item()) + torch.full_like(w, x.min().item()),
    "floor": lambda w, x: w * math.floor(x.max().item() * 10), "power": lambda w, x: w.abs() ** x.abs().max().item(),
    "scale": lambda w, x: torch.add(w, w * x, alpha=x.max().item()), "fill": lambda w, x: (w * x).masked_fill(x > 0, x.max().item()),
    "where": lambda w, x: torch.where(x > 0, w * x, x.min().item())}


def checked(w, n):
    torch._check(n.max().item() <= 7)
    assert n.max().item() <= 7
    return w * n.sum()


NARROW = {  # numbers have 64 bits, whatever the tensor has
    torch.uint8: [lambda w, n: w * -n.max().item(), lambda w, n: w * (n[0].item() * 90 + n[1].item())], torch.int8: [lambda w, n: w * abs(-43 * n[0].item())],
    torch.int32: [lambda w, n: w * ((n[0].item() * 100000) * 100000)],
    torch.float16: [lambda w, n: w * ((n[0].item() * 300) * 300)],
    torch.float64: [lambda w, n: w * (n[0].item() * 1e30 * 1e30 * 1e-60)],
    torch.float32: [lambda w, n: w * ((n[0].item() * 1e20) * 1e20 * 1e-40), lambda w, n: w * round(n.sum().item() / 3), lambda w, n: w * round(n[0].item() / 7, 2)],
    torch.bool: [lambda w, n: w * n[0].item(), lambda w, n: w + torch.full((5,), n[1].item())]}
INTEGERS = {
    "product": lambda w, n: w * n.max().item(), "element": lambda w, n: w[n.min().item()] * 2, "roll": lambda w, n: torch.roll(w, n.min().item()),
    "list": lambda w, n: w * n.tolist()[1], "check": checked}


class Each(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.w, self.function = nn.Parameter(torch.randn(5)), function

    def forward(self, x):
        return self.function(self.w, x)


class Numbers(unittest.TestCase):
    def check(self, functions, x):
        for name, function in functions.items():
            with self.subTest(name):
                module = Each(function)
                loss, gradients = ts.jit(ts.value_and_grad(lambda m, x: ts.mean(m(x) ** 2)))(ts.from_torch(module, (x,)), ts.asarray(x.numpy()))
                wanted = (module(x) ** 2).mean()
                wanted.backward()
                self.assertIsNone(difference(np.asarray(loss), wanted.detach().numpy()))
                self.assertIsNone(difference(np.asarray(gradients.weights["w"]), module.w.grad.numpy()))

    def test_floats(self):
        self.check(FLOATS, torch.randn(4, 5))

    def test_narrow_types(self):
        for element, functions in NARROW.items():
            self.check(dict(enumerate(functions)), torch.tensor([3, 5, 2]).to(element))

    def test_integers(self):
        self.check(INTEGERS, torch.tensor([3, 5, 2]))


if __name__ == "__main__":
    unittest.main()
