# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments that are set before and between steps, and results that are read afterwards."""

import unittest

import numpy as np

import tessera as ts

# The second argument is fed by the first result, whose memory it shares; the third is overwritten by no step.
PROGRAM = """
func.func @main(%x: tensor<{n}xf32>, %state: tensor<{n}xf32>, %scale: tensor<{n}xf32>)
    -> (tensor<{n}xf32> {{dist.feeds = 1}}, tensor<{n}xf32>) {{
  %0 = tensor.empty() : tensor<{n}xf32>
  %1 = linalg.mul ins(%x, %scale : tensor<{n}xf32>, tensor<{n}xf32>) outs(%0 : tensor<{n}xf32>) -> tensor<{n}xf32>
  %2 = linalg.add ins(%state, %1 : tensor<{n}xf32>, tensor<{n}xf32>) outs(%0 : tensor<{n}xf32>) -> tensor<{n}xf32>
  return %2, %1 : tensor<{n}xf32>, tensor<{n}xf32>
}}
"""


class Sessions(unittest.TestCase):
    def check(self, n, cores):
        rng = np.random.default_rng(n)
        x, state, scale, other = rng.random((4, n), np.float32)
        session = ts.Session(ts.Program(PROGRAM.format(n=n)).compile(), cores=cores)
        for index, value in enumerate((x, state, scale)):
            kept = value.copy()
            session.set(index, kept)
            kept[:] = -1  # a value is copied when it is set
        session.step()
        state = state + x * scale
        # What is set after a step is for the next one: results of the last one keep their values.
        for index in range(3):
            session.set(index, other)
        np.testing.assert_array_equal(session.read(0), state)
        np.testing.assert_array_equal(session.read(1), x * scale)
        session.step()
        np.testing.assert_allclose(session.read(0), other + other * other, rtol=1e-6)
        session.step()  # the state is fed, the others keep their values
        np.testing.assert_allclose(session.read(0), other + 2 * other * other, rtol=1e-6)

    def test_small(self):
        for cores in (1, 2, 3):
            self.check(5, cores)

    def test_copied_by_several_workers(self):
        for cores in (1, 2, 3):
            self.check((9 << 20) // 4 + 3, cores)


if __name__ == "__main__":
    unittest.main()
