# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise primitives equal JAX's, broadcast operands and types included."""

import unittest

from jax_case import F, I, JaxCase, array, jax, jnp, np
from jax import lax

import tessera


class Elementwise(JaxCase):
    x = array(4, 7)

    def test_unary(self):
        names = "exp exp2 expm1 sin cos tan sinh cosh tanh arcsinh arctan floor ceil round sign abs cbrt square isfinite".split()
        self.check(lambda x: [getattr(jnp, n)(x) for n in names], self.x)

    def test_on_part_of_the_line(self):
        self.check(lambda x: [f(jnp.abs(x) + 0.1) for f in (jnp.log, jnp.log1p, jnp.sqrt, lax.rsqrt)], self.x)
        self.check(lambda x: [f(jnp.clip(x, -0.9, 0.9)) for f in (jnp.arcsin, jnp.arccos, jnp.arctanh)], self.x)
        self.check(lambda x: jnp.arccosh(2 + x * x), self.x)

    def test_special(self):
        self.check(lambda x: (lax.erf(x), lax.erfc(x), lax.logistic(x)), self.x)

    def test_binary(self):
        self.check(lambda a, b: (a + b, a - b, a * b, a / b, jnp.maximum(a, b), jnp.minimum(a, b), jnp.arctan2(a, b),
                                 jnp.power(jnp.abs(a), b), lax.rem(a, b)), self.x, self.x)

    def test_powers(self):
        self.check(lambda a: (a ** 0, a ** 1, a ** 3, a ** 7, a ** -1, a ** -2), self.x)

    def test_comparisons(self):
        self.check(lambda a, b: (a < b, a <= b, a > b, a >= b, a == b, a != b, ~(a < b), (a < b) & (b > 0), (a < b) | (b > 0),
                                 (a < b) ^ (b > 0)), self.x, self.x)

    def test_integers(self):
        x = array(4, 7, dtype=I)
        self.check(lambda a, b: (a + b, a - b, a * b, -a, ~a, a & b, a | b, a ^ b, jnp.maximum(a, b), jnp.minimum(a, b),
                                 jnp.abs(a - b), jnp.sign(a - b), lax.clz(a), lax.population_count(a)), x, x, below=50)

    def test_integer_division(self):
        x = array(4, 7, dtype=I)
        self.check(lambda a, b: (lax.div(a - 20, b - 2), lax.rem(a - 20, b - 2), a // (b + 1), a % (b + 1)), x, x, below=50)

    def test_integer_division_by_constants(self):
        x, u = array(4, 7, dtype=I), array(4, 7, dtype=jnp.uint32)
        self.check(lambda a, u: ([(lax.div(a - 20, c), lax.rem(a - 20, c), (a - 20) // c, (a - 20) % c) for c in (7, -3, -1)],
                                 u // 7, u % 7), x, u, below=50)
        text = tessera.from_jax(lambda a: a // 7, [x]).lower("normalized")
        self.assertIn("arith.floordivsi", text)
        self.assertNotIn("arith.select", text)

    def test_narrow_integers_are_divided_by_literals(self):
        for dtype in ("i1", "u1", "i2", "u2", "u4"):
            x = np.arange(40).astype(dtype) * 3
            self.check(lambda x: (x // 7, x // x.dtype.type(7), x // jnp.maximum(x[:1], 5)), array(40, dtype=dtype), values=(x,))
        self.check(lambda x, y: y // jnp.int32(7) + x, array(4, dtype=I), array(4, dtype="i2"))

    def test_division_is_recognised_by_its_program_not_by_its_name(self):
        @jax.jit
        def floor_divide(a, b):
            return a * b + 1
        x = np.arange(-5, 5, dtype="i4")
        self.assertIn("floordivsi", tessera.from_jax(lambda x: x // 3, (x,)).mlir)
        program = tessera.from_jax(lambda x: floor_divide(x, 3), (x,))
        self.assertNotIn("div", program.mlir.replace("floor_divide", ""))
        np.testing.assert_array_equal(program(x), x * 3 + 1)

    def test_progressions_that_are_closed_over(self):
        """Constants that are a function of an index are not stored as numbers."""
        rows, columns = 5 - 3 * np.arange(66, dtype="i").reshape(66, 1), np.arange(80, dtype="i") * np.ones((66, 1), "i")
        other = rows * columns
        fn = lambda x: x + rows, lambda x: x + columns, lambda x: x + other
        self.check(lambda x: [f(x) for f in fn], array(66, 80, dtype=I))
        for f, is_kept in zip(fn, (False, False, True)):
            text = tessera.from_jax(f, [array(66, 80, dtype=I)]).lower("normalized")
            self.assertEqual('dense<"0x' in text, is_kept)

    def test_shifts(self):
        x = array(4, 7, dtype=I)
        self.check(lambda a, b: (a << b, (a - 20) >> b, lax.shift_right_logical(a - 20, b)), x, x, below=40)

    def test_unsigned(self):
        x = array(4, 7, dtype=jnp.uint32)
        self.check(lambda a, b: (a + b, a // b, a % b, a < b, a >> 1, jnp.maximum(a, b), a.astype(F), a.astype(I)), x, x,
                   below=4_000_000_000)

    def test_ties_are_rounded_to_even_or_away(self):
        ties = [(np.arange(28, dtype=np.float32).reshape(4, 7) - 14) / 2]
        self.check(lambda x: (jnp.round(x), lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)), array(4, 7), values=ties)

    def test_conversions(self):
        x, n = array(4, 7), array(4, 7, dtype=I)
        self.check(lambda x, n: (x.astype(I), (x * 1e12).astype(I), x.astype(bool), n.astype(F), n.astype(jnp.int8), n.astype(bool),
                                 (n > 1).astype(F), (n > 1).astype(I), (x * 300).astype(jnp.uint8)), x, n, below=300)

    def test_narrow_floats(self):
        self.check(lambda x: (x.astype(jnp.bfloat16).astype(F), x.astype(jnp.float16).astype(F),
                              x.astype(jnp.bfloat16) * x.astype(jnp.bfloat16)), self.x)

    def test_broadcast(self):
        self.check(lambda a, b, c: (a + b, a * c, jnp.where(a > 0, b, 0.0), jnp.clip(a, -0.1, 0.1), b + c), array(3, 4, 7), array(4, 1),
                   array())

    def test_activations(self):
        nn = jax.nn
        self.check(lambda x: (nn.softmax(x), nn.log_softmax(x, axis=0), nn.logsumexp(x, axis=0), nn.gelu(x), nn.gelu(x, approximate=False),
                              nn.silu(x), nn.relu(x), nn.softplus(x), nn.elu(x), nn.leaky_relu(x)), self.x)

    def test_gradients(self):
        self.check(self.gradient(lambda a, b: jax.nn.gelu(a) * jax.nn.softmax(b) + jnp.clip(a, -0.2, 0.3), 0, 1), self.x, self.x)

    def test_constants(self):
        table = jnp.sin(jnp.arange(28.0)).reshape(4, 7)
        self.check(lambda a: (a + table, jnp.where(jnp.arange(28).reshape(4, 7) % 3 == 0, a, 0), a * 2.5), self.x)

    def test_formats(self):
        """Narrower floats, and bits as elements of another width."""
        x = np.concatenate([np.random.default_rng(0).standard_normal(20) * 1000, [np.inf, -np.inf, np.nan, 1e-9, 1e9, 65504, 65520, -0.0]]).astype(np.float32)
        self.check(lambda x: [lax.reduce_precision(x, *bits) for bits in ((5, 10), (8, 7), (4, 3), (5, 2), (8, 23), (3, 12))], x, values=(x,))
        self.check(lambda x: (lax.bitcast_convert_type(x, np.uint8), lax.bitcast_convert_type(lax.bitcast_convert_type(x, np.int16), np.float32)), x,
                   values=(x,))
        n = np.int32([-2 ** 31, 2 ** 31 - 1, 12345678, -7])
        if hasattr(lax, "mulhi"):
            self.check(lambda n: (lax.mulhi(n, n[::-1]), lax.mulhi(n.astype(np.uint32), n[::-1].astype(np.uint32))), n, values=(n,))


if __name__ == "__main__":
    unittest.main()
