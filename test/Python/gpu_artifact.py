# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tessera.load of an artifact for GPUs, on `stub`: DLPack in and out, bias and activation within the product, refusals."""

import os
import subprocess
import tempfile
import unittest

import numpy as np

import tessera

TEXT = """
dist.process_mesh @line(shape = [4], dim_names = ["d"])
func.func @main(%x: tensor<8x6xf32> {dist.name = "x", dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %w: tensor<6x4xf32> {dist.name = "w"}, %b: tensor<4xf32> {dist.name = "b"})
    -> (tensor<8x4xf32> {dist.name = "y"}, tensor<8x4xf32> {dist.name = "e"}) {
  %zero = arith.constant dense<0.0> : tensor<8x4xf32>
  %empty = tensor.empty() : tensor<8x4xf32>
  %p = linalg.matmul ins(%x, %w : tensor<8x6xf32>, tensor<6x4xf32>) outs(%zero : tensor<8x4xf32>) -> tensor<8x4xf32>
  %wide = linalg.broadcast ins(%b : tensor<4xf32>) outs(%empty : tensor<8x4xf32>) dimensions = [0]
  %s = arith.addf %p, %wide : tensor<8x4xf32>
  %y = arith.maximumf %s, %zero : tensor<8x4xf32>
  %e = math.exp %y : tensor<8x4xf32>
  return %y, %e : tensor<8x4xf32>, tensor<8x4xf32>
}
"""


class OnlyDLPack:
    """An array of another library."""

    def __init__(self, values):
        self._values, self.dtype = values, values.dtype

    def __dlpack__(self, **options):
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()


class GpuArtifact(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.source = os.path.join(self.folder.name, "p.mlir")
        with open(self.source, "w") as file:
            file.write(TEXT)

    def compiled(self, *options):
        path = os.path.join(self.folder.name, "p.tsra")
        subprocess.run(["tessera", "compile", self.source, "-o", path, *options], check=True, stdout=subprocess.DEVNULL)
        return path

    def test_dlpack_in_and_out(self):
        random = np.random.default_rng(5)
        x, w, b = (random.standard_normal(shape, np.float32) for shape in ((8, 6), (6, 4), (4,)))
        program = tessera.load(self.compiled("--target=stub"), backend="stub")
        y, e = program(OnlyDLPack(x), OnlyDLPack(w), b=OnlyDLPack(b))
        expected = np.maximum(x @ w + b, 0)
        np.testing.assert_allclose(np.from_dlpack(y), expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(np.from_dlpack(e), np.exp(expected), rtol=1e-4, atol=1e-5)

    def test_wrong_backends(self):
        with self.assertRaisesRegex(tessera.Error, "has no code for architecture 'stub'; compile it with --target=stub"):
            tessera.load(self.compiled("--target=cuda", "--arch", "compute_80"), backend="stub")
        with self.assertRaisesRegex(tessera.Error, "backend threads"):
            tessera.load(self.compiled("--target=stub"), backend="threads")


if __name__ == "__main__":
    unittest.main()
