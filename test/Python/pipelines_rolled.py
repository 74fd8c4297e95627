# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX programs whose stages are an axis of the state, rolled by one after each micro-batch: activations go from each stage to the next once, and
their gradients back once, but for the last and first time, when nobody needs them. The results of the last stage are sent once, without those of
the iterations that fill the pipeline; a loss of them is computed by the last stage."""

import unittest

from jax_case import JaxCase, array, jnp, mesh_of
import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import tessera
from tessera.testing import difference

STAGES, MICRO_BATCHES, ROWS, WIDTH, LAYERS = 4, 6, 4, 8, 2
MESH = mesh_of(stage=STAGES)


def on_stages(state):
    return jax.lax.with_sharding_constraint(state, NamedSharding(MESH, P("stage", *[None] * (state.ndim - 1))))


def stage(weights, x):
    return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, weights)[0]


def pipeline(weights, batch):
    """All micro-batches through all stages, in MICRO_BATCHES + STAGES - 1 steps."""
    def step(state, x):
        out = on_stages(jax.vmap(stage)(weights, on_stages(state.at[0].set(x))))
        return on_stages(jnp.roll(out, 1, axis=0)), out[-1]
    batch = jnp.concatenate([batch, jnp.zeros((STAGES - 1, ROWS, WIDTH), batch.dtype)])
    return jax.lax.scan(step, on_stages(jnp.zeros((STAGES, ROWS, WIDTH), batch.dtype)), batch)[1][STAGES - 1:]


def train(weights, batch, targets):
    loss, gradient = jax.value_and_grad(lambda w: ((pipeline(w, batch) - targets) ** 2).mean())(weights)
    return weights - 0.1 * gradient, loss


ROUNDS = LAYERS * MICRO_BATCHES + STAGES - 1


def circular(weights, batch, emitted=lambda out, t: None):
    """All micro-batches through all stages LAYERS times, with another layer each time. `emitted` of the last stage's results and the step is
    stacked, if it is something, and returned as well."""
    def step(carry, t):
        state, stored = carry
        x = jnp.where(t < MICRO_BATCHES, batch[jnp.minimum(t, MICRO_BATCHES - 1)], stored[t % MICRO_BATCHES])
        layers = jnp.clip((t - jnp.arange(STAGES)) // MICRO_BATCHES, 0, LAYERS - 1)
        out = jax.vmap(lambda w, layer, x: jnp.tanh(x @ w[layer]), (1, 0, 0))(weights, layers, on_stages(state.at[0].set(x)))
        stored = stored.at[(t - (STAGES - 1)) % MICRO_BATCHES].set(out[-1])
        return (on_stages(jnp.roll(out, 1, axis=0)), stored), emitted(out[-1], t)
    start = on_stages(jnp.zeros((STAGES, ROWS, WIDTH))), jnp.zeros((MICRO_BATCHES, ROWS, WIDTH))
    (_, stored), stacked = jax.lax.scan(step, start, jnp.arange(ROUNDS))
    return stored if stacked is None else (stored, stacked)


class Rolled(JaxCase):
    avals = array(STAGES, LAYERS, WIDTH, WIDTH), *[array(MICRO_BATCHES, ROWS, WIDTH)] * 2

    def hops(self, program):
        """(bytes, executions) of transfers between stages."""
        return [(each["wire_bytes"], each["trips"]) for each in program.explain()["collectives"] if each["kind"] == "exchange"]

    def results(self, program):
        """(bytes, executions) of transfers from the last stage to other stages than the next."""
        return [(each["wire_bytes"], each["trips"]) for each in program.explain()["collectives"] if each["kind"] != "exchange"]

    def test_forward(self):
        program = tessera.from_jax(pipeline, self.avals[:2], (P("stage"), P()), mesh=MESH)
        self.assertEqual(self.hops(program), [(ROWS * WIDTH * 4, MICRO_BATCHES + STAGES - 2)])
        self.assertEqual(self.results(program), [(MICRO_BATCHES * ROWS * WIDTH * 4, 1)])

    def test_report(self):
        """The loop, and that of its derivative, have STAGES - 1 iterations with unused results."""
        report = tessera.from_jax(train, self.avals, (P("stage"), P(), P()), (P("stage"), P()), mesh=MESH).explain()
        found = [{key: each[key] for key in each if key != "loc"} for each in report["rolled_pipelines"]]
        iterations = MICRO_BATCHES + STAGES - 1
        self.assertEqual(found, [{"stages": STAGES, "micro_batches": MICRO_BATCHES, "iterations": iterations, "bubble": (STAGES - 1) / iterations}] * 2)

    def test_rings_are_no_pipelines(self):
        """A ring of keys has no new inputs."""
        def ring(queries, keys):
            def turn(state, _):
                keys, out = state
                return (on_stages(jnp.roll(keys, 1, axis=0)), out + jnp.einsum("srd,scd->src", queries, keys)), None
            return jax.lax.scan(turn, (keys, jnp.zeros((STAGES, ROWS, ROWS))), None, length=STAGES)[0][1]
        program = tessera.from_jax(ring, [array(STAGES, ROWS, WIDTH)] * 2, (P("stage"), P("stage")), mesh=MESH)
        self.assertNotIn("rolled_pipelines", program.explain())

    def test_training(self):
        program = tessera.from_jax(train, self.avals, (P("stage"), P(), P()), (P("stage"), P()), mesh=MESH)
        self.assertEqual(self.hops(program), [(ROWS * WIDTH * 4, MICRO_BATCHES + STAGES - 2)] * 2)
        self.assertEqual(self.results(program), [(4, 1)])  # the loss
        values = self.values(self.avals, 0)
        for mine, theirs in zip(program(*values), jax.jit(train)(*values)):
            self.assertIsNone(difference(np.asarray(mine), theirs, 16))

    def test_batch_cut_inside_stages(self):
        """Rows are cut over another axis: the program only sends results of a stage to the next."""
        mesh, stages = mesh_of(data=2, stage=2), 2

        def inside(state):
            return jax.lax.with_sharding_constraint(state, NamedSharding(mesh, P("stage", "data", None)))

        def pipeline(weights, batch):
            def step(state, x):
                out = inside(jax.vmap(stage)(weights, inside(state.at[0].set(x))))
                return inside(jnp.roll(out, 1, axis=0)), out[-1]
            batch = jnp.concatenate([batch, jnp.zeros((stages - 1, ROWS, WIDTH), batch.dtype)])
            return jax.lax.scan(step, inside(jnp.zeros((stages, ROWS, WIDTH), batch.dtype)), batch)[1][stages - 1:]
        avals, rows = (array(stages, LAYERS, WIDTH, WIDTH), array(MICRO_BATCHES, ROWS, WIDTH)), P(None, "data")
        program = tessera.from_jax(pipeline, avals, (P("stage"), rows), rows, mesh=mesh)
        self.assertEqual(self.hops(program), [(ROWS // 2 * WIDTH * 4, MICRO_BATCHES + stages - 2)])
        self.assertEqual(self.results(program), [(MICRO_BATCHES * ROWS // 2 * WIDTH * 4, 1)])
        values = self.values(avals, 0)
        self.assertIsNone(difference(np.asarray(program(*values)), jax.jit(pipeline)(*values), 16))

    def test_circular(self):
        """Each stage has a layer for each of two rounds; the last stage's results of the first round wait for the first stage. They wait where they
        are computed, and go from the last stage to the first as those of the others go on; the last time in a collective of their own."""
        avals = array(LAYERS, STAGES, WIDTH, WIDTH), array(MICRO_BATCHES, ROWS, WIDTH)
        program = tessera.from_jax(circular, avals, (P(None, "stage"), P()), P(), mesh=MESH)
        self.assertEqual(self.hops(program), [(ROWS * WIDTH * 4, 1), (ROWS * WIDTH * 4, ROUNDS - 1)])
        self.assertEqual(self.results(program), [(MICRO_BATCHES * ROWS * WIDTH * 4, 1)])
        values = self.values(avals, 0)
        self.assertIsNone(difference(np.asarray(program(*values)), jax.jit(circular)(*values), 16))

    def test_circular_with_losses(self):
        """A step reads the last stage's results in a branch, or makes one number of them."""
        avals = array(LAYERS, STAGES, WIDTH, WIDTH), array(MICRO_BATCHES, ROWS, WIDTH)
        values = self.values(avals, 0)
        for emitted in (lambda out, t: (out ** 2).sum(), lambda out, t: jax.lax.cond(t > 2, lambda: out * 2, lambda: out).sum(0)):
            def pipeline(weights, batch):
                return circular(weights, batch, emitted)
            program = tessera.from_jax(pipeline, avals, (P(None, "stage"), P()), mesh=MESH)
            for mine, theirs in zip(program(*values), jax.jit(pipeline)(*values)):
                self.assertIsNone(difference(np.asarray(mine), theirs, 16))

    def test_circular_training(self):
        avals = array(LAYERS, STAGES, WIDTH, WIDTH), *[array(MICRO_BATCHES, ROWS, WIDTH)] * 2

        def train(weights, batch, targets):
            return jax.value_and_grad(lambda w: ((circular(w, batch) - targets) ** 2).mean())(weights)
        program = tessera.from_jax(train, avals, (P(None, "stage"), P(), P()), mesh=MESH)
        values = self.values(avals, 0)
        for mine, theirs in zip(program(*values), jax.jit(train)(*values)):
            self.assertIsNone(difference(np.asarray(mine), theirs, 16))


if __name__ == "__main__":
    unittest.main()
