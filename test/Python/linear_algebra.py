# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Factorizations and solvers of JAX programs: unique results equal JAX's, others are compared by what they make up."""

import unittest
from functools import partial

from jax_case import JaxCase, jax, jnp, mesh_of, np
from jax import lax
from jax.sharding import PartitionSpec

import tessera

random = np.random.default_rng(0)


def matrices(*shape, complex=False):
    a = random.standard_normal(shape)
    return (a + 1j * random.standard_normal(shape)).astype(np.complex64) if complex else a.astype(np.float32)


def positive(n, *batch):
    a = matrices(*batch, n, n)
    return (a @ np.swapaxes(a, -1, -2) / n + np.eye(n)).astype(np.float32)


def adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))


class LinearAlgebra(JaxCase):
    def test_preconditioners(self):
        """Inverses of both sides of a gradient, as in Shampoo: rows and columns of square matrices are taken in blocks."""
        def inverse(a):
            values, vectors = jnp.linalg.eigh(a)
            return (vectors / values) @ vectors.T

        def step(g):
            return inverse(g @ g.T + jnp.eye(6)) @ g @ inverse(g.T @ g + jnp.eye(5))
        g = matrices(6, 5)
        for axes, spec in ((dict(t=3), PartitionSpec(None, "t")), (dict(d=2, t=3), PartitionSpec(None, "t")), (dict(d=2, t=3), PartitionSpec("t"))):
            found = tessera.from_jax(step, (g,), (spec,), mesh=mesh_of(**axes))(g)
            np.testing.assert_allclose(found, jax.jit(step)(g), rtol=1e-3, atol=1e-4)

    def test_cholesky(self):
        for a in positive(5), positive(3, 4):
            self.check(jnp.linalg.cholesky, a, values=(a,))
        singular = np.stack([np.eye(3), np.ones((3, 3)), -np.eye(3)]).astype(np.float32)  # NaN in all elements of the last two
        self.check(lambda a: jnp.linalg.cholesky(a), singular, values=(singular,))
        a = positive(4)
        self.check(self.gradient(jnp.linalg.cholesky, 0), a, values=(a,))

    def test_blocks(self):
        """More rows than a block."""
        a, b = positive(150), matrices(150, 3)
        program = tessera.from_jax(lambda a, b: (jnp.linalg.cholesky(a), lax.linalg.lu(a), jnp.linalg.solve(a, b)), (a, b))
        lower, (packed, _, order), x = program(a, b)
        np.testing.assert_allclose(lower @ lower.T, a, atol=1e-4)
        np.testing.assert_allclose((np.tril(packed, -1) + np.eye(150)) @ np.triu(packed), a[order], atol=1e-4)
        np.testing.assert_allclose(a @ x, b, atol=1e-3)

    def test_blocks_of_cut_matrices(self):
        """Blocks of rows beside blocks of columns, of a matrix whose rows are cut."""
        x = np.random.default_rng(1).standard_normal((128, 4)).astype(np.float32)
        mesh = mesh_of(d=4)
        for function in (lambda x: lax.linalg.lu(x @ x.T + 4 * jnp.eye(128))[0], lambda x: jnp.linalg.solve(x @ x.T + jnp.eye(128), jnp.ones(128))):
            program = tessera.from_jax(function, (x,), (PartitionSpec("d"),), mesh=mesh)
            np.testing.assert_allclose(program(x), function(x), atol=1e-3)

    def test_gathered(self):
        """Rows of a factorization depend on each other: the matrix is gathered once, in place of a collective for each column."""
        x = np.random.default_rng(1).standard_normal((256, 4)).astype(np.float32)
        program = tessera.from_jax(lambda x: jnp.linalg.solve(x @ x.T + jnp.eye(256), jnp.ones(256)), (x,), (PartitionSpec("d"),), mesh=mesh_of(d=4))
        self.assertEqual([(c["kind"], c["wire_bytes"]) for c in program.explain()["collectives"]], [("all_gather", 3 * 64 * 4 * 4)])

    def test_triangular_solve(self):
        a, b = positive(4, 2), matrices(2, 4, 3)
        for left in True, False:
            for lower in True, False:
                for transpose in True, False:
                    other = b if left else adjoint(b)
                    self.check(partial(lax.linalg.triangular_solve, left_side=left, lower=lower, transpose_a=transpose, unit_diagonal=lower),
                               a, other, values=(a, other))

    def test_lu(self):
        for a in matrices(4, 4), matrices(5, 3), matrices(3, 5), matrices(2, 3, 3), np.zeros((3, 3), np.float32):
            self.check(lax.linalg.lu, a, values=(a,))
        a, b = matrices(3, 4, 4), matrices(3, 4, 2)
        self.check(lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.det(a), jnp.linalg.slogdet(a)), a, b, values=(a, b))
        self.check(self.gradient(jnp.linalg.solve, 0, 1), a, b, values=(a, b))

    def test_qr(self):
        for a in matrices(4, 4), matrices(5, 3), matrices(3, 5), matrices(2, 4, 2):
            for mode in "reduced", "complete", "raw":
                self.check(partial(jnp.linalg.qr, mode=mode), a, values=(a,))
        a, c = matrices(5, 3), matrices(5, 2)
        self.check(lambda a: lax.linalg.qr(a, pivoting=True, full_matrices=False), a, values=(a,))
        self.check(lambda a, c: lax.linalg.ormqr(a, a[0], c, transpose=True), a, c, values=(a, c))

    def test_reductions_to_bands(self):
        a = matrices(5, 5)
        self.check(lambda a: lax.linalg.hessenberg(a), a, values=(a,))
        for lower in True, False:
            self.check(lambda a, lower=lower: lax.linalg.tridiagonal(a + a.T, lower=lower), a, values=(a,))
        low, middle, high, b = matrices(6), matrices(6) / 8, matrices(6), matrices(6, 2)  # rows are swapped
        low[0] = high[-1] = 0
        self.check(lambda *args: lax.linalg.tridiagonal_solve(*args), low, middle, high, b, values=(low, middle, high, b))

    def test_linear_solve(self):
        a, b = positive(4), matrices(4)
        self.check(lambda a, b: jax.scipy.sparse.linalg.cg(lambda x: a @ x, b, maxiter=10)[0], a, b, values=(a, b))

    def test_eigh(self):
        for shape in (1, 1), (5, 5), (2, 4, 4):
            for complex in False, True:
                a = matrices(*shape, complex=complex)
                a = a + adjoint(a)
                values, vectors = tessera.from_jax(jnp.linalg.eigh, (a,))(a)
                np.testing.assert_allclose(values, np.linalg.eigvalsh(a), atol=1e-5)
                np.testing.assert_allclose(vectors * values[..., None, :] @ adjoint(vectors), a, atol=1e-5)
        for a in np.eye(4, dtype=np.float32), np.ones((4, 4), np.float32), np.zeros((3, 3), np.float32):
            np.testing.assert_allclose(tessera.from_jax(jnp.linalg.eigvalsh, (a,))(a), np.linalg.eigvalsh(a), atol=1e-6)
        a = positive(4)
        self.check(self.gradient(lambda a: jnp.linalg.eigh(a)[0], 0), a, values=(a,))
        self.check(jnp.linalg.eigvalsh, a, values=(a,))

    def test_svd(self):
        rank_one, graded = np.ones((4, 3), np.float32), np.diag(np.float32([1, 1e-3, 1e-6, 0]))
        for a in matrices(4, 4), matrices(5, 2), matrices(2, 3, 2), matrices(3, 4, complex=True), rank_one, graded:
            for full in False, True:
                u, s, v = tessera.from_jax(lambda a: jnp.linalg.svd(a, full_matrices=full), (a,))(a)
                np.testing.assert_allclose(s, np.linalg.svd(a)[1], atol=2e-6)
                k = s.shape[-1]
                np.testing.assert_allclose(u[..., :k] * s[..., None, :] @ v[..., :k, :], a, atol=1e-5)
                for basis in u, adjoint(v):
                    np.testing.assert_allclose(adjoint(basis) @ basis, np.broadcast_to(np.eye(basis.shape[-1]), (*a.shape[:-2], *[basis.shape[-1]] * 2)), atol=1e-5)
        a = matrices(5, 3)
        self.check(lambda a: (jnp.linalg.pinv(a), jnp.linalg.matrix_rank(a), jnp.linalg.cond(a)), a, values=(a,))

    def test_values_that_are_not_finite(self):
        a = np.full((3, 3), np.nan, np.float32)
        self.assertTrue(np.isnan(tessera.from_jax(jnp.linalg.eigvalsh, (a,))(a)).all())
        self.assertTrue(np.isnan(tessera.from_jax(lambda a: jnp.linalg.svd(a, compute_uv=False), (a,))(a)).all())

    def test_complex(self):
        a = matrices(3, 3, complex=True)
        a = (a @ adjoint(a) + np.eye(3)).astype(np.complex64)
        for fn in jnp.linalg.cholesky, jnp.linalg.inv, lambda a: jnp.linalg.qr(a)[1], jnp.linalg.det:
            np.testing.assert_allclose(tessera.from_jax(fn, (a,))(a), fn(a), atol=1e-3)


if __name__ == "__main__":
    unittest.main()
