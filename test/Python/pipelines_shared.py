# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters that stages of a pipeline share: one update, bitwise equal in all schedules, the gradient of one device, each sent once per step."""

import unittest

import numpy as np

import tessera as ts
from tessera import ProcessMesh, Shard, nn, optim
from tessera.testing import difference

WORDS, WIDTH, ROWS = 32, 8, 16
R = np.random.default_rng(0)
IDS, TARGETS = (R.integers(0, WORDS, (ROWS, 4)) for _ in range(2))


class Head(nn.Module):
    """The product by the table of an embedding."""

    def __init__(self, embedding):
        super().__init__()
        self.embedding = embedding

    def forward(self, x):
        return x @ self.embedding.weight.T


def model():
    nn.init.seed(0)
    embedding, block = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WIDTH)
    return [embedding, block, ts.tanh, nn.Linear(WIDTH, WIDTH), block, nn.LayerNorm(WIDTH), Head(embedding), ts.tanh]


def loss(pipe, ids, targets):
    return nn.cross_entropy(pipe(ids), targets)


def trained(stages, schedule, steps=2, **options):
    pipe = ts.pipeline(model(), stages, 4, schedule, **options)
    optimizer = optim.AdamW(0.1)
    state, losses = optimizer.init(pipe), []

    @ts.jit
    def step(pipe, state, ids, targets):
        value, gradients = pipe.value_and_grad(loss)(pipe, ids, targets)
        return *optimizer.update(pipe, gradients, state), value
    report = step.explain(pipe, state, IDS, TARGETS)
    for _ in range(steps):
        pipe, state, value = step(pipe, state, IDS, TARGETS)
        losses.append(np.asarray(value))
    return losses + [np.asarray(p) for p in pipe.parameters()], report, pipe


class SharedByStages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.one = trained(1, "sequential")[0]

    def check(self, runs):
        for found, _, pipe in runs:
            self.assertEqual([each.tobytes() for each in found], [each.tobytes() for each in runs[0][0]])
            for mine, one in zip(found, self.one):
                self.assertIsNone(difference(mine, one, 16))
            self.assertIs(pipe.layers[0].weight, pipe.layers[6].embedding.weight)
            self.assertEqual(len(pipe.parameters()), 7)

    def test_schedules(self):
        for stages in (2, 4):
            self.check([trained(stages, schedule) for schedule in ("sequential", "gpipe", "1f1b", "zb-h1")])

    def test_interleaved(self):
        meshes = [ProcessMesh([i], ["x"], f"m{i}") for i in range(2)]
        self.check([trained(meshes * 2, schedule) for schedule in ("sequential", "interleaved")])

    def test_cut_on_its_meshes(self):
        meshes = [ProcessMesh([0, 1], ["tp"], "a"), ProcessMesh([2, 3], ["tp"], "b")]

        def rule(name, tensor):
            return [Shard(0)] if tensor.shape[0] == WORDS else None
        self.check([trained(meshes, schedule, rule=rule) for schedule in ("sequential", "1f1b")])

    def test_sent_once(self):
        report = trained(2, "1f1b")[1]
        table = WORDS * WIDTH * 4
        sends = [(each["mesh"], each["wire_bytes"]) for each in report["collectives"] if each["kind"] == "send"]
        self.assertEqual([mesh for mesh, size in sends if size == table], ["stage0 -> stage1", "stage1 -> stage0"])

    def test_direct_call(self):
        """Without value_and_grad of the pipeline, too, stages read the parameter of the first of them."""
        pipe = ts.pipeline(model(), 2, 4)
        value = ts.jit(lambda pipe, ids: pipe(ids))(pipe, IDS)
        expected = ts.jit(lambda net, ids: net(ids))(nn.Sequential(*model()), IDS)
        self.assertIsNone(difference(np.asarray(value), np.asarray(expected)))

    def test_buffers(self):
        norm = nn.BatchNorm(WIDTH)
        with self.assertRaisesRegex(ts.ArgumentError, "share the buffer '0.running_mean' with '1.running_mean'; only parameters are shared"):
            ts.pipeline([norm, norm], 2, 4)


if __name__ == "__main__":
    unittest.main()
