# RUN: %tessera_python %s %S/Inputs/checkpoint_parts.py
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks of a program between processes save and load their own parts: nothing is gathered, and each rank reads only its part."""

import os
import sys
import unittest

import numpy as np
from launch_case import LaunchCase

import tessera as ts

SCRIPT = os.path.abspath(sys.argv.pop())
SAID = ("saving reads 0 whole values", "judging reads ['out']", "loading reads [] a part of columns later rows True",
        "goes on alike True 3 True", "saving again reads 0 whole values", "whole when asked True True")


class Parts(LaunchCase):
    def check(self, **environment):
        folder = os.path.join(self.folder, "run")
        code, out, err = self.launch("--nproc_per_node=3", "--master_port=0", SCRIPT, folder, **environment)
        self.assertEqual(code, 0, err)
        self.assertEqual(out, sorted(f"[rank {rank}] {line}" for rank in range(3) for line in SAID))
        # The ranks have written the values that one process computes.
        random = np.random.default_rng(0)
        rows, columns = (random.standard_normal(shape).astype(np.float32) for shape in ((7, 5), (5, 4)))
        state = ts.load_checkpoint(folder, step=2).state
        np.testing.assert_array_equal(state["rows"].numpy(), rows * np.float32(0.25))
        np.testing.assert_allclose(state["columns"].numpy(), columns + 2, rtol=1e-6)
        self.assertEqual(state["count"].item(), 2)

    def test_parts(self):
        self.check()

    def test_asynchronous(self):
        self.check(ASYNCHRONOUS="1")


if __name__ == "__main__":
    unittest.main()
