# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex values and Fourier transforms of JAX programs: arguments, results and derivatives equal JAX's."""

import unittest

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AbstractMesh, PartitionSpec as P

import tessera
from tessera.jax import ImportFailure
from tessera.testing import difference

random = np.random.RandomState(0)


def real(*shape):
    return random.randn(*shape).astype("f")


def cplx(*shape):
    return (random.randn(*shape) + 1j * random.randn(*shape)).astype("F")


class Complex(unittest.TestCase):
    def check(self, function, *args, shardings=None, mesh=None):
        program = tessera.from_jax(function, args, shardings, mesh=mesh)
        for found, wanted in zip(jax.tree.leaves(program(*args)), jax.tree.leaves(jax.jit(function)(*args)), strict=True):
            wanted = np.asarray(wanted)
            self.assertEqual((found.dtype, found.shape), (wanted.dtype, wanted.shape))
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=3e-5 * max(1, abs(wanted).max(initial=0)))

    def test_elementwise(self):
        z, w, x = cplx(3, 4), cplx(3, 4), real(3, 4)
        one = (jnp.abs, jnp.real, jnp.imag, jnp.conj, jnp.angle, jnp.exp, jnp.log, jnp.sqrt, jnp.sin, jnp.cos, jnp.sign, jnp.square, jnp.isfinite,
               jnp.sum, jnp.mean, jnp.cumsum, jnp.tan, jnp.sinh, jnp.cosh, jnp.tanh, jnp.expm1, jnp.log1p, jnp.arcsin, jnp.arccos, jnp.arctan,
               jnp.arcsinh, jnp.arccosh, jnp.arctanh, jax.nn.sigmoid, lax.rsqrt, lambda z: jnp.prod(z, 1), lambda z: z ** 3, lambda z: z ** -2,
               lambda z: z ** 0.5, lambda z: -z + 2j)
        self.check(lambda z: [function(z) for function in one], z)
        two = (lambda z, w: z * w, lambda z, w: z / w - w, lambda z, w: jnp.where(z.real > 0, z, w), lambda z, w: z == w, lambda z, w: z != w,
               lambda z, w: lax.complex(z.real, w.imag), lambda z, w: {"a": z, "b": (w.real, 1j * w)})
        self.check(lambda z, w: [function(z, w) for function in two], z, w)
        self.check(lambda z, x: z * x + jnp.exp(1j * x), z, x)

    def test_moves(self):
        z = cplx(4, 6)
        moves = (lambda z: z.T[::2], lambda z: jnp.pad(z, 1, constant_values=2j), lambda z: z.at[1].set(3j).at[jnp.array([0, 2])].add(z[:2]),
                 lambda z: z[jnp.array([3, 1])], lambda z: jnp.concatenate([z, z[:, ::-1]]), lambda z: jnp.stack([z, 2 * z]),
                 lambda z: jnp.broadcast_to(z[0], (3, 6)), lambda z: z.reshape(-1), lambda z: jnp.roll(z, 2, 1))
        self.check(lambda z: [function(z) for function in moves], z)

    def test_products(self):
        self.check(lambda z, w: z @ w, cplx(3, 4), cplx(4, 5))
        self.check(lambda z, x: jnp.einsum("bij,bjk->bik", z, x), cplx(2, 3, 4), real(2, 4, 5))

    def test_factors_of_elements(self):
        self.check(lambda z: (z.at[1:3].multiply(2j), z.at[0].multiply(z[1])), cplx(4, 3))
        self.check(lambda z, i: z.at[i].multiply(z[:2], unique_indices=True), cplx(4, 3), np.int32([3, 1]))
        with self.assertRaisesRegex(ImportFailure, "'scatter-mul' of complex values is supported for distinct indices"):
            tessera.from_jax(lambda z, i: z.at[i].multiply(2j), (cplx(4, 3), np.int32([3, 3])))

    def test_transforms(self):
        for n in 1, 7, 30, 67, 96:
            with self.subTest(n=n):
                self.check(lambda z, x, h: (jnp.fft.fft(z), jnp.fft.ifft(z), jnp.fft.rfft(x, norm="ortho"), jnp.fft.irfft(h, n=n)),
                           cplx(2, n), real(2, n), cplx(2, n // 2 + 1))
        self.check(lambda x: jnp.fft.fft2(x), real(2, 6, 9))
        self.check(lambda x: jnp.fft.irfftn(jnp.fft.rfftn(x) * 2, s=x.shape), real(4, 6, 8))
        self.check(lambda x: jnp.fft.fft(x, axis=0, n=5), cplx(4, 3))
        self.check(lambda x: jax.scipy.fft.dctn(x), real(4, 3))

    def test_derivatives(self):
        x, z = real(2, 8), cplx(2, 8)
        self.check(jax.grad(lambda x: (jnp.abs(jnp.fft.rfft(x)) ** 2).sum()), x)
        self.check(jax.grad(lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * jnp.exp(1j * jnp.arange(5.0)), n=8)[0].sum()), x)
        self.check(jax.grad(lambda z: (jnp.abs(z * z) + jnp.sin(z).real).sum()), z)
        self.check(jax.grad(lambda z: jnp.abs(jnp.fft.fft(z) @ z.T).sum()), z)

    def test_control_flow(self):
        z = cplx(5, 3)
        self.check(lambda z: lax.scan(lambda c, y: (c * 0.5 + y, jnp.abs(c)), jnp.zeros(3, "F"), z), z)
        self.check(lambda z: lax.fori_loop(0, 3, lambda i, z: z * (0.5 + 0.5j), z), z)
        self.check(lambda z: lax.cond(z[0, 0].real > 0, lambda z: z * 1j, jnp.conj, z), z)
        self.check(lambda x: lax.fori_loop(0, 3, lambda i, x: jnp.abs(x + 1j), x), real(3))

    def test_placed(self):
        mesh = AbstractMesh((3,), ("d",))
        self.check(lambda z, w: (jnp.fft.fft(z * w), (z @ w.T).sum()), cplx(6, 8), cplx(6, 8), shardings=(P("d"), P(None, "d")), mesh=mesh)

    def test_refused(self):
        with self.assertRaisesRegex(ImportFailure, r"complexes.py:\d+:\d+: error: primitive 'sort' of complex values is not supported"):
            tessera.from_jax(lambda z: lax.sort(z), (cplx(3),))

    def test_difference(self):
        a = (np.arange(6) + 1j * np.arange(6)[::-1]).astype(np.complex64)
        self.assertIsNone(difference(a * np.float32(1 + 1e-6), a))
        self.assertIn("1 of 12 elements", difference(a + np.eye(1, 6, 2, dtype=np.complex64)[0] * 1j, a))


if __name__ == "__main__":
    unittest.main()
