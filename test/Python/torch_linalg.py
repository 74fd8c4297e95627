# RUN: %tessera_python %s
# REQUIRES: torch
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear algebra of PyTorch programs: values and derivatives equal PyTorch's, for a batch on one device and cut over four."""

import unittest

import numpy as np
import torch
from torch import linalg
from torch_case import TorchCase

import tessera as ts

A = torch.randn(4, 5, 5)
B = torch.randn(4, 5, 2)
P = A @ A.mT + torch.eye(5)
TALL, WIDE = A[:, :, :3].contiguous(), A[:, :3].contiguous()


def symmetric(a):
    return (a + a.mT) / 2


class LinearAlgebra(TorchCase):
    steps = 100

    def test_cholesky(self):
        self.check(lambda p: linalg.cholesky(symmetric(p)), P)
        self.check(lambda p: linalg.cholesky(symmetric(p), upper=True), P)
        self.check(lambda p, b: torch.cholesky_solve(b, linalg.cholesky(p)), P, B)
        self.check(lambda p: torch.cholesky_inverse(linalg.cholesky(p)), P)
        large = torch.randn(1, 70, 70)
        self.check(linalg.cholesky, large @ large.mT + 70 * torch.eye(70))  # more rows than a block

    def test_triangular(self):
        well = A + 4 * torch.eye(5)
        self.check(lambda a, b: linalg.solve_triangular(a, b, upper=True), well, B)
        self.check(lambda a, b: linalg.solve_triangular(a, b.mT, upper=False, left=False, unitriangular=True), A / 4, B)
        self.check(lambda a, b: torch.triangular_solve(b, a, upper=False, transpose=True)[0], well, B)

    def test_systems(self):
        self.check(linalg.solve, A, B)
        self.check(linalg.solve, A[0], B[0, :, 0])
        self.check(lambda a, b: linalg.solve(a, b.mT, left=False), A, B)
        self.check(linalg.inv, A)
        self.check(torch.inverse, A[0])
        self.check(lambda a: linalg.matrix_power(a, -2), A)
        self.check(linalg.det, A)
        self.check(lambda a: tuple(linalg.slogdet(a)), A)

    def test_result_is_a_structure_of_pytorch(self):
        self.check(linalg.slogdet, A)

    def test_lu(self):
        for a in A, TALL, WIDE:
            self.check(linalg.lu, a)
        self.check(lambda a: linalg.lu_factor(a), A)
        for left in True, False:
            for adjoint in True, False:
                self.check(lambda a, b, left=left, adjoint=adjoint: linalg.lu_solve(
                    *linalg.lu_factor(a), b if left else b.mT, left=left, adjoint=adjoint), A, B)

    def test_qr(self):
        for a in A, TALL, WIDE:
            self.check(linalg.qr, a)
        self.check(lambda a: linalg.qr(a, mode="complete"), TALL, derivative=False)

    def test_eigenvalues(self):
        self.check(linalg.eigvalsh, P)
        self.check(lambda a: (lambda values, vectors: (values, vectors.abs()))(*linalg.eigh(symmetric(a))), A)

    def test_singular_values(self):
        for a in A, TALL, WIDE:
            self.check(linalg.svdvals, a)
            self.check(lambda a: (lambda u, s, v: (u.abs(), s, v.abs(), u @ v))(*linalg.svd(a, full_matrices=False)), a)
        self.check(lambda a: linalg.svd(a)[0][:, :, 3:].square().sum(2), TALL, derivative=False)
        self.check(lambda a: linalg.norm(a, "nuc", dim=(1, 2)) + linalg.norm(a, 2, dim=(1, 2)), A)

    def test_inverses_of_matrices_that_are_not_square(self):
        for a in TALL, WIDE:
            self.check(linalg.pinv, a)
        self.check(linalg.matrix_rank, TALL @ WIDE)

    def test_exponential(self):
        self.check(linalg.matrix_exp, A)
        self.check(linalg.matrix_exp, A.double() * 5)

    def test_derivative_of_a_determinant_that_is_0(self):
        """The cofactors, which PyTorch perturbs."""
        class Determinant(torch.nn.Module):
            def forward(self, a):
                return linalg.det(a)
        a = np.float32([[1, 2, 3], [2, 4, 6], [1, 0, 1]])
        net = ts.from_torch(Determinant(), (torch.from_numpy(a),))
        found = ts.jit(ts.grad(lambda a: net(a)))(a).numpy()
        np.testing.assert_allclose(found, [[4, 4, -4], [-2, -2, 2], [0, 0, 0]], atol=1e-5)


if __name__ == "__main__":
    unittest.main()
