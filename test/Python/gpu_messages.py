# RUN: env LD_LIBRARY_PATH=%fake_gpu %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a GPU lacks is one error of jit and load, before anything runs: memory (with how much), an old GPU, an old driver, a library."""

import os
import subprocess
import sys
import tempfile
import unittest

CALL = """
import numpy as np, tessera as ts
try:
    ts.jit(lambda x, w: ts.ops.exp(x @ w), backend="vdev")(np.ones((512, 512), np.float32), np.ones((512, 512), np.float32))
    print("ran")
except ts.errors.Error as error:
    print(type(error).__name__, str(error))
"""


def call(text=CALL, libraries=None, **environment):
    if libraries:
        environment["LD_LIBRARY_PATH"] = libraries
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=dict(os.environ, FAKE_CUDA_KERNELS="1", **environment))
    return [line for line in done.stdout.splitlines() + done.stderr.splitlines() if "cuda: a kernel" not in line]


class GpuMessages(unittest.TestCase):
    def one(self, expected, lines):
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], expected)

    def test_it_runs(self):
        self.assertEqual(call(), ["ran"])

    def test_memory(self):
        self.one(r"a device of the program needs \d+ bytes, Fake GPU has 1048576 of 1048576 free", call(FAKE_CUDA_MIB="1"))

    def test_old_gpu(self):
        self.one("Fake GPU is sm_75; kernels need sm_80 or newer", call(FAKE_CUDA_CAPABILITY="75"))

    def test_old_driver(self):
        self.one(r"the CUDA driver of Fake GPU supports CUDA 10.2 and does not load the code .*; install a later driver", call(FAKE_CUDA_VERSION="10020"))

    def test_missing_library(self):
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(os.path.join(os.environ["LD_LIBRARY_PATH"], "libcuda.so.1"), os.path.join(folder, "libcuda.so.1"))
            for name in ("libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"):
                with open(os.path.join(folder, name), "w") as file:
                    file.write("not a library")
            self.one("matrix products need cuBLASLt, which comes with the CUDA toolkit", call(libraries=folder))


if __name__ == "__main__":
    unittest.main()
