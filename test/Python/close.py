# RUN: env LD_LIBRARY_PATH=%fake_gpu %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Executable.close frees the resources of a program on a GPU (here host memory): memory, streams, events, graphs, code."""

import ctypes
import os
import subprocess
import tempfile
import unittest

import numpy as np

import tessera

TEXT = """
func.func @main(%x: tensor<4x6xf32> {dist.name = "x"}, %w: tensor<6x5xf32> {dist.name = "w"}) -> (tensor<4x5xf32> {dist.name = "y"}) {
  %zero = arith.constant dense<0.0> : tensor<4x5xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x6xf32>, tensor<6x5xf32>) outs(%zero : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}
"""
X, W = (np.random.default_rng(3).standard_normal(shape, np.float32) for shape in ((4, 6), (6, 5)))


class Close(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        source, self.artifact = (os.path.join(self.folder.name, name) for name in ("p.mlir", "p.tsra"))
        with open(source, "w", encoding="utf-8") as file:
            file.write(TEXT)
        subprocess.run(["tessera", "compile", source, "-o", self.artifact], check=True)
        self.living = ctypes.CDLL("libcuda.so.1").fake_cuda_living

    def test_all_is_freed(self):
        before, program = self.living(), tessera.load(self.artifact, backend="vdev")
        for _ in range(3):  # the second is captured, the third a graph
            y = program(X, W).numpy()
        np.testing.assert_allclose(y, X @ W, rtol=1e-5)
        self.assertGreater(self.living(), before)
        program.close()
        self.assertEqual(self.living(), before)
        program.close()

    def test_what_somebody_has_is_kept(self):
        before = self.living()
        with tessera.load(self.artifact, backend="vdev") as program:
            y = program(X, W)
        self.assertEqual(self.living(), before + 1)
        np.testing.assert_allclose(y.numpy(), X @ W, rtol=1e-5)
        del y
        self.assertEqual(self.living(), before)

    def test_calls_are_refused(self):
        for backend in ("vdev", "threads"):
            program = tessera.load(self.artifact, backend=backend)
            program.close()
            with self.assertRaisesRegex(tessera.Error, "the program is closed; load it again"):
                program(X, W)
            with self.assertRaisesRegex(tessera.Error, "the program is closed; load it again"):
                _ = program.counters
            self.assertEqual([tensor.name for tensor in program.arguments], ["x", "w"])


if __name__ == "__main__":
    unittest.main()
