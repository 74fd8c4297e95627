# RUN: %tessera_python %s
# REQUIRES: torch
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special functions of PyTorch programs: values and derivatives equal PyTorch's, also where they are infinite."""

import unittest

import numpy as np
import torch
from torch import special
from torch_case import TorchCase


def line(begin, end, count, *more):
    return np.concatenate([np.linspace(begin, end, count), more]).astype(np.float32)


class SpecialFunctions(TorchCase):
    def test_gamma(self):
        self.check(torch.lgamma, line(-4.7, 6.1, 37, 0, 1, 2, 1e-3, 30, 1e6))
        self.check(torch.digamma, line(-4.65, 6.15, 37, 0, 1, 2, 1e-3, 30, 1e6))  # at other poles PyTorch is not infinite
        for n in range(4):
            self.check(lambda x, n=n: torch.polygamma(n, x), line(0.1, 6, 9))
        for n in range(1, 4):
            self.check(lambda x, n=n: torch.polygamma(n, x), line(-9.3, -0.25, 8))
        self.check(lambda x: torch.mvlgamma(x, 2), line(0.9, 3, 5))
        self.check(lambda x: special.zeta(2.0, x) + special.zeta(3.5, x), line(0.3, 10, 5))
        self.check(torch.lgamma, np.linspace(0.1, 5, 6))

    def test_error_function(self):
        probability = line(0, 1, 20, 1e-9, 1e-4, 0.9999)
        self.check(special.ndtri, probability)
        self.check(torch.erfinv, 2 * probability[1:19] - 1)
        self.check(torch.erfinv, np.linspace(-0.999, 0.999, 7))
        self.check(special.erfcx, line(-5, 12, 30))
        self.check(special.log_ndtr, line(-8, 6, 30))
        self.check(torch.erfc, line(-3, 3, 20))

    def test_bessel(self):
        for function in (special.i0, special.i0e, special.i1, special.i1e):
            self.check(function, line(-12, 12, 49))

    def test_products_with_logarithms(self):
        x, y = np.float32([0, 1, 2, 0]), np.float32([0.5, 1.5, 2, 0])
        self.check(torch.xlogy, x, y)
        self.check(special.xlog1py, x, y - [0, 0, 0, 1])
        self.check(lambda x: torch.xlogy(2.0, x) + torch.xlogy(x, 3), x + 1)
        self.check(special.entr, x)
        self.check(torch.sinc, line(-2, 2, 9))

    def test_types(self):
        self.check(lambda x: torch.lgamma(x), torch.arange(1, 5))
        self.check(lambda x: torch.digamma(x.bfloat16()).float(), np.float32([0.5, 1.5, 3.0]), derivative=False)


if __name__ == "__main__":
    unittest.main()
