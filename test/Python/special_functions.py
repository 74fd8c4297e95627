# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special functions of JAX programs, and draws that use them, equal JAX's."""

import unittest

from jax_case import JaxCase, jax, jnp, np
from jax import lax


class SpecialFunctions(JaxCase):
    def test_gamma(self):
        x = np.concatenate([np.linspace(-4.7, 6.1, 40), [0, 1, 2, -1, 1e-3, 30, 1e6, np.inf, np.nan]]).astype(np.float32)
        self.check(lambda x: (lax.lgamma(x), lax.digamma(x), lax.bessel_i0e(x), lax.bessel_i1e(x)), x, values=(x,))
        y = abs(x)
        self.check(lambda x: (lax.polygamma(jnp.float32(2), x), lax.zeta(jnp.float32(1.5), x), lax.zeta(jnp.float32(2), -x)), y, values=(y,))
        self.check(self.gradient(lax.lgamma, 0), x[20:40], values=(x[20:40],))

    def test_incomplete_functions(self):
        a, x = [v.astype(np.float32) for v in np.meshgrid([0.2, 1, 4, 12], [0, 0.1, 1, 3, 20])]
        self.check(lambda a, x: (lax.igamma(a, x), lax.igammac(a, x), lax.igamma_grad_a(a, x), lax.random_gamma_grad(a, x)), a, x, values=(a, x))
        self.check(lambda a, x: lax.betainc(a, a + 1, x / 20), a, x, values=(a, x))

    def test_narrow_types(self):
        x = jnp.linspace(0.1, 4, 16).astype(jnp.bfloat16)
        self.check(lambda x: (lax.lgamma(x), lax.digamma(x), lax.erf_inv(x / 5)), x, values=(x,))

    def test_random(self):
        key, a = jax.random.key(2), np.float32([0.3, 1, 4])
        self.check(lambda a: (jax.random.gamma(key, a), jax.random.beta(key, a, a + 1), jax.random.dirichlet(key, a)), a, values=(a,))


if __name__ == "__main__":
    unittest.main()
