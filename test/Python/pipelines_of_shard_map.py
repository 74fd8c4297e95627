# RUN: %tessera_python %s
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipelines written with shard_map, as in JAX's documentation: M + S - 2 shifts in each direction, since the last one has no reader, and the last
stage computes what is computed from its results: the loss and weights after the pipeline. FSDP with a psum before its psum_scatter."""

import unittest

from jax_case import jax, jnp, mesh_of, np
from jax import lax
from jax.sharding import PartitionSpec as P

import tessera
from tessera.testing import difference

STAGES, MICRO_BATCHES, ROWS, WIDTH, CLASSES = 4, 24, 2, 8, 12
MESH = mesh_of(stage=STAGES)
SHIFT, RESULTS = ROWS * WIDTH * 4, MICRO_BATCHES * ROWS * WIDTH * 4
SHIFTS = ("exchange", SHIFT, MICRO_BATCHES + STAGES - 2)


def pipeline(by_psum, loop):
    """The results of the last stage: a slice of all stages' results, or their masked sum."""
    def stages(w, x):
        at, zeros = lax.axis_index("stage"), lambda *shape: lax.pcast(jnp.zeros(shape), "stage", to="varying")

        def step(carry, i):
            state, outs = carry
            state = jnp.tanh(jnp.where(at == 0, x[jnp.minimum(i, MICRO_BATCHES - 1)], state) @ w[0])
            new = lax.dynamic_update_index_in_dim(outs, state, jnp.maximum(i - (STAGES - 1), 0), 0)
            outs = jnp.where((at == STAGES - 1) & (i >= STAGES - 1), new, outs)
            return (lax.ppermute(state, "stage", [(k, (k + 1) % STAGES) for k in range(STAGES)]), outs), None
        start, count = (zeros(ROWS, WIDTH), zeros(MICRO_BATCHES, ROWS, WIDTH)), MICRO_BATCHES + STAGES - 1
        if loop == "scan":
            outs = lax.scan(step, start, jnp.arange(count))[0][1]
        else:
            outs = lax.fori_loop(0, count, lambda i, carry: step(carry, i)[0], start)[1]
        return lax.psum(jnp.where(at == STAGES - 1, outs, 0), "stage") if by_psum else outs[None]
    mapped = jax.shard_map(stages, mesh=MESH, in_specs=(P("stage"), P()), out_specs=P() if by_psum else P("stage"))
    return mapped if by_psum else lambda w, x: mapped(w, x)[-1]


def layers(w, x):
    for i in range(STAGES):
        x = jnp.tanh(x @ w[i])
    return x


def squared(net):
    return lambda w, head, x, y: jax.value_and_grad(lambda w: ((net(w, x) - y) ** 2).mean())(w)


def cross_entropy(net):
    def loss(w, head, x, labels):
        return -jnp.take_along_axis(jax.nn.log_softmax(net(w, x) @ head), labels[..., None], -1).mean()
    return jax.value_and_grad(loss, (0, 1))


def with_metrics(net):
    def loss(w, head, x, y):
        out = net(w, x)
        return ((out - y) ** 2).mean(), (out.mean(), out[0].argmax(-1))
    return lambda *args: jax.value_and_grad(loss, has_aux=True)(*args)


class Pipelines(unittest.TestCase):
    def setUp(self):
        random = np.random.default_rng(0)
        self.w, self.head, self.x, self.y = [random.standard_normal(shape).astype("f") / 2 for shape in (
            (STAGES, WIDTH, WIDTH), (WIDTH, CLASSES), (MICRO_BATCHES, ROWS, WIDTH), (MICRO_BATCHES, ROWS, WIDTH))]
        self.labels = random.integers(0, CLASSES, (MICRO_BATCHES, ROWS)).astype("i")

    def check(self, program, reference, args, collectives):
        for mine, theirs in zip(jax.tree.leaves(program(*args)), jax.tree.leaves(reference(*args)), strict=True):
            self.assertIsNone(difference(np.asarray(mine), np.asarray(theirs), 16))
        found = [(c["kind"], c["wire_bytes"], c["trips"]) for c in program.explain()["collectives"]]
        self.assertEqual(sorted(found), sorted(collectives))

    def test_forward(self):
        """Whole on all devices, the results are sent."""
        for by_psum in False, True:
            args = self.w, self.x
            program = tessera.from_jax(pipeline(by_psum, "scan"), args, out_shardings=P(), mesh=MESH)
            self.check(program, layers, args, [SHIFTS, ("all_gather", RESULTS, 1)])

    def test_training(self):
        for by_psum in False, True:
            for loop in "scan", "fori":
                for loss, target, sent in ((squared, self.y, [4]), (cross_entropy, self.labels, [4 + WIDTH * CLASSES * 4]),
                                           (with_metrics, self.y, [8, ROWS * 4])):
                    with self.subTest(by_psum=by_psum, loop=loop, loss=loss.__name__):
                        args = self.w, self.head, self.x, target
                        program = tessera.from_jax(loss(pipeline(by_psum, loop)), args)
                        self.check(program, loss(layers), args, [SHIFTS] * 2 + [("all_gather", each, 1) for each in sent])

    def test_order_of_sums(self):
        """A psum over the batch's other axis before the psum_scatter of FSDP: scattered first, the other sum is one of parts."""
        mesh = mesh_of(x=2, y=4)

        def net(w, v, batch):
            for each in w, v:
                batch = jnp.tanh(batch @ lax.all_gather(each, "x", tiled=True))
            return lax.pmean((batch ** 2).mean(), ("x", "y"))
        mapped = jax.shard_map(net, mesh=mesh, in_specs=(P("x"), P("x"), P(("x", "y"))), out_specs=P())

        def plain(w, v, batch):
            return (jnp.tanh(jnp.tanh(batch @ w) @ v) ** 2).mean()
        args = self.w[0], self.w[1], self.x.reshape(-1, WIDTH)[:16]
        both = 2 * WIDTH * WIDTH * 4
        self.check(tessera.from_jax(jax.value_and_grad(mapped, (0, 1)), args), jax.value_and_grad(plain, (0, 1)), args,
                   [("all_gather", both // 2, 1), ("reduce_scatter", both // 2, 1), ("all_reduce", both // 2 * 2 * 3 // 4, 1), ("all_reduce", 7, 1)])


if __name__ == "__main__":
    unittest.main()
