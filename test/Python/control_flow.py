# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scan, while, cond, checkpoint and calls equal JAX's."""

import unittest

from jax_case import I, JaxCase, array, jax, jnp
from jax import lax


class Loops(JaxCase):
    c, xs = array(6), array(5, 6)

    def test_scan(self):
        self.check(lambda c, xs: lax.scan(lambda c, x: (c * 0.5 + x, (c, x * 2)), c, xs), self.c, self.xs)

    def test_backwards(self):
        self.check(lambda c, xs: lax.scan(lambda c, x: (jnp.tanh(c + x), c), c, xs, reverse=True), self.c, self.xs)

    def test_gradient(self):
        self.check(self.gradient(lambda c, xs: lax.scan(lambda c, x: (jnp.tanh(c + x), c * x), c, xs)[1], 0, 1), self.c, self.xs)

    def test_counted(self):
        self.check(lambda a: lax.fori_loop(0, 5, lambda i, c: c + i * a, a), self.c)

    def test_while(self):
        self.check(lambda a: lax.while_loop(lambda c: c[0].sum() < 20, lambda c: (c[0] * 1.5, c[1] + 1), (jnp.abs(a) + 0.1, 0)), self.c)

    def test_nested(self):
        def outer(c, x):
            return lax.scan(lambda d, y: (d * 0.9 + y * x.sum(), None), c, jnp.stack([x, x * 2]))
        self.check(lambda c, xs: lax.scan(lambda c, x: (outer(c, x)[0], c.sum()), c, xs), self.c, self.xs)


class Branches(JaxCase):
    def test_cond(self):
        self.check(lambda a: lax.cond(a[0] > 0, lambda a: a + 1, lambda a: a * 2, a), array(6))

    def test_switch(self):
        branches = [lambda a: a, lambda a: a * 2, lambda a: a * 3]
        self.check(lambda a, i: lax.switch(i, branches, a), array(6), array(dtype=I))

    def test_gradient(self):
        self.check(self.gradient(lambda a: lax.cond(a[0] > 0, lambda a: a * a, lambda a: a * 2, a), 0), array(6))


class Calls(JaxCase):
    def test_checkpoint(self):
        self.check(self.gradient(jax.checkpoint(lambda a: jnp.tanh(jnp.sin(a))), 0), array(6))

    def test_custom_derivatives(self):
        @jax.custom_vjp
        def f(x):
            return jnp.sin(x)
        f.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * 3 * jnp.cos(x),))
        self.check(self.gradient(f, 0), array(6))

    def test_platforms(self):
        """Branches that JAX takes by platform are those of the host."""
        self.check(lambda x: lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x * 2), array(3, 4))
        self.check(lambda x: (jnp.trace(x), jnp.diag(x)), array(4, 4))


if __name__ == "__main__":
    unittest.main()
