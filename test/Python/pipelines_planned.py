# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""plan_pipeline: stages, micro-batches and schedule by the modelled step, within a budget; the plan is trained with the losses of one device."""

import json
import pathlib
import tempfile
import unittest

import numpy as np

import tessera as ts
from tessera import Replicate, Shard, nn, optim
from tessera.testing import difference

WIDTH, ROWS = 64, 16
R = np.random.default_rng(0)
X, Y = (R.standard_normal((ROWS, WIDTH)).astype(np.float32) for _ in range(2))


def model(count=4, width=WIDTH):
    nn.init.seed(0)
    return nn.Sequential(*[layer for _ in range(count) for layer in (nn.Linear(width, width), ts.tanh)])


def loss(pipe, x, y):
    return nn.mse_loss(pipe(x), y)


def topology(flops, rate):
    """The file of a machine with these rates of operations and of bytes on links."""
    path = pathlib.Path(tempfile.mkdtemp()) / "machine.json"
    path.write_text(json.dumps({"version": 1, "name": "machine", "source": "of a test", "links": [
        {"name": "all", "devices": 64, "alpha": 1e-7, "rate": rate}], "device": {
            "kind": "gpu", "flops": {"f32": flops}, "memory_rate": 1e15, "memory": 80e9}}))
    return str(path)


class Planned(unittest.TestCase):
    def plans(self, devices, flops=1e9, rate=1e9, batch=(X, Y), **options):
        return ts.plan_pipeline(options.pop("model", None) or model(), loss, batch, devices, topology=topology(flops, rate), **options)

    def test_fastest_first(self):
        """Gradients of many weights cross slow links for data parallelism; activations of few rows cross them for stages."""
        batch = [ts.spec((16, 64), "float32")] * 2
        plans = self.plans(2, flops=1e10, rate=2e8, batch=batch)
        self.assertEqual([plan.seconds for plan in plans], sorted(plan.seconds for plan in plans))
        self.assertEqual({plan.stages for plan in plans}, {1, 2})
        self.assertEqual(plans[0].stages, 2)
        batch = [ts.spec((65536, 64), "float32")] * 2
        plans = self.plans(2, flops=1e12, rate=1e9, batch=batch, microbatches=4)
        self.assertEqual((plans[0].stages, plans[0].data), (1, 2))

    def test_trained(self):
        plan = self.plans(2, flops=1e10, rate=2e8, microbatches=4, optimizer=optim.SGD(0.1))[0]
        pipe = plan.build()
        self.assertEqual((len(pipe.stages), pipe.microbatches, pipe.schedule), (plan.stages * plan.chunks, 4, plan.schedule))
        value, gradients = ts.jit(lambda pipe, x, y: pipe.value_and_grad(loss)(pipe, x, y))(pipe, X, Y)
        expected, others = ts.value_and_grad(loss)(model(), X, Y)
        self.assertIsNone(difference(np.asarray(value), np.asarray(expected)))
        for mine, one in zip(gradients.parameters(), others.parameters()):
            self.assertIsNone(difference(np.asarray(mine), np.asarray(one), 8))

    def test_budget(self):
        """The fastest plan that fits; if none does, an error names the least memory."""
        free = self.plans(2, flops=1e10, rate=2e8, optimizer=optim.AdamW(0.1))
        most, least = max(plan.memory for plan in free), min(plan.memory for plan in free)
        self.assertLess(least, most)
        within = self.plans(2, flops=1e10, rate=2e8, optimizer=optim.AdamW(0.1), memory_budget=least / 2 ** 30)
        self.assertTrue(all(plan.memory <= least for plan in within))
        with self.assertRaisesRegex(ts.ArgumentError, r"fits into 0\.0\d+ MiB per device; the smallest is 2 stages of 1 x 1 devices, "):
            self.plans(2, flops=1e10, rate=2e8, optimizer=optim.AdamW(0.1), memory_budget=least / 2 ** 33)

    def test_tensor_parallel(self):
        def rule(name, tensor):
            return [Replicate(), Shard(1)] if name.endswith("weight") else None
        plans = self.plans(4, flops=1e8, rate=1e9, rule=rule, microbatches=4, trials=12, model=model(2))
        self.assertIn((2, 1, 2), {(plan.stages, plan.data, plan.tensor) for plan in plans})
        self.assertEqual({plan.stages * plan.data * plan.tensor for plan in plans}, {4})

    def test_schedule_auto(self):
        pipe = ts.pipeline(model(), 2, 4, "auto")
        step = ts.jit(lambda pipe, x, y: pipe.value_and_grad(loss)(pipe, x, y), topology=topology(1e9, 1e12))
        report = step.explain(pipe, X, Y)
        seconds = {}
        for schedule in ("sequential", "gpipe", "1f1b", "zb-h1"):
            other = ts.pipeline(model(), 2, 4, schedule)
            made = ts.jit(lambda pipe, x, y: pipe.value_and_grad(loss)(pipe, x, y), topology=topology(1e9, 1e12))
            seconds[schedule] = made.explain(other, X, Y)["modelled_seconds"]
        self.assertEqual(report["modelled_seconds"], min(seconds.values()))
        self.assertEqual(seconds[report["pipeline"]["schedule"]], min(seconds.values()))

    def test_refusals(self):
        for message, options in (("devices 0 of plan_pipeline is not a positive integer", dict(devices=0)),
                                 ("batch of plan_pipeline is not a tuple of arrays", dict(devices=2, batch=())),
                                 ("memory_budget -1 of plan_pipeline is not a positive number", dict(devices=2, memory_budget=-1)),
                                 ("no pipeline has 2 devices, 8 layers and 16 rows per step in 5 micro-batches", dict(devices=2, microbatches=5))):
            with self.assertRaisesRegex(ts.ArgumentError, message):
                self.plans(**options)


if __name__ == "__main__":
    unittest.main()
