# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipelines: losses and parameters after steps are the same bits in every schedule and on one device; refusals."""

import unittest

import numpy as np

import tessera as ts
from tessera import ProcessMesh, Shard, nn, optim
from tessera.stages import _seconds_of, balanced
from tessera.testing import difference

R = np.random.default_rng(0)
WIDTH, ROWS = 8, 16
X, Y = (R.standard_normal((ROWS, WIDTH)).astype(np.float32) for _ in range(2))


def layers(count):
    nn.init.seed(0)
    return [layer for _ in range(count) for layer in (nn.Linear(WIDTH, WIDTH), ts.tanh)]


def loss(pipe, x, y):
    return nn.mse_loss(pipe(x), y)


def stepping(optimizer):
    def step(pipe, state, x, y):
        value, gradients = pipe.value_and_grad(loss)(pipe, x, y)
        return *optimizer.update(pipe, gradients, state), value
    return step


def trained(pipe, steps=2):
    """Losses and parameters, and the report."""
    optimizer = optim.SGD(0.1, momentum=0.9)
    state = optimizer.init(pipe)

    step = ts.jit(stepping(optimizer))
    report, losses = step.explain(pipe, state, X, Y), []
    for _ in range(steps):
        pipe, state, value = step(pipe, state, X, Y)
        losses.append(np.asarray(value))
    return losses, [np.asarray(p) for p in pipe.parameters()], report


def bits(run):
    return [value.tobytes() for values in run[:2] for value in values]


