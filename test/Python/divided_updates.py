# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Devices that share a batch divide the optimizer's update, keep moments in parts, and send what an all-reduce sends."""

import os
import unittest

from jax_case import JaxCase, array, jax, jnp, mesh_of, np
from jax.sharding import PartitionSpec as P

import tessera as ts

ROWS, WIDTH, HIDDEN = 32, 64, 256
CORES = os.path.join(os.path.dirname(__file__), "..", "..", "share", "topologies", "2core.json")
WEIGHTS = {"a": array(WIDTH, HIDDEN), "b": array(HIDDEN, WIDTH), "bias": array(WIDTH)}
BYTES = 4 * 2 * WIDTH * HIDDEN  # of the two matrices


def loss(w, x, y):
    return jnp.mean((jnp.tanh(x @ w["a"]) @ w["b"] + w["bias"] - y) ** 2)


def descent(w, x, y):
    error, g = jax.value_and_grad(loss)(w, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * jnp.tanh(g), w, g), error


def momentum(w, m, x, y):
    error, g = jax.value_and_grad(loss)(w, x, y)
    m = jax.tree.map(lambda m, g: 0.9 * m + g, m, g)
    return jax.tree.map(lambda p, m: p - 0.1 * m, w, m), m, error


def adam(w, m, v, x, y, clip=False):
    error, g = jax.value_and_grad(loss)(w, x, y)
    if clip:
        norm = jnp.sqrt(sum(jnp.sum(each * each) for each in jax.tree.leaves(g)))
        g = jax.tree.map(lambda each: each * jnp.minimum(1, 0.1 / norm), g)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)
    w = jax.tree.map(lambda p, m, v: p - 0.01 * m / (jnp.sqrt(jnp.abs(v) + 0.1) + 1e-3) - 1e-3 * p, w, m, v)
    return w, m, v, error


def clipped(w, m, v, x, y):
    return adam(w, m, v, x, y, clip=True)


def skipping(w, m, v, x, y):
    """No step where a gradient is large, as is the third of this test."""
    error, g = jax.value_and_grad(loss)(w, x, y)
    small = jnp.all(jnp.array([jnp.all(jnp.abs(each) < 0.234) for each in jax.tree.leaves(g)]))

    def update():
        nextM = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        nextV = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)
        return jax.tree.map(lambda m, v: -0.01 * m / (jnp.sqrt(jnp.abs(v) + 0.1) + 1e-3), nextM, nextV), nextM, nextV
    change, m, v = jax.lax.cond(small, update, lambda: (jax.tree.map(jnp.zeros_like, w), m, v))
    return jax.tree.map(jnp.add, w, change), m, v, error


STEPS = {descent: 0, momentum: 1, adam: 2, clipped: 2, skipping: 2}  # trees of state


