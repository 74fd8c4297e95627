# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Text on which MLIR's parser crashes raises an error, and the interpreter continues."""

import threading
import unittest

import tessera

REDUCE = """func.func @main(%a: tensor<4xf32>, %z: tensor<f32>) -> tensor<f32> {
  %r = linalg.reduce { arith.addf } ins(%a: tensor<4xf32>) outs(%z: tensor<f32>) dimensions = [x]
  return %r : tensor<f32>
}
"""
GOOD = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"


class Unreadable(unittest.TestCase):
    def test_a_crash_of_the_parser(self):
        with self.assertRaises(tessera.Error) as caught:
            tessera.Program(REDUCE, "mine")
        self.assertIn("mine:2:96: error: custom op 'linalg.reduce' expected integer value", str(caught.exception))

    def test_other_errors_are_as_before(self):
        with self.assertRaises(tessera.Error) as caught:
            tessera.Program(GOOD.replace("return %a", "return %b"))
        self.assertIn("program:1:", str(caught.exception))

    def test_beside_other_threads(self):
        done = threading.Event()
        thread = threading.Thread(target=lambda: [tessera.Program(GOOD).lower("fused") for _ in range(20)] and done.set())
        thread.start()
        for _ in range(5):
            with self.assertRaises(tessera.Error):
                tessera.Program(REDUCE)
        thread.join()
        self.assertTrue(done.is_set())


if __name__ == "__main__":
    unittest.main()