class Pipelines(unittest.TestCase):
    def refused(self, kind, message, *args, **kwargs):
        with self.assertRaises(kind) as caught:
            ts.pipeline(*args, **kwargs)
        self.assertIn(message, str(caught.exception))

    def test_schedules(self):
        one = trained(ts.pipeline(layers(4), stages=1, microbatches=4, schedule="sequential"))
        for stages, schedules in ((2, ("sequential", "gpipe", "1f1b", "zb-h1")), (4, ("1f1b", "zb-h1"))):
            for schedule in schedules:
                with self.subTest(stages=stages, schedule=schedule):
                    run = trained(ts.pipeline(layers(4), stages=stages, microbatches=4, schedule=schedule))
                    self.assertEqual(bits(run), bits(one))
                    self.assertEqual(run[2]["pipeline"]["schedule"], schedule)
                    self.assertEqual((run[2]["pipeline"]["stages"], run[2]["pipeline"]["micro_batches"]), (stages, 4))

    def test_interleaved(self):
        one = trained(ts.pipeline(layers(4), stages=1, microbatches=4, schedule="sequential"))
        meshes = [ProcessMesh([i], ["x"], f"m{i}") for i in range(2)]
        run = trained(ts.pipeline(layers(4), stages=meshes * 2, microbatches=4, schedule="interleaved"))
        self.assertEqual(bits(run), bits(one))
        self.assertEqual(run[2]["pipeline"]["meshes"][0]["order"].split()[:4], ["F0.0", "F1.0", "F0.1", "F1.1"])

    def test_uneven_stages(self):
        one = trained(ts.pipeline(layers(3), stages=1, microbatches=2))
        self.assertEqual(bits(trained(ts.pipeline(layers(3), stages=2, microbatches=2, split=[4, 2]))), bits(one))
        self.assertEqual(ts.pipeline(layers(2) + [ts.tanh], stages=2, microbatches=2).split, (3, 2))

    def test_stages_by_modelled_cost(self):
        model = [nn.Linear(16, 256), ts.tanh, nn.Linear(256, 16), nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)]
        sample = np.zeros((64, 16), np.float32)
        costs = _seconds_of(model, sample)
        pipe = ts.pipeline(model, stages=2, microbatches=4, sample=sample)
        longest = {k: max(sum(costs[:k]), sum(costs[k:])) for k in range(1, len(model))}
        self.assertEqual(longest[pipe.split[0]], min(longest.values()))
        self.assertNotEqual(pipe.split, ts.pipeline(model, stages=2, microbatches=4).split)
        self.assertEqual([balanced([4, 1, 1, 1, 1], 2), balanced([1, 1, 1, 1, 1], 2), balanced([1, 1, 1, 5], 3)], [[1, 4], [3, 2], [2, 1, 1]])
        with self.assertRaisesRegex(ts.ArgumentError, "takes split or sample, not both"):
            ts.pipeline(model, stages=2, microbatches=4, sample=sample, split=[3, 3])

    def test_one_micro_batch(self):
        one = trained(ts.pipeline(layers(2), stages=1, microbatches=1))
        self.assertEqual(bits(trained(ts.pipeline(layers(2), stages=2, microbatches=1))), bits(one))

    def test_meshes_of_several_devices(self):
        one = trained(ts.pipeline(layers(2), stages=1, microbatches=4))
        meshes = [ProcessMesh([[0, 1], [2, 3]], ["dp", "tp"], "a"), ProcessMesh([[4, 5], [6, 7]], ["dp", "tp"], "b")]

        def rule(name, tensor):
            return [ts.Replicate(), Shard(1)] if name.endswith("weight") else None
        runs = [trained(ts.pipeline(layers(2), stages=meshes, microbatches=4, schedule=schedule, rule=rule, batch_axis="dp"))
                for schedule in ("sequential", "1f1b", "zb-h1")]
        for run in runs:
            self.assertEqual(bits(run), bits(runs[0]))
            for mine, others in zip((*run[0], *run[1]), (*one[0], *one[1])):
                self.assertIsNone(difference(mine, others, 8))

    def test_memory_of_schedules(self):
        alive, optimizer = {}, optim.SGD(0.1)
        for schedule in ("gpipe", "1f1b", "zb-h1"):
            pipe = ts.pipeline(layers(4), stages=4, microbatches=8, schedule=schedule)
            report = ts.explain(stepping(optimizer), pipe, optimizer.init(pipe), X, Y)
            alive[schedule] = [mesh["micro_batches_alive"] for mesh in report["pipeline"]["meshes"]]
        self.assertEqual(alive, {"gpipe": [8] * 4, "1f1b": [4, 3, 2, 1], "zb-h1": [4] * 4})

    def test_accumulated_with_a_schedule(self):
        first, second = ProcessMesh([0], ["x"], "m0"), ProcessMesh([1], ["x"], "m1")
        w, v = (ts.shard_tensor(R.standard_normal((WIDTH, WIDTH)).astype(np.float32), mesh, [ts.Replicate()]) for mesh in (first, second))

        def two(weights, x, y):
            h = ts.reshard(ts.tanh(x @ weights[0]), second, [ts.Replicate()])
            return nn.mse_loss(h @ weights[1], y)
        found = {}
        for schedule in (None, "gpipe", "1f1b"):
            step = ts.jit(lambda w, x, y: optim.accumulated(ts.value_and_grad(two), 4, schedule)(w, x, y))
            value, gradients = step([w, v], X, Y)
            found[schedule] = [np.asarray(each).tobytes() for each in (value, *gradients)]
        self.assertEqual(found["gpipe"], found[None])
        self.assertEqual(found["1f1b"], found[None])
        self.assertRaises(ts.ArgumentError, lambda: optim.accumulated(ts.value_and_grad(two), 4, "2f2b"))

    def test_refusals(self):
        model, mesh = layers(4), [ProcessMesh([i], ["x"], f"m{i}") for i in range(3)]
        self.refused(ts.ArgumentError, "a pipeline takes an nn.Sequential or a list of layers, not Linear", nn.Linear(2, 2), 2, 4)
        self.refused(ts.ArgumentError, "8 layers in 9 stages; each stage has at least one layer", model, 9, 4)
        self.refused(ts.ArgumentError, "split [1, 2] of 8 layers in 2 stages; give a positive number per stage, with sum 8", model, 2, 4, split=[1, 2])
        self.refused(ts.ArgumentError, "microbatches 0 of a pipeline is not a positive integer", model, 2, 0)
        self.refused(ts.ArgumentError, "unknown schedule '2f2b' of a pipeline; expected one of sequential, gpipe, 1f1b, interleaved, zb-h1, auto", model, 2, 4, "2f2b")
        self.refused(ts.ArgumentError, "stages on ['m0', 'm1', 'm0'] revisit a mesh out of turn", model, [mesh[0], mesh[1], mesh[0]], 4)
        self.refused(ts.ArgumentError, "schedule '1f1b' needs one stage per mesh, got 4 stages on 2 meshes; use interleaved", model, mesh[:2] * 2, 4)
        self.refused(ts.ArgumentError, "schedule 'interleaved' needs several stages per mesh", model, mesh[:2], 4, "interleaved")
        self.refused(ts.ArgumentError, "not 3; use 4", model, mesh[:2] * 2, 3, "interleaved")
        self.refused(ts.ArgumentError, "batch_axis 'dp' of a pipeline is not an axis of", model, mesh[:2], 4, batch_axis="dp")
        self.refused(ts.MeshError, "or disjoint", model, [mesh[0], ProcessMesh([0, 1], ["x"], "b")], 4)
        with self.assertRaises(ts.ShapeError) as caught:
            trained(ts.pipeline(model, stages=2, microbatches=3))
        self.assertIn("a batch of shape (16, 8) is not divisible into 3 parts", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
