# RUN: %tessera_python %s
# REQUIRES: torch
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex values inside of PyTorch modules, and Fourier transforms: results and derivatives equal PyTorch's."""

import unittest

import numpy as np
import torch
from torch import fft, nn

import tessera as ts

torch.manual_seed(0)


def module(function):
    class Net(nn.Module):
        def forward(self, *args):
            return function(*args)
    return Net()


def rotary(x, angles):
    z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(z * torch.polar(torch.ones_like(angles), angles)[None, :, None, :]).flatten(3)


class Complex(unittest.TestCase):
    def check(self, function, *inputs, derivative=True):
        net = ts.from_torch(module(function), inputs)
        arrays = [x.numpy() for x in inputs]
        found, wanted = ts.jit(lambda net, *x: net(*x))(net, *arrays).numpy(), function(*inputs).numpy()
        self.assertEqual(found.shape, wanted.shape)
        np.testing.assert_allclose(found, wanted, atol=2e-5 * max(1, abs(wanted).max()))
        if not derivative:
            return
        leaves = [x.clone().requires_grad_() for x in inputs]
        (function(*leaves) ** 2).sum().backward()
        gradients = ts.jit(lambda net, *x: ts.grad(lambda *x: (net(*x) ** 2).sum(), tuple(range(len(x))))(*x))(net, *arrays)
        for ours, leaf in zip(gradients, leaves):
            theirs = leaf.grad.numpy()
            np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-4 * max(1, abs(theirs).max()))

    def test_rotary_embedding(self):
        self.check(rotary, torch.randn(2, 5, 3, 8), torch.randn(5, 4))

    def test_transforms(self):
        # One product up to 64; then by divisors, but for the prime number 67.
        for n in 1, 2, 7, 30, 64, 67, 96, 128:
            x = torch.randn(2, n)
            with self.subTest(n=n):
                self.check(lambda x: fft.fft(x).abs(), x, derivative=False)
                self.check(lambda x: torch.view_as_real(fft.rfft(x, norm="ortho")), x)
                self.check(lambda x: fft.irfft(fft.rfft(x) * 0.5, n=n), x)
                self.check(lambda x: fft.ifft(fft.fft(x) * torch.exp(1j * torch.arange(n))).real, x)

    def test_transforms_of_several_axes(self):
        self.check(lambda x: fft.fft2(x).real, torch.randn(2, 6, 9))
        self.check(lambda x: fft.fftn(x, dim=(0, 2)).imag, torch.randn(4, 6, 9))
        self.check(lambda x: fft.irfft2(fft.rfft2(x)), torch.randn(2, 6, 8))

    def test_arithmetic(self):
        x = torch.randn(2, 8)
        self.check(lambda x: (fft.rfft(x).conj() / (2 + 1j * fft.rfft(x))).angle(), x, derivative=False)
        self.check(lambda x: torch.cat([fft.fft(x)[:, 1:3], fft.fft(x).roll(1, 1)], 1).sum(1).abs(), x)
        self.check(lambda x, w: (fft.rfft(x).unsqueeze(1) @ torch.view_as_complex(w)).real, torch.randn(3, 8), torch.randn(3, 5, 4, 2))

    def of_complex(self, function, x, derivative=True):
        """A function of complex numbers, on pairs."""
        self.check(lambda x: torch.view_as_real(function(torch.view_as_complex(x))), x, derivative=derivative)

    def test_functions(self):
        x = torch.randn(9, 2)
        names = "exp expm1 log log1p sqrt rsqrt reciprocal sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh sigmoid square".split()
        self.of_complex(lambda z: torch.stack([getattr(torch, name)(z) for name in names]), x)
        # On both axes, where a root is purely real or imaginary.
        self.of_complex(lambda z: torch.stack([z.sqrt(), z.log(), z.tanh()]), torch.tensor([[0.7, 0.0], [-3.0, 0.0], [0.0, 1.5], [0.0, -2.5]]))
        self.of_complex(lambda z: z ** 3 + z ** -2 + z ** 2.5 + z ** z + 2 ** z, x)
        self.of_complex(torch.tanh, torch.tensor([[30.0, 1.0], [-100.0, 2.0], [0.0, 0.0]]))

    def test_selections_and_products(self):
        x = torch.randn(4, 4, 2)
        self.of_complex(lambda z: torch.where(z.abs() > 1, z, 0) + torch.tril(z) + z.masked_fill(z.real > 0, 1j) + torch.full((4, 4), 1j), x)
        self.of_complex(lambda z: z.sgn() + z / z.norm() + z * (z == z) * torch.isfinite(z) + z.mean() + torch.var(z), x)
        self.of_complex(lambda z: z.prod(0) + z.cumsum(0) + z.prod() + z.unfold(1, 4, 4)[:, 0], x)
        self.of_complex(lambda z: torch.addmm(z, z, torch.eye(4) + 0j, beta=2) + torch.zeros_like(z).scatter_add(0, torch.zeros(4, 4).long(), z), x)

        def written(z):
            w = z.clone()
            w[0], w[:, 1] = 1j, z[:, 0]
            return w
        self.of_complex(written, x)

    def test_buffer(self):
        class Rotated(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("turn", torch.polar(torch.ones(4), torch.randn(4)))

            def forward(self, x):
                return torch.view_as_real(torch.view_as_complex(x) * self.turn)
        x, net = torch.randn(3, 4, 2), Rotated()
        np.testing.assert_allclose(ts.from_torch(net, (x,))(x.numpy()).numpy(), net(x).numpy(), atol=1e-6)

    def test_errors(self):
        x = torch.randn(4)
        with self.assertRaisesRegex(ts.Error, "a result is complex; return torch.view_as_real of it"):
            ts.from_torch(module(fft.fft), (x,))(x.numpy())
        with self.assertRaisesRegex(ts.Error, "operation 'aten.cumprod.default of complex tensors' of 'Net' is not supported"):
            ts.from_torch(module(lambda x: fft.fft(x).cumprod(0).abs()), (x,))
        with self.assertRaisesRegex(ts.Error, "element type complex64 is not supported"):
            ts.from_torch(module(torch.abs), (x + 0j,))(np.zeros(4, np.complex64))


unittest.main()
