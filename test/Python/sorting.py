# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""sort and top_k equal JAX's, stable and with equal keys."""

import unittest

import numpy as np

from jax_case import I, JaxCase, array, jnp
from jax import lax


class Sorting(JaxCase):
    x, n = array(4, 7), array(4, 7, dtype=I)

    def test_sort(self):
        self.check(lambda a: (jnp.sort(a, 1), jnp.argsort(a, 0), jnp.median(a)), self.x)

    def test_equal_keys(self):
        self.check(lambda n, a: (jnp.sort(n), jnp.argsort(n, 1), lax.sort((n, a), num_keys=1)), self.n, self.x, below=4)

    def test_unsigned(self):
        self.check(lambda n: jnp.sort(n, 1), array(4, 7, dtype=jnp.uint32), below=4_000_000_000)

    def test_special_values(self):
        x = np.array([[np.nan, -0.0, 0.0, np.inf, -np.inf, 1.0, -1.0]], np.float32)
        self.check(lambda a: (jnp.sort(a, 1), jnp.argsort(a, 1)), array(1, 7), values=(x,))

    def test_top(self):
        self.check(lambda a, n: (lax.top_k(a, 2), lax.top_k(n, 3)), self.x, self.n)

    def test_top_of_long_lines(self):
        rising = np.arange(300, dtype=np.float32)
        few = np.where(rising % 37 == 5, np.float32(np.nan), rising % 7)
        x = np.stack([rising, -rising, few, np.zeros_like(rising)])
        self.check(lambda a: lax.top_k(a, 3), array(4, 300), values=(x,))
        self.check(lambda n: lax.top_k(n, 5), array(4, 300, dtype=I), below=20)

    def test_top_of_merged_lines(self):
        for dtype in (jnp.float32, I):  # of a batch, of beams and words that are cut; many are equal
            self.check(lambda a: lax.top_k(a.reshape(a.shape[0], -1), 3), array(4, 3, 41, dtype=dtype), below=6, turns=(2,))

    def test_gradients(self):
        self.check(self.gradient(lambda a: jnp.sort(a, 1), 0), self.x)
        self.check(self.gradient(lambda a: lax.top_k(a, 2)[0], 0), self.x)

    def test_search(self):
        self.check(lambda x, v: (jnp.searchsorted(jnp.sort(x), v), jnp.searchsorted(jnp.sort(x), v, side="right")), array(7), array(4))


if __name__ == "__main__":
    unittest.main()
