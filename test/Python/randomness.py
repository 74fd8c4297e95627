# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers are those of JAX, bit for bit, from raw words and from typed keys."""

import unittest

from jax_case import JaxCase, array, jax, jnp, np


class Random(JaxCase):
    key = np.array([7, 3_000_000_000], np.uint32)
    words = array(2, dtype=jnp.uint32)

    def test_bits(self):
        self.check(lambda k: (jax.random.bits(k, (4, 7)), jax.random.bits(k, (5,), jnp.uint16)), self.words, values=(self.key,))

    def test_keys(self):
        self.check(lambda k: (jax.random.split(k, 3), jax.random.fold_in(k, 5), jax.random.split(k)[1]), self.words, values=(self.key,))

    def test_distributions(self):
        self.check(lambda k: (jax.random.uniform(k, (4, 7)), jax.random.normal(k, (4, 7)), jax.random.randint(k, (9,), 0, 10),
                              jax.random.permutation(k, 6)), self.words, values=(self.key,))

    def test_dropout(self):
        def loss(w, k, x):
            return jnp.mean((jnp.where(jax.random.bernoulli(k, 0.8, x.shape), x, 0) @ w) ** 2)
        x, w = self.values((array(6, 5), array(5, 3)), 2)
        self.check(jax.grad(loss), array(5, 3), self.words, array(6, 5), values=(w, self.key, x))

    def test_typed_keys(self):
        def fn(k, x):
            first, second = jax.random.split(k)
            noise = jax.vmap(lambda k: jax.random.uniform(k, (3,)))(jax.random.split(first, 4))
            return noise + x, second
        key, x = jax.random.key(5), np.ones((4, 3), np.float32)
        import tessera
        program = tessera.from_jax(fn, (key, x))
        (noise, second), (expected, other) = program(key, x), fn(key, x)
        np.testing.assert_array_equal(noise, expected)
        np.testing.assert_array_equal(jax.random.key_data(second), jax.random.key_data(other))

    def test_keys_in_a_loop(self):
        def fn(k):
            return jax.lax.scan(lambda c, k: (c + jax.random.uniform(k), None), 0.0, jax.random.split(k, 5))[0]
        self.check(fn, self.words, values=(self.key,))

    def test_other_generators(self):
        for name in "rbg", "philox4x32":
            try:
                key = jax.random.key(3, impl=name)
            except ValueError:  # of later versions of JAX
                continue

            def draws(data, key=key):
                return (jax.random.normal(key, (7,)), jax.random.bits(jax.random.split(key)[1], (5,), np.uint8),
                        jax.random.randint(jax.random.fold_in(key, data), (4,), 0, 9))
            self.check(draws, array(dtype=jnp.int32), values=(np.int32(3),))

    def test_keys_that_move(self):
        keys = jax.random.split(jax.random.key(0), 6)  # closed over
        draw = jax.vmap(jax.random.uniform)
        self.check(lambda i: (draw(keys[i]), draw(keys.at[i].set(keys[:3])), draw(jnp.where(i > 1, keys[:3], keys[3:])), draw(jnp.tile(keys, 2)),
                              draw(jax.lax.dynamic_update_index_in_dim(keys, keys[0], i[0], 0)), keys[:3] == keys[i], keys[:3] != keys[1]),
                   array(3, dtype=jnp.int32), values=(np.int32([4, 1, 2]),))
        self.check(lambda data: jax.vmap(lambda n: jax.random.uniform(jax.random.fold_in(keys[0], n)))(data), array(4, dtype=jnp.int32))


if __name__ == "__main__":
    unittest.main()
