# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic of pairs of element types, weak ones included, equals JAX's at the edges of their ranges.

Of the 169 pairs of types each function gets thirteen, different from those of the function before, with every type on either side;
`mixed_types.py --all` tries every pair (12 minutes).
"""

import itertools
import sys
import unittest
import warnings

from jax_case import JaxCase, jax, jnp, np
from jax import lax
from jax.scipy.special import xlog1py, xlogy

import tessera

jax.config.update("jax_enable_x64", True)

TYPES = [jnp.bool_, jnp.int8, jnp.int16, jnp.int32, jnp.int64, jnp.uint8, jnp.uint16, jnp.uint32, jnp.uint64,
         jnp.float16, jnp.bfloat16, jnp.float32, jnp.float64]
RELATIVE = {"float64": 1e-10, "float32": 1e-4, "bfloat16": 4e-2, "float16": 1e-2}
ALL = "--all" in sys.argv
turns = itertools.count()


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


@np.errstate(invalid="ignore")
def apart(actual, expected):
    """The elements in which two arrays differ; None if they agree."""
    a, b = np.asarray(actual), np.asarray(expected)
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{a.shape} instead of {b.dtype}{b.shape}"
    wrong = a != b
    if b.dtype.name in RELATIVE:
        x, y = a.astype(np.float64), b.astype(np.float64)
        bound = RELATIVE[b.dtype.name] * np.abs(y) + float(jnp.finfo(b.dtype).tiny)  # XLA makes subnormal results 0
        near = np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= bound)
        wrong &= ~(near | np.isnan(x) & np.isnan(y))
    if wrong.any():
        return f"{int(wrong.sum())} of {a.size} differ, at {int(np.argmax(wrong))} {a[wrong][0]} instead of {b[wrong][0]}"
    return None


def types_of(function_number):
    if ALL:
        return itertools.product(TYPES, TYPES)
    return [(s, TYPES[(5 * i + function_number) % len(TYPES)]) for i, s in enumerate(TYPES)]


class OurTypes(unittest.TestCase):
    def test_understood_by_numpy_and_jax(self):
        for dtype in tessera.dtypes.ALL:
            self.assertEqual(np.dtype(dtype), dtype.numpy)
            self.assertEqual(np.zeros(3, dtype).dtype, dtype.numpy)
            self.assertEqual(jnp.zeros(3, dtype).dtype, dtype.numpy)

    def test_tensor_as_example(self):
        """Arguments of an imported JAX program are described by our tensors, too, of every type."""
        values = np.arange(6).reshape(2, 3)
        for dtype in tessera.dtypes.ALL:
            example = tessera.Tensor(values.astype(dtype.numpy), dtype)
            program = tessera.from_jax(lambda a: jnp.concatenate([a["w"], a["w"]]), ({"w": example},))
            np.testing.assert_array_equal(np.asarray(program({"w": example})), np.concatenate([values.astype(dtype.numpy)] * 2))


class MixedTypes(JaxCase):
    def pairs(self, function, square=True):
        """Cases of the pairs of types that JAX takes, every number with every other."""
        cases = []
        for s, t in types_of(next(turns)):
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
        given = [(function, self.pairs(function, square)) for function in functions]
        if ALL:
            for one in given:
                self.compare([one])
        else:
            self.compare(given)

    def compare(self, given):
        together = lambda cases: [[function(a, b) for a, b in own] for (function, _), own in zip(given, cases)]
        cases = [own for _, own in given]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = jax.jit(together)(cases)
            actual = tessera.from_jax(together, (cases,))(cases)
        for (function, own), xs, ys in zip(given, actual, expected):
            for (a, b), x, y in zip(own, xs, ys):
                for one, other in zip(jax.tree.leaves(x), jax.tree.leaves(y), strict=True):
                    self.assertIsNone(apart(one, other), f"{getattr(function, '__name__', function)} of {a.dtype} and {b.dtype}")

    def test_powers(self):
        self.all(lax.pow, jnp.power, jnp.float_power)
        x = np.array([0.5, -2.0, 0.0, 3.0], np.float32)
        n = np.array([3, 0, -1, 2], np.int32)
        self.check(lambda x, n: (x ** n, 0.9 ** n, 2 ** n, x ** 3, x ** n[0], n ** 2, jnp.float16(1.5) ** n), *[jax.ShapeDtypeStruct(v.shape, v.dtype) for v in (x, n)],
                   values=[x, n])

    def test_gradient_of_a_power(self):
        self.check(lambda x, n: jax.grad(lambda x: jnp.sum(x ** n))(x), jax.ShapeDtypeStruct((4, 3), jnp.float32), jax.ShapeDtypeStruct((4, 3), jnp.int32))

    def test_gradients(self):
        def gradient(function):
            def of(*values):
                floats = tuple(i for i, v in enumerate(values) if jnp.issubdtype(v.dtype, jnp.floating))
                return jax.grad(lambda *v: jnp.sum(function(*v).astype(jnp.float32)), argnums=floats)(*values)
            return of
        self.all(*map(gradient, (jnp.multiply, jnp.subtract, jnp.maximum, jnp.mod, lambda a, b: jnp.where(b > 0, a, b),
                                 lambda a, b: a.at[3].add(b[1].astype(a.dtype)), lambda a, b: b.astype(a.dtype) * a)), square=False)

    def test_sums_and_products(self):
        self.all(jnp.add, jnp.subtract, jnp.multiply, lax.add, lax.sub, lax.mul, lambda a, b: a * b + a, lambda a, b: a - b * b)

    def test_quotients(self):
        self.all(jnp.divide, jnp.floor_divide, jnp.mod, jnp.fmod, jnp.divmod, jnp.remainder, lax.div, lax.rem)

    def test_extrema_and_ranges(self):
        self.all(jnp.maximum, jnp.minimum, jnp.fmax, jnp.fmin, lax.max, lax.min, lambda a, b: lax.clamp(b, a, b), lambda a, b: jnp.clip(a, b, b),
                 lambda a, b: jnp.where(a > 0, a, b))

    def test_comparisons(self):
        self.all(jnp.less, jnp.equal, jnp.greater, jnp.not_equal, jnp.isclose, lax.eq, lax.ne, lax.lt, lax.le, lax.gt, lax.ge)

    def test_bits(self):
        self.all(jnp.bitwise_and, jnp.bitwise_or, jnp.bitwise_xor, jnp.left_shift, jnp.right_shift, lax.shift_left, lax.shift_right_logical,
                 lax.shift_right_arithmetic, jnp.logical_and, jnp.logical_xor)

    def test_floats(self):
        self.all(jnp.arctan2, jnp.copysign, jnp.nextafter, jnp.ldexp, jnp.hypot, jnp.logaddexp, jnp.logaddexp2, jnp.heaviside, xlogy, xlog1py)

    def test_selection(self):
        self.all(lambda a, b: lax.select_n(a, b, b[::-1]), lambda a, b: lax.select_n(jnp.clip(a, 0, 2).astype(jnp.int32), b, b[::-1], b + b))

    def test_conversions(self):
        self.all(lambda a, b: a.astype(b.dtype), lambda a, b: jnp.full_like(a, 3, dtype=b.dtype), lambda a, b: jnp.concatenate([a, b]), square=False)
        self.all(lambda a, b: lax.bitcast_convert_type(a, b.dtype) if a.dtype.itemsize == b.dtype.itemsize and bool not in (a.dtype, b.dtype) else a,
                 square=False)

    def test_refusals(self):
        """Programs that JAX traces and cannot compile."""
        with self.assertRaisesRegex(tessera.Error, r"mixed_types.py:\d+:\d+: error: 'cumlogsumexp' of int32 is not supported; use astype"):
            tessera.from_jax(lambda x: lax.cumlogsumexp(x), (np.arange(4, dtype=np.int32),))

    def test_numbers(self):
        """Weak types of Python's numbers, and NumPy's scalars."""
        x = {np.dtype(t).name: edges(t, False) for t in TYPES}
        x = {name: v if v.dtype.kind in "biu" else np.where(np.isfinite(v), v, 1).astype(v.dtype) for name, v in x.items()}
        plus = {name: v for name, v in x.items() if v.dtype != bool}
        for number in (True, 2, -3, 0.5, np.int8(3), np.uint64(7), np.float16(3), np.float64(1.25), np.bool_(True)):
            given = plus if number == -3 else x  # -3 is no unsigned number

            def of(v, number=number):
                return v + number, v * number, v / number, jnp.maximum(v, number), jnp.where(v > 0, v, number), jnp.full_like(v, number)
            self.same_trees(lambda x: {name: of(v) for name, v in x.items()}, given)
            self.same_trees(lambda x: {name: (number ** v, v ** number) for name, v in x.items() if v.dtype.kind not in "iu" or number != -3}, plus)

    def same_trees(self, function, x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, actual = jax.jit(function)(x), tessera.from_jax(function, (x,))(x)
        for (path, a), b in zip(jax.tree_util.tree_flatten_with_path(actual)[0], jax.tree.leaves(expected), strict=True):
            self.assertIsNone(apart(a, b), jax.tree_util.keystr(path))

    def test_indexing(self):
        self.all(lambda a, b: a.at[jnp.array([1, 2, 2])].set(b[:3].astype(a.dtype)), lambda a, b: a[jnp.clip(b, 0, 7)] if b.dtype.kind in "iu" else a,
                 lambda a, b: a.at[3].add(b[1].astype(a.dtype)), lambda a, b: a.at[3].multiply(b[1]), lambda a, b: a.at[jnp.array([1, 1, 2])].max(b[:3]),
                 square=False)

    def test_products_of_matrices(self):
        self.all(lambda a, b: jnp.dot(a[:4].reshape(2, 2), b[:4].reshape(2, 2)), lambda a, b: jnp.outer(a[:3], b[:3]), square=False)

    def test_loops_and_branches(self):
        self.all(lambda a, b: lax.fori_loop(0, 3, lambda i, c: c + b.astype(c.dtype), a), lambda a, b: lax.cond(b[1] > 0, lambda: a, lambda: a + a),
                 square=False)


if __name__ == "__main__":
    unittest.main(argv=[a for a in sys.argv if a != "--all"])
