# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tessera._core behind Program and Session: text in, report, artifact and arrays out, errors as tessera.Error."""

import os
import tempfile
import unittest

import numpy as np

import tessera

TEXT = """
dist.process_mesh @line(shape = [4], dim_names = ["d"])
func.func @main(%x: tensor<10x8xf32> {dist.name = "x", dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<8xf32> {dist.name = "sums", dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %sums = linalg.reduce {arith.addf} ins(%x : tensor<10x8xf32>) outs(%zero : tensor<8xf32>) dimensions = [0]
  return %sums : tensor<8xf32>
}
"""


class Programs(unittest.TestCase):
    def test_report(self):
        report = tessera.Program(TEXT).explain()
        self.assertEqual([c["kind"] for c in report["collectives"]], ["all_reduce"])
        self.assertEqual(report["collectives"][0]["wire_bytes"], 48)

    def test_run(self):
        x = np.arange(80, dtype=np.float32).reshape(10, 8)
        sums, = tessera.Program(TEXT)(x)
        np.testing.assert_array_equal(sums, x.sum(0))

    def test_phases(self):
        program = tessera.Program(TEXT)
        self.assertIn("dist.all_reduce", program.lower("fused"))
        self.assertNotIn("dist.all_reduce", program.lower("normalized"))

    def test_artifact(self):
        x = np.ones((10, 8), np.float32)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "sums.tsra")
            artifact = tessera.Program(TEXT).compile(path)
            session = tessera.Session(path)
            self.assertEqual(open(path, "rb").read(), artifact)
        self.assertEqual([(a.name, a.dtype, list(a.shape)) for a in session.arguments], [("x", "f32", [10, 8])])
        np.testing.assert_array_equal(session.run([x])[0], np.full(8, 10, np.float32))
        self.assertEqual(session.wire_bytes, 48)


class Refusals(unittest.TestCase):
    def refused(self, message, function, *args):
        with self.assertRaises(tessera.Error) as caught:
            function(*args)
        self.assertIn(message, str(caught.exception))

    def test_syntax(self):
        self.refused("p.mlir:1:1: error: ", tessera.Program, "nonsense", "p.mlir")

    def test_annotations(self):
        wrong = TEXT.replace("shard(0)", "shard(2)")
        self.refused("shard(2) of a rank-2 tensor", lambda: tessera.Program(wrong).explain())

    def test_phase(self):
        self.refused("unknown phase 'nowhere'", tessera.Program(TEXT).lower, "nowhere")

    def test_artifact(self):
        self.refused("artifact", tessera.Session, b"nonsense")

    def test_arguments(self):
        program = tessera.Program(TEXT)
        self.refused("has shape (3,), the program takes (10, 8)", program, np.zeros(3, np.float32))
        self.refused("is float64, the program takes float32", program, np.zeros((10, 8)))
        self.refused("0 values for 1 arguments", program)

    def test_backend(self):
        self.refused("nowhere", tessera.Session, tessera.Program(TEXT).compile(), "nowhere")


if __name__ == "__main__":
    unittest.main()
