# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""dot_general equals JAX's: batches, several summed dimensions, none, mixed types."""

import unittest

from jax_case import F, I, JaxCase, array, jnp
from jax import lax


class Contractions(JaxCase):
    def test_products(self):
        self.check(lambda a, b, c: (a @ b, a @ b[:, 0], jnp.einsum("ij,kj->ik", a, a), jnp.einsum("ij,bjk->bik", a, c),
                                    jnp.einsum("bij,bik->bjk", c, c)), array(4, 6), array(6, 5), array(3, 6, 5))

    def test_several_sums(self):
        self.check(lambda c: (jnp.einsum("bij,bik->jk", c, c), jnp.einsum("bij,bij->b", c, c)), array(3, 6, 5))

    def test_without_a_sum(self):
        self.check(lambda a, b: (jnp.outer(a[0], b[:, 0]), jnp.einsum("ij,ij->ij", a, a), jnp.einsum("ij,ik->ikj", a, a)), array(4, 6),
                   array(6, 5))

    def test_narrow_floats(self):
        self.check(lambda a, b: (a @ b, lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=F)),
                   array(4, 6, dtype=jnp.bfloat16), array(6, 5, dtype=jnp.bfloat16))

    def test_integers(self):
        self.check(lambda a: a @ a.T, array(4, 6, dtype=I))

    def test_gradients(self):
        self.check(self.gradient(lambda a, b: jnp.einsum("bqhe,bkhe->bhqk", a, b), 0, 1), array(2, 4, 3, 5), array(2, 6, 3, 5))


if __name__ == "__main__":
    unittest.main()
