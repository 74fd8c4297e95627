# RUN: %tessera_python %s %S/Inputs/lazy_job.py
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D4-15: parameters made under LazyGuard take no memory until they are placed; a rank then has its parts, not the whole model."""

import os
import re
import sys
import unittest
from unittest import mock

import numpy as np
from launch_case import LaunchCase

import tessera as ts
from tessera import ProcessMesh, Shard, nn, optim, shard_tensor

SCRIPT = os.path.abspath(sys.argv.pop())
MESH = ProcessMesh([0, 1], ["x"])


def model(lazy):
    nn.init.seed(3)
    if not lazy:
        return nn.Linear(4, 4)
    with nn.LazyGuard():
        return nn.Linear(4, 4)


class Lazy(LaunchCase):
    def test_values(self):
        """Equal to eagerly created parameters, whether placed or not, computed with or read."""
        x, expected = np.ones((2, 4), np.float32), model(False)
        for place in (False, True):
            made = model(True)
            if place:
                made.weight = shard_tensor(made.weight, MESH, [Shard(1)])
            made = made.initialize()
            np.testing.assert_allclose(np.asarray(ts.jit(lambda m, x: m(x))(made, x)), np.asarray(ts.jit(lambda m, x: m(x))(expected, x)), rtol=1e-6)
            np.testing.assert_array_equal(made.weight.numpy(), expected.weight.numpy())
            self.assertEqual(made.weight.placements, (Shard(1),) if place else None)

    def test_before_initialize(self):
        made = model(True)
        made.weight = shard_tensor(made.weight, MESH, [Shard(1)])
        x = np.ones((2, 4), np.float32)
        for call in (lambda: made(x), lambda: ts.jit(lambda m, x: m(x))(made, x), made.weight.numpy, made.state_dict):
            with self.assertRaisesRegex(ts.TraceError, r"that was made under LazyGuard; call initialize\(\)"):
                call()

    def test_nothing_is_drawn_before_it_is_used(self):
        drawn = []
        with mock.patch("tessera.nn.init._scaled", side_effect=lambda array, *_, **__: drawn.append(1) or array):
            made = model(True)
            made.weight = shard_tensor(made.weight, MESH, [Shard(1)])
            made.bias = shard_tensor(made.bias, MESH, [Shard(0)])
            made = made.initialize()
            optim.Adam(0.1).init(made)
            self.assertEqual(drawn, [])
            made.weight.numpy()
            self.assertEqual(drawn, [1])

    def test_memory_of_ranks(self):
        """The peak of each of 4 ranks stays under the size of the model, and the loss is that of eagerly created parameters."""
        found = {}
        for how in ("eager", "lazy"):
            code, out, err = self.launch("--nproc_per_node=4", "--master_port=0", SCRIPT, "tcp", how)
            self.assertEqual(code, 0, err)
            found[how] = [re.fullmatch(r"\[rank \d\] (\S+) (\d+) of (\d+) MiB", line).groups() for line in out]
        self.assertEqual(len({loss for loss, *_ in found["eager"] + found["lazy"]}), 1)
        for _, peak, size in found["lazy"]:
            self.assertLess(int(peak), int(size))
        for _, peak, size in found["eager"]:
            self.assertGreater(int(peak), int(size))


if __name__ == "__main__":
    unittest.main()
