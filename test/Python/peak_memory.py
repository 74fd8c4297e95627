# RUN: %tessera_python %s
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The resident memory of a training step is at most the report's peak and what docs/report.md says of the runtime."""

import os
import sys
import unittest

import numpy as np

import tessera as ts
from tessera import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "bench", "cpu"))
import memory  # noqa: E402

WORKERS = 2
RUNTIME = (8 << 20) + WORKERS * (4 << 20)  # docs/report.md


class Perceptron(nn.Module):
    def __init__(self, width):
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return self.down(nn.gelu(self.up(x)))


class Images(nn.Module):
    def __init__(self, channels):
        self.first, self.second = nn.Conv2d(3, channels, 3, padding=1), nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return self.second(nn.relu(self.first(x)))


def step_of(model, x):
    """The program of a step of gradient descent with momentum, whose results are the arguments of the next."""
    optimizer = ts.optim.SGD(0.01, momentum=0.9)

    @ts.jit(donate=True)
    def step(m, state, x):
        loss, gradients = ts.value_and_grad(lambda m, x: (m(x) ** 2).mean())(m, x)
        m, state = optimizer.update(m, gradients, state)
        return m, state, loss
    return step.lower(model, optimizer.init(model), x)


class PeakMemory(unittest.TestCase):
    def check(self, program, devices=1):
        planned = devices * program.explain()["peak_memory_bytes"]
        self.assertGreater(planned, 3 * RUNTIME, "too small to see anything")
        found = memory.of_program(program, WORKERS)
        self.assertLessEqual(found, planned + RUNTIME)
        self.assertGreater(found, 0.7 * planned, "the steps did not touch their arena")

    def test_products(self):
        self.check(step_of(Perceptron(768), ts.asarray(np.zeros((4096, 768), np.float32))))

    def test_products_of_halves(self):
        text = """func.func @main(%w: tensor<4096x2048xbf16>, %x: tensor<8192x4096xbf16>) -> tensor<8192x2048xbf16> {
  %zero = arith.constant dense<0.0> : tensor<8192x2048xbf16>
  %0 = linalg.matmul ins(%x, %w : tensor<8192x4096xbf16>, tensor<4096x2048xbf16>) outs(%zero : tensor<8192x2048xbf16>) -> tensor<8192x2048xbf16>
  return %0 : tensor<8192x2048xbf16>
}
"""
        self.check(ts.Program(text))

    def test_convolutions(self):
        self.check(step_of(Images(64), ts.asarray(np.zeros((16, 3, 64, 64), np.float32))))

    def test_devices(self):
        mesh = ts.ProcessMesh(list(range(4)), ["d"])
        x = ts.shard_tensor(np.zeros((4096, 512), np.float32), mesh, [ts.Shard(0)])
        self.check(step_of(Perceptron(512), x), 4)


if __name__ == "__main__":
    unittest.main()
