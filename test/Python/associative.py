# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lax.associative_scan of functions of elements is one scan, and so are its derivatives; other functions are unrolled."""

import unittest

from jax_case import I, JaxCase, array, jnp, mesh_of
import jax
from jax import lax
from jax.lax import associative_scan as scan_of_jax  # before the import of tessera
from jax.sharding import PartitionSpec as P

import tessera


def states(a, b, reverse=False):
    """y[i] = a[i] y[i - 1] + b[i]"""
    combine = lambda l, r: (l[0] * r[0], r[0] * l[1] + r[1])
    return lax.associative_scan(combine, (jax.nn.sigmoid(a), b), reverse=reverse)[1]


def rows(a, b, reverse=False):
    """The same where a[i] is one factor for each row of b[i]."""
    combine = lambda l, r: (l[0] * r[0], l[1] * r[0][..., None] + r[1])
    return lax.associative_scan(combine, (jax.nn.sigmoid(a), b), reverse=reverse)


def kept(a, b):
    """a has extents of 1 and the scanned dimension is the last one."""
    combine = lambda l, r: (l[0] * r[0], l[1] * r[0] + r[1])
    return lax.associative_scan(combine, (jnp.tanh(a)[:, None], b), axis=-1)[1]


def running_softmax(x):
    def combine(l, r):
        m = jnp.maximum(l[0], r[0])
        return m, l[1] * jnp.exp(l[0] - m) + r[1] * jnp.exp(r[0] - m)
    return lax.associative_scan(combine, (x, jnp.ones_like(x)))


def rotations(x, size, angle):
    """States of a diagonal complex recurrence, and their norm."""
    a = jnp.broadcast_to(jnp.exp(-jnp.exp(size) + 1j * angle), x.shape)
    combine = lambda l, r: (l[0] * r[0], r[0] * l[1] + r[1])
    return lax.associative_scan(combine, (a, x.astype(jnp.complex64)), axis=1)[1]


class AssociativeScan(JaxCase):
    x, n = array(10, 3), array(10, 3, dtype=I)

    def test_one_scan(self):
        # Another spelling than the cached one of an earlier trace of the function.
        jax.eval_shape(states, self.x, self.x)
        text = str(tessera.from_jax(states, (self.x, self.x)))
        self.assertEqual(text.count("ext.scan"), 1)

    def test_values(self):
        self.check(lambda a, n: (states(a, a), states(a, a, True), lax.associative_scan(jnp.maximum, n, axis=1)), self.x, self.n)

    def test_other_names(self):
        """Calls of the function by a name that it got before."""
        self.assertIn("ext.scan", str(tessera.from_jax(lambda x: scan_of_jax(jnp.add, x), (array(5),))))

    def test_other_functions(self):
        products = lambda x: lax.associative_scan(jnp.matmul, x.reshape(-1, 2, 2))
        self.check(products, array(6, 4))

    def test_mapped(self):
        self.check(lambda a, b: jax.vmap(jax.jit(states), in_axes=(1, None), out_axes=1)(a, b), self.x, array(10))

    def test_derivatives(self):
        self.check(self.gradient(states, 0, 1), self.x, self.x)
        self.check(self.gradient(lambda a: running_softmax(a)[1], 0), self.x)
        self.check(lambda a: jax.jvp(states, (a, a), (a + 1, a * 2))[1], self.x)

    def test_complex_elements(self):
        """Pairs of real ones: one scan, with its derivatives, which devices may share along the scan, too."""
        norm = lambda *given: jnp.sum(jnp.abs(rotations(*given)) ** 2)
        x, n = array(4, 8, 3), array(3)
        self.check(lambda *given: (rotations(*given).real, rotations(*given).imag), x, n, n)
        self.check(jax.value_and_grad(norm, (0, 1, 2)), x, n, n)
        self.assertEqual(str(tessera.from_jax(rotations, (x, n, n))).count("ext.scan"), 1)

    def test_bytes(self):
        """Two elements per line and round, in three rounds of eight devices."""
        a = array(1024, 64)
        plan = tessera.from_jax(states, (a, a), (P("x"), P("x")), P("x"), mesh=mesh_of(x=8)).explain()
        self.assertEqual(plan["wire_bytes_total"], 2 * 3 * 64 * 4)

    def test_bytes_of_gradients(self):
        """As much again backwards, since only summands have a derivative, and a row of factors and of states from a neighbor."""
        a = array(1024, 64)
        gradients = jax.grad(lambda a, b: jnp.sum(states(a, b) ** 2), (0, 1))
        program = tessera.from_jax(gradients, (a, a), (P("x"), P("x")), P("x"), mesh=mesh_of(x=8))
        self.assertEqual(program.explain()["wire_bytes_total"], (2 * 2 * 3 + 2) * 64 * 4)

    def test_repeated_factors(self):
        """A function that repeats one array along a dimension of another is one scan, too, and gets as much of it."""
        a, b = array(9, 3), array(9, 3, 2)
        for reverse in (False, True):
            self.check(lambda a, b: rows(a, b, reverse), a, b)
            self.check(self.gradient(lambda a, b: rows(a, b, reverse)[1], 0, 1), a, b)
        self.check(self.gradient(lambda a, b: sum(map(jnp.sum, rows(a, b))), 0, 1), a, b)
        self.check(kept, array(3, 9), array(3, 2, 9))
        self.check(lambda a, b: jax.vmap(rows, in_axes=(1, None))(a, b)[1], array(9, 4, 3), b)
        self.assertEqual(str(tessera.from_jax(rows, (a, b))).count("ext.scan"), 1)
        # What combines elements of different places remains JAX's expansion.
        flipped = lambda x: lax.associative_scan(lambda l, r: l[..., ::-1] + r, x)
        self.assertNotIn("ext.scan", str(tessera.from_jax(flipped, (a,))))

    def test_bytes_of_repeated_factors(self):
        """A device sends one factor for the states of a row; backwards factors and states of the neighbor, too."""
        a, b = array(1024, 64), array(1024, 64, 16)
        cuts = (P("x"), P("x"))
        plan = tessera.from_jax(lambda a, b: rows(a, b)[1], (a, b), cuts, P("x"), mesh=mesh_of(x=8)).explain()
        self.assertEqual(plan["wire_bytes_total"], 3 * 64 * (1 + 16) * 4)
        gradients = jax.grad(lambda a, b: jnp.sum(rows(a, b)[1] ** 2), (0, 1))
        plan = tessera.from_jax(gradients, (a, b), cuts, P("x"), mesh=mesh_of(x=8)).explain()
        self.assertEqual(plan["wire_bytes_total"], (2 * 3 + 1) * 64 * (1 + 16) * 4)

    def test_blocks(self):
        """Two pairs that depend on each other, and one that does not: the recurrences of the derivatives are apart."""
        def combine(first, then):
            (a, b, c), (d, e, f) = first, then
            return a * d, b * d + e, c + f + c * f
        loss = lambda a, b, c: sum(jnp.sum(jnp.sin(x)) for x in lax.associative_scan(combine, (a, b, c))[1:])
        self.check(jax.grad(loss, (0, 1, 2)), self.x, self.x, self.x)
        self.check(lambda a, b, c: jax.grad(lambda a: jnp.sum(jax.jvp(lambda a: loss(a, b, c), (a,), (b,))[1]))(a), self.x, self.x, self.x)


if __name__ == "__main__":
    unittest.main()
