# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A data-parallel step of bf16 parameters: f32 sums by default, of which the rounded gradient is gathered; bf16 ones on request."""

import unittest

from jax_case import JaxCase, array, jax, jnp, mesh_of, np
from jax.sharding import PartitionSpec as P

import tessera as ts

ROWS, WIDTH, HIDDEN = 64, 64, 128
BF = jnp.bfloat16


def step(w, x, y):
    def loss(w):
        return jnp.mean(((jnp.tanh(x @ w["a"]) @ w["b"]).astype(jnp.float32) - y) ** 2)
    return jax.tree.map(lambda p, g: (p - 0.5 * g).astype(p.dtype), w, jax.grad(loss)(w))


class NarrowReductions(JaxCase):
    def setUp(self):
        super().setUp()
        self.args = ({"a": array(WIDTH, HIDDEN, dtype=BF), "b": array(HIDDEN, WIDTH, dtype=BF)},
                     array(ROWS, WIDTH, dtype=BF), array(ROWS, WIDTH))
        whole = {"a": P(), "b": P()}
        self.program = ts.from_jax(step, self.args, (whole, P("d"), P("d")), whole, mesh=mesh_of(d=8))
        self.half = 2 * WIDTH * HIDDEN * 7 // 8  # elements that a reduce-scatter, or a gather, of both gradients sends

    def sent(self, **options):
        report = self.program.explain(**options)
        return [(c["kind"], c["dtype"]) for c in report["collectives"]], report["wire_bytes_total"]

    def test_bytes(self):
        self.assertEqual(self.sent(), ([("reduce_scatter", "f32"), ("all_gather", "bf16")], self.half * (4 + 2)))
        self.assertEqual(self.sent(narrow_reductions=True), ([("all_reduce", "bf16")], self.half * (2 + 2)))

    def test_values(self):
        """Rounding contributions changes little."""
        values = self.values(self.args, 1)
        want = jax.tree.leaves(jax.jit(step)(*values))
        given = [np.asarray(v) for v in jax.tree.leaves(values)]
        for options in {}, {"narrow_reductions": True}:
            got = ts.load(self.program.compile(**options))(*given)
            for one, other in zip(got, want):
                np.testing.assert_allclose(np.asarray(one, "f"), np.asarray(other, "f"), rtol=2e-2, atol=2e-2)

    def test_jit(self):
        mesh = ts.ProcessMesh([4], dim_names=["d"])
        random = np.random.default_rng(0)
        x, w = (random.standard_normal(shape).astype(np.float32) for shape in ((8, 64), (64, 8)))
        f = ts.jit(lambda a, b: a @ b, mesh=mesh, narrow_reductions=True)
        np.testing.assert_allclose(f(x, w).numpy(), x @ w, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
