# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions and accumulations equal JAX's, the index of an extreme value included."""

import unittest

from jax_case import I, JaxCase, array, jnp, np
from jax import lax


class Reductions(JaxCase):
    x = array(5, 7)

    def test_sums(self):
        self.check(lambda a: (a.sum(), a.sum(0), a.mean(0, keepdims=True), a.prod(1), jnp.var(a, 0), jnp.linalg.norm(a)), self.x)

    def test_dimensions_without_work(self):
        """Of extents 0 and 1."""
        self.check(lambda a: (a[:, :0].sum(1), a[:0].prod(0), a[:1].sum(0), a[:, 2:3].sum((0, 1)), jnp.pad(a, ((1, 1), (0, 0)), mode="edge").sum(0)), self.x)
        self.check(lambda a: (a[:, :0].sum(1), a[:1].sum(0)), array(5, 7, dtype=jnp.bfloat16))

    def test_extremes(self):
        self.check(lambda a: (a.max(1), a.min(), a.max((0, 1)), jnp.any(a > 0, 1), jnp.all(a > -1, 0)), self.x)

    def test_integers(self):
        self.check(lambda a: (a.sum(), a.max(0), a.min(1), a.prod(1)), array(5, 7, dtype=I))

    def test_narrow_floats(self):
        self.check(lambda a: (a.sum(), a.sum(0), a.max(1)), array(5, 7, dtype=jnp.bfloat16))

    def test_argmax(self):
        self.check(lambda a: (jnp.argmax(a, 1), jnp.argmin(a, 0), jnp.argmax(a)), self.x)

    def test_argmax_of_equal_values(self):
        self.check(lambda a: (jnp.argmax(a, 1), jnp.argmin(a, 0)), array(5, 7, dtype=I), below=3)

    def test_cumulative(self):
        self.check(lambda a: (jnp.cumsum(a, 0), jnp.cumsum(a, 1), jnp.cumprod(a, 1), lax.cummax(a, 1), lax.cummin(a, 0),
                              lax.cumsum(a, 1, reverse=True)), self.x)

    def test_cumulative_logsumexp(self):
        self.check(lambda a: lax.cumlogsumexp(a, 1), self.x)

    def test_gradients(self):
        self.check(self.gradient(lambda a: jnp.cumsum(a, 0) + a.max(1, keepdims=True) + a.prod(0), 0), self.x)

    def test_other_functions(self):
        """Any associative function, of one or several arrays."""
        def affine(a, b):
            return a[0] * b[0], a[1] * b[0] + b[1]
        self.check(lambda a: (lax.reduce(a, np.float32(0.5), jnp.logaddexp, (0,)), lax.reduce(a, np.float32(0), jnp.logaddexp, (1, 0))), self.x)
        self.check(lambda a: lax.reduce((a, a + 1), (np.float32(1), np.float32(0)), affine, (1,)), self.x)

    def test_windows_of_other_functions(self):
        low = np.float32(-np.inf)
        self.check(lambda a: lax.reduce_window(a, low, jnp.logaddexp, (3, 2), (2, 1), "SAME", base_dilation=(2, 1), window_dilation=(1, 2)), self.x)
        self.check(lambda a: (lax.reduce_window(a, np.float32(1), lax.mul, (5, 3), (1, 2), "VALID"), lax.reduce_window(
            a, low, jnp.logaddexp, (1, 7), (1, 1), [(0, 0), (6, 0)])), self.x)

    def test_positional_axes(self):
        self.check(lambda a: (lax.psum(a, 0), lax.pmax(a, 1), lax.pmin(a, (0, 1))), self.x)


if __name__ == "__main__":
    unittest.main()
