# RUN: rm -rf %t && mkdir -p %t/driver %t/site/nvidia/cu13/lib %t/site/nvidia/nccl/lib %t/site/nvidia/nothing/lib
# RUN: cp %fake_gpu/libcuda.so.1 %t/driver
# RUN: cp %fake_gpu/libcublasLt.so.13 %t/site/nvidia/cu13/lib
# RUN: cp %fake_gpu/libnccl.so.2 %t/site/nvidia/nccl/lib
# RUN: env LD_LIBRARY_PATH=%t/driver %tessera_python %s %t/site
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Libraries that pip has put beside the packages of this Python are found: by load, jit, and child processes."""

import os
import sys
import tempfile
import unittest

SITE = sys.argv.pop()
sys.path.append(SITE)

import numpy as np  # noqa: E402

import tessera  # noqa: E402
from tessera import libraries  # noqa: E402

X, W = (np.random.default_rng(3).standard_normal(shape, np.float32) for shape in ((4, 6), (6, 5)))


class PipLibraries(unittest.TestCase):
    def test_folders(self):
        self.assertEqual([folder for folder in libraries.folders() if folder.startswith(SITE)],
                         [f"{SITE}/nvidia/cu13/lib", f"{SITE}/nvidia/nccl/lib"])

    def test_jit(self):
        product = tessera.jit(lambda x, w: x @ w, backend="vdev")
        np.testing.assert_allclose(product(X, W).numpy(), X @ W, rtol=1e-5, atol=1e-6)

    def test_load(self):
        artifact = tessera.jit(lambda x, w: x @ w).lower(X, W).compile()
        product = tessera.load(artifact, backend="vdev")
        np.testing.assert_allclose(np.asarray(product(X, W)), X @ W, rtol=1e-5, atol=1e-6)
        self.assertIn(f"{SITE}/nvidia/cu13/lib", os.environ["TESSERA_LIBRARY_PATH"].split(os.pathsep))

    def test_the_user_comes_first(self):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TESSERA_LIBRARY_PATH"] = folder
            libraries.offer.cache_clear()
            libraries.offer()
            self.assertEqual(os.environ["TESSERA_LIBRARY_PATH"].split(os.pathsep)[0], folder)


if __name__ == "__main__":
    unittest.main()
