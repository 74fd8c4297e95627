# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parallel programs that state their communication, for operations.py: pipelines of 8 stages in shard_map and as rolls, FSDP in shard_map."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

STAGES, MICRO_BATCHES, ROWS, WIDTH = 8, 16, 32, 64
SHIFT = ROWS * WIDTH * 4  # bytes that a stage passes on


def mapped_stages(mesh, by_psum):
    """The pipeline of JAX's documentation: states go around with ppermute, the last stage's results are sliced or summed up."""
    def stages(w, x):
        at, zeros = lax.axis_index("s"), lambda *shape: lax.pcast(jnp.zeros(shape), "s", to="varying")

        def step(carry, i):
            state, outs = carry
            state = jnp.tanh(jnp.where(at == 0, x[jnp.minimum(i, MICRO_BATCHES - 1)], state) @ w[0])
            new = lax.dynamic_update_index_in_dim(outs, state, jnp.maximum(i - (STAGES - 1), 0), 0)
            outs = jnp.where((at == STAGES - 1) & (i >= STAGES - 1), new, outs)
            return (lax.ppermute(state, "s", [(k, (k + 1) % STAGES) for k in range(STAGES)]), outs), None
        start = zeros(ROWS, WIDTH), zeros(MICRO_BATCHES, ROWS, WIDTH)
        outs = lax.scan(step, start, jnp.arange(MICRO_BATCHES + STAGES - 1))[0][1]
        return lax.psum(jnp.where(at == STAGES - 1, outs, 0), "s") if by_psum else outs[None]
    fn = jax.shard_map(stages, mesh=mesh, in_specs=(P("s"), P()), out_specs=P() if by_psum else P("s"))
    return fn if by_psum else lambda w, x: fn(w, x)[-1]


def rolled_stages(mesh):
    """Stages are an axis of the state, which is rolled by one after each micro-batch."""
    def cut(state):
        return lax.with_sharding_constraint(state, NamedSharding(mesh, P("s", None, None)))

    def run(w, x):
        def step(state, x):
            out = cut(jnp.tanh(jnp.einsum("sri,sij->srj", cut(state.at[0].set(x)), w)))
            return cut(jnp.roll(out, 1, axis=0)), out[-1]
        x = jnp.concatenate([x, jnp.zeros((STAGES - 1, ROWS, WIDTH))])
        return lax.scan(step, cut(jnp.zeros((STAGES, ROWS, WIDTH))), x)[1][STAGES - 1:]
    return run


ROUNDS, LONG = 4, 2048


def circular(w, x):
    """Each stage has a layer for each round; what the last stage computes waits for the first."""
    rows, width = x.shape[1:]

    def step(carry, t):
        state, stored = carry
        new = jnp.where(t < MICRO_BATCHES, x[jnp.minimum(t, MICRO_BATCHES - 1)], stored[t % MICRO_BATCHES])
        layers = jnp.clip((t - jnp.arange(STAGES)) // MICRO_BATCHES, 0, ROUNDS - 1)
        out = jax.vmap(lambda w, layer, x: jnp.tanh(x @ w[layer]), (1, 0, 0))(w, layers, state.at[0].set(new))
        return (jnp.roll(out, 1, 0), stored.at[(t - (STAGES - 1)) % MICRO_BATCHES].set(out[-1])), None
    start = jnp.zeros((STAGES, rows, width)), jnp.zeros((MICRO_BATCHES, rows, width))
    return lax.scan(step, start, jnp.arange(ROUNDS * MICRO_BATCHES + STAGES - 1))[0][1]


def squared(net):
    return lambda w, x, y: jax.value_and_grad(lambda w: ((net(w, x) - y) ** 2).mean())(w)


def fsdp(mesh):
    """Weights are gathered over x in the body, the batch is cut over x and y."""
    def net(weights, x):
        for w in weights:
            x = jnp.tanh(x @ lax.all_gather(w, "x", tiled=True))
        return lax.pmean((x ** 2).mean(), ("x", "y"))
    fn = jax.shard_map(net, mesh=mesh, in_specs=(P("x"), P(("x", "y"))), out_specs=P())

    def step(w, v, x):
        loss, (dw, dv) = jax.value_and_grad(lambda w, v: fn((w, v), x), (0, 1))(w, v)
        return loss, dw, dv
    return step


def parallel_cases(Case):
    devices = np.array(jax.devices()[:8])
    line, grid = Mesh(devices, ("s",)), Mesh(devices.reshape(2, 4), ("x", "y"))
    shape = lambda *extents: jax.ShapeDtypeStruct(extents, jnp.float32)
    weights, batch = shape(STAGES, WIDTH, WIDTH), shape(MICRO_BATCHES, ROWS, WIDTH)
    # Nobody reads what is passed on in the last step.
    hops = (MICRO_BATCHES + STAGES - 2) * SHIFT
    both = 2 * (256 * 1024 * 4)
    return {
        "pipeline of shard_map": Case(mapped_stages(line, False), [weights, batch], hops + MICRO_BATCHES * SHIFT,
                                      "M + S - 2 shifts, and the results to all", cut=["s", None], out=None),
        "pipeline of shard_map, training": Case(squared(mapped_stages(line, False)), [weights, batch, batch], 2 * hops + 4,
                                                "M + S - 2 shifts twice, and the loss to all", cut=["s", None, None], out=(None, "s")),
        "pipeline of shard_map by psum, training": Case(squared(mapped_stages(line, True)), [weights, batch, batch], 2 * hops + 4,
                                                        "the same", cut=["s", None, None], out=(None, "s")),
        "pipeline of rolls, training": Case(squared(rolled_stages(line)), [weights, batch, batch], 2 * hops + 4,
                                            "the same", cut=["s", None, None], out=(None, "s")),
        "circular pipeline of rolls": Case(circular, [shape(ROUNDS, STAGES, LONG, LONG), shape(MICRO_BATCHES, LONG, LONG)],
                                           (ROUNDS * MICRO_BATCHES + STAGES - 1 + MICRO_BATCHES) * LONG * LONG * 4,
                                           "R M + S - 1 shifts, and the results to all", cut=[(None, "s"), None], out=None),
        "FSDP of shard_map": Case(fsdp(grid), [shape(256, 1024), shape(1024, 256), shape(4096, 256)],
                                  both // 2 + both // 2 + both // 2 * 2 * 3 // 4 + 7,
                                  "weights gathered over 2, gradients scattered, parts reduced over 4; the loss",
                                  cut=["x", "x", (("x", "y"),)], out=(None, "x", "x"), mesh=grid),
    }
