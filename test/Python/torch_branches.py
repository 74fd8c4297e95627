# RUN: %tessera_python %s
# REQUIRES: tessera-core, torch
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.cond, loops, and operations on lists of tensors."""

import unittest

import torch
from torch import nn
from torch._higher_order_ops import map as torch_map, scan, while_loop
from torch_case import TorchCase

import tessera as ts


class Branches(TorchCase):
    def test_chosen(self):
        """One side is computed: the logarithm of the other has no derivative here."""
        def both(x, y):
            return torch.cond(x.sum() > y.sum(), lambda x, y: (x * y, (x + 1).log()), lambda x, y: (x - (y.round() - y).detach(), y.sin()), (x, y))
        positive = torch.rand(4, 3) + 0.5
        self.check(both, positive, -positive)
        self.check(both, -positive, positive)

    def test_nested(self):
        def inner(x):
            return torch.cond(x[0, 0] > 1, lambda x: x * x, lambda x: x.exp(), (x,))
        for first in (-2.0, 0.5, 2.0):
            x = torch.rand(4, 3)
            x[0, 0] = first
            self.check(lambda x: torch.cond(x[0, 0] > 0, inner, lambda x: -x, (x,)), x)

    def test_refused(self):
        class Draws(nn.Module):
            def forward(self, x):
                return torch.cond(x.sum() > 0, lambda x: torch.rand_like(x) + x, lambda x: x * 2, (x,))
        with self.assertRaisesRegex(ts.Error, "torch_branches.py:.*'aten.rand_like.default' draws random numbers in a branch of torch.cond of 'Draws'"):
            ts.from_torch(Draws(), (torch.rand(2),))

        class Unknown(nn.Module):
            def forward(self, x):
                return torch.cond(x.sum() > 0, lambda x: torch.special.i1e(torch.special.airy_ai(x)), lambda x: x * 2, (x,))
        with self.assertRaisesRegex(ts.Error, "torch_branches.py:.*'aten.special_airy_ai.default' of 'Unknown' is not supported"):
            ts.from_torch(Unknown(), (torch.rand(2),))


class Loops(TorchCase):
    def test_scan(self):
        def steps(x, w):
            def body(carry, row):
                carry = torch.tanh(carry @ w + row)
                return carry, carry * 2
            last, all = scan(body, torch.zeros(4, 3), x, dim=1)
            return last, all
        self.check(steps, torch.rand(4, 5, 3), torch.rand(3, 3), derivative=False)
        self.check(lambda x: scan(lambda c, a: (c * 0.5 + a, c.sin() + a), torch.zeros(4, 3), x, dim=1)[1], torch.rand(4, 5, 3))

    def test_map(self):
        self.check(lambda x: torch_map(lambda row: row.sin() @ row.T, x), torch.rand(4, 2, 3))

    def test_while(self):
        """The number of iterations depends on the data."""
        def doubled(x):
            return while_loop(lambda i, x: (x.sum() < 100) & (i < 20), lambda i, x: (i + 1, x * 2), (torch.tensor(0), x))
        self.check(doubled, torch.rand(4, 3) + 0.1, derivative=False)
        self.check(doubled, torch.rand(4, 3) + 50, derivative=False)


class Lists(TorchCase):
    def test_each(self):
        x, y = torch.rand(4, 3) + 0.5, torch.rand(4, 3) - 2

        def each(x, y):
            a, b = [x, y * 2], [y, x + 1]
            return [*torch._foreach_add(a, b, alpha=2), *torch._foreach_mul(a, 3.0), *torch._foreach_mul(b, [1.5, 2.0]),
                    *torch._foreach_div(a, torch._foreach_exp(b)), *torch._foreach_addcdiv(a, b, [x + 2, x + 3], 0.5),
                    *torch._foreach_addcmul(a, b, a, [2.0, 3.0]), *torch._foreach_lerp(a, b, 0.3), *torch._foreach_norm(a), *torch._foreach_norm(a, 1),
                    *torch._foreach_maximum(a, b), *torch._foreach_clamp_min(a, 0.1), *torch._foreach_pow(torch._foreach_abs(a), 2.0),
                    *torch._foreach_mul(a, x.sum().detach()), *torch._foreach_reciprocal(torch._foreach_exp(a))]
        self.check(each, x, y)

        def written(x, y):
            both = [x * 1, y * 1]
            torch._foreach_mul_(both, 2.0)
            torch._foreach_add_(both, [y, x])
            return both
        self.check(written, x, y, derivative=False)


if __name__ == "__main__":
    unittest.main()
