# RUN: %mpirun -np 4 %tessera_python %s
# REQUIRES: tessera-core, openmpi
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""jit(backend="mpi"): every rank runs this script and holds one device; results are whole on all of them, state stays on the devices."""

import os
import unittest

import numpy as np

import tessera as ts
from tessera import ProcessMesh, Replicate, Shard, shard_tensor
from tessera.errors import Error

RANK = int(os.environ["OMPI_COMM_WORLD_RANK"])
MESH = ProcessMesh([[0, 1], [2, 3]], ["dp", "tp"])


def make_step(backend, **options):
    def step(w, x):
        y = ts.tanh(x @ w)
        return w - 0.1 * (x.T @ y), (y * y).sum()
    return ts.jit(step, mesh=MESH, backend=backend, **options)


class MpiBackend(unittest.TestCase):
    def setUp(self):
        random = np.random.default_rng(0)
        self.w, self.x = (random.standard_normal(shape).astype(np.float32) for shape in ((6, 5), (7, 6)))

    def tensors(self):
        return shard_tensor(self.w, MESH, [Replicate(), Shard(0)]), shard_tensor(self.x, MESH, [Shard(0), Shard(1)])

    def train(self, backend, **options):
        step, (w, x), losses = make_step(backend, **options), self.tensors(), []
        for _ in range(3):
            w, loss = step(w, x)
            losses.append(float(np.asarray(loss)))
        return losses, np.asarray(w)

    def test_results_are_those_of_threads_on_every_rank(self):
        for options in ({}, {"donate": True}):
            losses, w = self.train("mpi", **options)
            expected, expected_w = self.train("threads", **options)
            self.assertEqual(losses, expected)
            np.testing.assert_array_equal(w, expected_w)

    def test_more_devices_than_processes(self):
        mesh = ProcessMesh(range(8), ["d"])
        step = ts.jit(lambda x: x + 1, mesh=mesh, backend="mpi")
        with self.assertRaisesRegex(Error, "needs 8 processes, one per device, but 4 run" if RANK == 0 else ""):
            step(shard_tensor(self.x, mesh, [Shard(0)]))

    def test_names(self):
        with self.assertRaisesRegex(Error, "backend 3 of jit is not a name"):
            ts.jit(lambda x: x, backend=3)
        with self.assertRaisesRegex(Error, "there is no backend 'mpl'"):
            ts.jit(lambda x: x + 1, backend="mpl")(self.x)


if __name__ == "__main__":
    unittest.main(verbosity=0 if RANK else 1)
