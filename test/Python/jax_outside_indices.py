# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indices outside of a table whose rows are cut: what is computed of the fill value, masked look-ups, updates that clamp."""

import unittest

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import tessera as ts

MESH = AbstractMesh((8,), ("s",))
random = np.random.default_rng(0)


class Outside(unittest.TestCase):
    def check(self, fn, args, ins, out):
        got = np.asarray(ts.from_jax(fn, args, ins, out, mesh=MESH)(*args))
        np.testing.assert_allclose(got, np.asarray(jax.jit(fn)(*args)), rtol=1e-5, atol=1e-6)

    def test_functions_of_rows_of_two_tables(self):
        rows = 8192
        a, b = (random.standard_normal((rows, 16)).astype("f") for _ in "ab")
        i = random.integers(0, rows, 64).astype("i")
        i[:3] = [-1, rows, rows + 5]

        def fn(a, b, i):
            one = jax.nn.one_hot(i, rows)
            return jax.nn.sigmoid((one @ a) * (one @ b))
        self.check(fn, (a, b, i), (P("s"), P("s"), P()), P())

    def test_updates_of_what_is_looked_up(self):
        x, i, m = np.arange(64, dtype="f"), np.array([3, 9, 40], "i"), np.array([True, False, True])
        outside = np.array([3, 9, 400], "i")

        def read(x, i):
            return x.at[i].get(mode="fill", fill_value=0, wrap_negative_indices=False)

        def write(mode, value):
            return lambda x, i, m: x.at[i].set(2 * value(x, i, m) + 1, mode=mode, wrap_negative_indices=False)
        masked = write("drop", lambda x, i, m: read(x, jnp.where(m, i, -1)))
        plain = write("drop", lambda x, i, m: read(x, i))
        clamped = write("clip", lambda x, i, m: read(x, i))
        both = write("clip", lambda x, i, m: x.at[i].get(mode="clip", wrap_negative_indices=False))
        for fn, index in ((masked, i), (plain, i), (plain, outside), (clamped, outside), (both, outside)):
            self.check(fn, (x, index, m), (P("s"), P(), P()), P("s"))


if __name__ == "__main__":
    unittest.main()
