# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Primitives that move elements equal JAX's."""

import unittest

from jax_case import JaxCase, array, jax, jnp
from jax import lax


class Shapes(JaxCase):
    x = array(4, 6)

    def test_reshape(self):
        self.check(lambda a: (a.reshape(6, 4), a.reshape(2, 2, 3, 2), a.reshape(-1), a[None, :, None], a.reshape(8, 3), a[:1].squeeze()),
                   self.x)

    def test_transpose(self):
        self.check(lambda a, b: (a.T, jnp.transpose(b, (2, 0, 1)), jnp.swapaxes(b, 0, 1)), self.x, array(2, 3, 5))

    def test_slices(self):
        self.check(lambda a: (a[1:3, ::2], a[:, 2], a[3], jnp.split(a, 2, axis=1)), self.x)

    def test_reverse(self):
        self.check(lambda a: (jnp.flip(a, 0), jnp.flip(a, (0, 1)), a[::-1, 1:]), self.x)

    def test_join(self):
        self.check(lambda a: (jnp.concatenate([a, a, a[:, :1]], 1), jnp.stack([a, a]), jnp.stack([a, a], -1), jnp.tile(a, (2, 3)),
                              jnp.repeat(a, 2, axis=1), jnp.roll(a, 1, 0)), self.x)

    def test_pad(self):
        self.check(lambda a: (jnp.pad(a, ((1, 2), (0, 3))), lax.pad(a, 0.0, ((0, 0, 1), (2, 1, 2))), lax.pad(a, a[0, 0], ((1, 0, 1), (0, 2, 0)))),
                   self.x)

    def test_negative_pad(self):
        self.check(lambda a: (lax.pad(a, 0.0, ((-1, 2, 1), (1, -2, 2))), lax.pad(a, 1.0, ((0, 0, 3), (-1, -1, 0)))), self.x)

    def test_matrices(self):
        self.check(lambda a: (jnp.tril(a), jnp.triu(a, 1), jnp.eye(4) @ a, jnp.diag(a[:, 0]), jnp.trace(a[:4, :4])), self.x)

    def test_resize(self):
        self.check(lambda a: (jax.image.resize(a, (1, 8, 6, 2), "nearest"), jax.image.resize(a, (1, 8, 6, 2), "bilinear")),
                   array(1, 4, 3, 2))

    def test_without_elements(self):
        self.check(lambda a: (a[:0], a[:0].sum(0), jnp.concatenate([a, a[:0]])), self.x)

    def test_scalars(self):
        self.check(lambda a, b: (a * b + 1, a), array(), array())


if __name__ == "__main__":
    unittest.main()