class DividedUpdates(JaxCase):
    def program(self, step, mesh, batch, weights=None, state=None):
        trees = STEPS[step]
        args = (WEIGHTS,) * (1 + trees) + (array(ROWS, WIDTH), array(ROWS, WIDTH))
        return args, ts.from_jax(step, args, (weights, *[state] * trees, P(batch), P(batch)), mesh=mesh)

    def check_values(self, args, program, step):
        """Three steps equal JAX's."""
        values = self.values(args, 1)
        run = ts.load(program.compile(topology=CORES))
        data = values[-2:]
        got, want = jax.tree.leaves(values[:-2]), values[:-2]
        for _ in range(3):
            *got, error = run(*map(np.asarray, got), *map(np.asarray, data))
            self.assertTrue(np.isfinite(error))
            *want, expected = jax.jit(step)(*want, *data)
            for one, other in zip((*got, error), (*jax.tree.leaves(want), expected)):
                np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=2e-5, atol=2e-5)

    def placed(self, report):
        return {each["name"]: each["sharding"] for each in report["arguments"]}

    def test_steps(self):
        for step in STEPS:
            with self.subTest(step=step.__name__):
                args, program = self.program(step, mesh_of(d=4), "d")
                report = program.explain(topology=CORES)
                kinds = [each["kind"] for each in report["collectives"]]
                self.assertEqual((kinds.count("reduce_scatter"), kinds.count("all_gather")), (1, 1), kinds)
                small = 2 * 3 * 4 * (WIDTH + 8)  # a bias, the loss and norms
                self.assertLessEqual(report["wire_bytes_total"], 2 * BYTES * 3 // 4 + small)
                for name, sharding in self.placed(report).items():
                    isCut = "shard(0)" in sharding
                    self.assertEqual(isCut, name in ("x", "y") or name.split(".")[0] in "mv" and not name.endswith("bias"), (name, sharding))
                self.check_values(args, program, step)

    def test_two_axes(self):
        """A batch that two axes cut, and weights that one axis cuts."""
        for mesh, batch, weights in ((mesh_of(d=2, f=4), ("d", "f"), None), (mesh_of(d=2, t=2), "d", {"a": P(None, "t"), "b": P("t"), "bias": P()})):
            args, program = self.program(adam, mesh, batch, weights)
            report = program.explain(topology=CORES)
            placed = self.placed(report)
            self.assertEqual(placed["m.a"].count("shard("), 2, placed)
            self.assertEqual(placed["w.a"].count("shard("), 0 if weights is None else 1)
            self.check_values(args, program, adam)

    def test_annotated_state(self):
        """State that the user wants whole stays whole."""
        whole = {name: P() for name in WEIGHTS}
        args, program = self.program(momentum, mesh_of(d=4), "d", whole, whole)
        report = program.explain(topology=CORES)
        self.assertEqual({s for n, s in self.placed(report).items() if n[0] in "wm"}, {"#dist.sharding<@mesh, [replicate]>"})
        self.check_values(args, program, momentum)

    def test_little_work(self):
        """An update that takes less time than latencies is not divided."""
        _, program = self.program(adam, mesh_of(d=4), "d")
        self.assertEqual([each["kind"] for each in program.explain()["collectives"]], ["all_reduce"])

    def test_jit(self):
        """State in parts comes back in parts; each call continues from it."""
        mesh = ts.ProcessMesh([4], dim_names=["d"])
        random = np.random.default_rng(1)
        w, m = random.standard_normal((WIDTH, HIDDEN)).astype("f") / 8, np.zeros((WIDTH, HIDDEN), "f")
        x = random.standard_normal((ROWS, WIDTH)).astype("f")

        @ts.jit(topology=CORES)
        def step(w, m, x):
            error, g = ts.value_and_grad(lambda w, x: ts.ops.mean(ts.ops.tanh(x @ w) * (x @ w)))(w, x)
            m = m * 0.9 + g
            return w - m * 0.1, m, error

        def expected(w, m, x):
            error, g = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) * (x @ w)))(w)
            m = 0.9 * m + g
            return w - 0.1 * m, m, error
        got, want = (w, m), (w, m)
        batch = ts.shard_tensor(ts.asarray(x), mesh, [ts.Shard(0)])
        for _ in range(3):
            *got, error = step(*got, batch)
            *want, wanted = jax.jit(expected)(*want, x)
            np.testing.assert_allclose(float(error), float(wanted), rtol=1e-5)
            for one, other in zip(got, want):
                np.testing.assert_allclose(one.numpy(), np.asarray(other), rtol=2e-5, atol=2e-5)

    def test_initialised_state(self):
        """State that an optimizer initialises like a weight, which one axis cuts, is divided along the other axis."""
        mesh, data = ts.ProcessMesh([[0, 1], [2, 3]], dim_names=["d", "t"]), ts.optim.AdamW(1e-2)
        random = np.random.default_rng(1)
        x = random.standard_normal((ROWS, WIDTH)).astype("f")

        def train(mesh):
            ts.nn.init.seed(0)
            model = ts.nn.Sequential(ts.nn.Linear(WIDTH, HIDDEN), ts.nn.relu, ts.nn.Linear(HIDDEN, WIDTH))
            batch = ts.asarray(x)
            if mesh:
                cuts = {"layers.0.weight": 1, "layers.0.bias": 0, "layers.2.weight": 0}
                model = ts.optim.shard_parameters(model, mesh, lambda name, p: [ts.Replicate(), ts.Shard(cuts[name])] if name in cuts else None)
                batch = ts.shard_tensor(batch, mesh, [ts.Shard(0)])

            @ts.jit(topology=CORES)
            def step(model, state, x):
                error, g = ts.value_and_grad(lambda model, x: ts.nn.mse_loss(model(x), x))(model, x)
                return *data.update(model, g, state), error
            state, errors = data.init(model), []
            for _ in range(3):
                model, state, error = step(model, state, batch)
                errors.append(float(error))
            return step.explain(model, state, batch), state, errors

        report, state, errors = train(mesh)
        np.testing.assert_allclose(errors, train(None)[2], rtol=1e-5)
        placed = self.placed(report)
        for slot in "mv":
            for layer in (0, 2):
                self.assertEqual(placed[f"state.{slot}.layers.{layer}.weight"].count("shard("), 2, placed)
                self.assertEqual(placed[f"model.layers.{layer}.weight"].count("shard("), 1, placed)
        self.assertEqual(state["m"]["layers.0.weight"].placements, (ts.Open(), ts.Shard(1)))


if __name__ == "__main__":
    unittest.main()
