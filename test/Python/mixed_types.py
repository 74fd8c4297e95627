# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic of every pair of element types, weak ones included, equals JAX's at the edges of their ranges."""

import itertools
import unittest
import warnings

from jax_case import JaxCase, jax, jnp, np
from jax import lax

import tessera
from tessera.testing import difference

TYPES = [jnp.bool_, jnp.int8, jnp.int32, jnp.uint8, jnp.uint32, jnp.float16, jnp.bfloat16, jnp.float32]


def edges(dtype, large):
    """Numbers of a type: 0, the least and the greatest, infinite ones, NaN. Without `large` those that every float holds exactly."""
    dtype = np.dtype(dtype)
    if dtype == bool:
        return np.array([0, 1, 1, 0, 1, 0, 0, 1], bool)
    if dtype.kind in "iu":
        limits, signed = np.iinfo(dtype), dtype.kind == "i"
        ends = [limits.max, limits.min, limits.max - 1, limits.min + 1] if large else [100, -101 if signed else 101, 64, -1 if signed else 5]
        return np.array([0, 1, 2, 3, *ends], dtype)
    return np.array([0.0, -0.0, 1.5, -2.0, np.inf, np.nan, 3.0, -0.25]).astype(dtype)


class MixedTypes(JaxCase):
    def pairs(self, function, square=True):
        """Cases of all pairs of types that JAX takes, every number with every other."""
        cases = []
        for s, t in itertools.product(TYPES, TYPES):
            kinds = {np.dtype(s).kind in "biu", np.dtype(t).kind in "biu"}
            a, b = edges(s, len(kinds) == 1), edges(t, len(kinds) == 1)
            if np.dtype(bool) in (a.dtype, b.dtype) and len(kinds) == 2:  # XLA: False * NaN is 0
                a, b = [v if v.dtype == bool else np.where(np.isfinite(v), v, 1).astype(v.dtype) for v in (a, b)]
            case = (np.repeat(a, 8), np.tile(b, 8)) if square else (a, np.roll(b, 3))
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    jax.eval_shape(function, *case)
            except Exception:  # JAX's own, of many kinds
                continue
            cases.append(case)
        return cases

    def all(self, *functions, square=True):
        for function in functions:
            cases = self.pairs(function, square)
            together = lambda cases: [function(a, b) for a, b in cases]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = jax.jit(together)(cases)
                actual = tessera.from_jax(together, (cases,))(cases)
            self.assertTrue(cases)
            for (a, b), x, y in zip(cases, actual, expected):
                for one, other in zip(jax.tree.leaves(x), jax.tree.leaves(y), strict=True):
                    self.assertIsNone(difference(np.asarray(one), np.asarray(other)), f"{function} of {a.dtype} and {b.dtype}")

    def test_powers(self):
        self.all(lax.pow, jnp.power)
        x = np.array([0.5, -2.0, 0.0, 3.0], np.float32)
        n = np.array([3, 0, -1, 2], np.int32)
        self.check(lambda x, n: (x ** n, 0.9 ** n, 2 ** n, x ** 3, x ** n[0], n ** 2, jnp.float16(1.5) ** n), *[jax.ShapeDtypeStruct(v.shape, v.dtype) for v in (x, n)],
                   values=[x, n])

    def test_gradient_of_a_power(self):
        self.check(lambda x, n: jax.grad(lambda x: jnp.sum(x ** n))(x), jax.ShapeDtypeStruct((4, 3), jnp.float32), jax.ShapeDtypeStruct((4, 3), jnp.int32))

    def test_sums_and_products(self):
        self.all(jnp.add, jnp.multiply)

    def test_quotients(self):
        self.all(jnp.floor_divide, jnp.remainder, lax.div, lax.rem)

    def test_extrema_and_ranges(self):
        self.all(jnp.maximum, lambda a, b: lax.clamp(b, a, b), lambda a, b: jnp.where(a > 0, a, b))

    def test_comparisons(self):
        self.all(jnp.less, jnp.equal)

    def test_bits(self):
        self.all(jnp.bitwise_and, jnp.left_shift, jnp.right_shift, lax.shift_right_logical)

    def test_floats(self):
        self.all(jnp.arctan2, jnp.copysign, jnp.nextafter, jnp.ldexp)

    def test_selection(self):
        self.all(lambda a, b: lax.select_n(a, b, b[::-1]), lambda a, b: lax.select_n(jnp.clip(a, 0, 2), b, b[::-1], b + b))

    def test_conversions(self):
        self.all(lambda a, b: a.astype(b.dtype), square=False)

    def test_numbers_of_python(self):
        """Weak types."""
        x = {np.dtype(t).name: edges(t, False) for t in TYPES}
        plus = {name: v for name, v in x.items() if v.dtype != bool}
        for number in (True, 2, -3, 0.5):
            for function in (lambda v: v + number, lambda v: v * number, lambda v: v / number, lambda v: jnp.maximum(v, number)):
                given = plus if number == -3 else x  # -3 is no unsigned number
                self.same_trees(lambda x: {name: function(v) for name, v in x.items()}, given)
            self.same_trees(lambda x: {name: (number ** v, v ** number) for name, v in x.items() if v.dtype.kind not in "iu" or number != -3}, plus)

    def same_trees(self, function, x):
        expected, actual = jax.jit(function)(x), tessera.from_jax(function, (x,))(x)
        for (path, a), b in zip(jax.tree_util.tree_flatten_with_path(actual)[0], jax.tree.leaves(expected), strict=True):
            self.assertIsNone(difference(np.asarray(a), np.asarray(b)), jax.tree_util.keystr(path))

    def test_indexing(self):
        self.all(lambda a, b: a.at[jnp.array([1, 2, 2])].set(b[:3].astype(a.dtype)), lambda a, b: a[jnp.clip(b, 0, 7)] if b.dtype.kind in "iu" else a,
                 lambda a, b: a.at[3].add(b[1].astype(a.dtype)), square=False)

    def test_products_of_matrices(self):
        self.all(lambda a, b: jnp.dot(a[:4].reshape(2, 2), b[:4].reshape(2, 2)), square=False)


if __name__ == "__main__":
    unittest.main()
