# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tessera.load: artifacts called with arrays of any library, by order or by name; state fed from call to call; refusals."""

import array
import os
import tempfile
import unittest

import numpy as np

import tessera

TEXT = """
dist.process_mesh @line(shape = [4], dim_names = ["d"])
func.func @main(%w: tensor<6xf32> {dist.name = "w", dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %x: tensor<6xf32> {dist.name = "x"})
    -> (tensor<6xf32> {dist.name = "next", dist.feeds = 0 : i64}, tensor<6xf32> {dist.name = "product"}) {
  %next = arith.addf %w, %x : tensor<6xf32>
  %product = arith.mulf %w, %x : tensor<6xf32>
  return %next, %product : tensor<6xf32>, tensor<6xf32>
}
"""
ONE = """
func.func @main(%x: tensor<2xbf16> {dist.name = "x"}) -> (tensor<2xbf16> {dist.name = "y"}) {
  %y = arith.addf %x, %x : tensor<2xbf16>
  return %y : tensor<2xbf16>
}
"""
W, X = np.arange(6, dtype=np.float32), np.full(6, 2, np.float32)


class OnlyDLPack:
    """An array of another library."""

    def __init__(self, values, device=None):
        self._values, self._device, self.dtype = values, device, values.dtype

    def __dlpack__(self, **options):
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._device or self._values.__dlpack_device__()


class Calls(unittest.TestCase):
    def setUp(self):
        self.artifact = tessera.Program(TEXT).compile()

    def test_by_order_and_by_name(self):
        for call in (lambda f: f(W, X), lambda f: f(W, x=X), lambda f: f(x=X, w=W)):
            following, product = call(tessera.load(self.artifact))
            np.testing.assert_array_equal(following, W + X)
            np.testing.assert_array_equal(product, W * X)

    def test_what_is_left_out_is_fed(self):
        program = tessera.load(self.artifact)
        program(W, X)
        following, product = program()
        np.testing.assert_array_equal(following, W + 2 * X)
        np.testing.assert_array_equal(product, (W + X) * X)

    def test_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "p.tsra")
            with open(path, "wb") as file:
                file.write(self.artifact)
            program = tessera.load(path)
        self.assertEqual(repr(program), "Executable((w: f32[6], x: f32[6]) -> (next: f32[6], product: f32[6]))")

    def test_other_libraries(self):
        for value in (OnlyDLPack(X), array.array("f", X), memoryview(X)):
            np.testing.assert_array_equal(tessera.load(self.artifact)(W, value)[1], W * X)

    def test_results_are_handed_on(self):
        _, product = tessera.load(self.artifact)(W, X)
        np.testing.assert_array_equal(np.from_dlpack(product), W * X)

    def test_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("no PyTorch")
        product = tessera.load(self.artifact)(torch.arange(6.0), torch.full((6,), 2.0, requires_grad=True))[1]
        self.assertTrue(torch.equal(torch.from_dlpack(product), torch.arange(6.0) * 2))
        doubled = tessera.load(tessera.Program(ONE).compile())(torch.tensor([1.5, -2.0], dtype=torch.bfloat16))
        self.assertTrue(torch.equal(torch.from_numpy(doubled.view(np.int16)).view(torch.bfloat16),
                                    torch.tensor([3.0, -4.0], dtype=torch.bfloat16)))
        handed = torch.from_dlpack(doubled)
        self.assertTrue(torch.equal(handed, torch.tensor([3.0, -4.0], dtype=torch.bfloat16)))
        self.assertTrue(torch.equal(torch.from_dlpack(doubled[1:]), handed[1:]))
        np.testing.assert_array_equal(np.from_dlpack(doubled.astype(np.float32)), [3, -4])

    def test_torch_signs_yet_to_come(self):
        """An imaginary part of a conjugate has the sign as a flag, which DLPack does not hand on."""
        try:
            import torch
        except ImportError:
            self.skipTest("no PyTorch")
        negated = torch.tensor([1 + 2j] * 6).conj().imag
        self.assertTrue(negated.is_neg())
        np.testing.assert_array_equal(tessera.load(self.artifact)(negated, X)[1], np.full(6, -4))

    def test_jax_beside_torch(self):
        try:
            import jax.numpy as jnp
            import torch  # noqa: F401
        except ImportError:
            self.skipTest("no JAX or no PyTorch")
        doubled = tessera.load(tessera.Program(ONE).compile())(jnp.array([1.5, -2], jnp.bfloat16))
        np.testing.assert_array_equal(doubled.astype(np.float32), [3, -4])
        np.testing.assert_array_equal(np.asarray(jnp.from_dlpack(doubled), np.float32), [3, -4])


class Refusals(unittest.TestCase):
    def setUp(self):
        self.program = tessera.load(tessera.Program(TEXT).compile())

    def refused(self, message, function, *args, **named):
        with self.assertRaises(tessera.Error) as caught:
            function(*args, **named)
        self.assertIn(message, str(caught.exception))
        self.assertRegex(str(caught.exception), r"^\S+executable.py:\d+:\d+: error: ")

    def test_arguments(self):
        self.refused("3 values, the program takes 2: w, x", self.program, W, X, X)
        self.refused("no argument 'v'; it takes w, x", self.program, v=W)
        self.refused("'w' is given twice", self.program, W, w=W)
        self.refused("argument 'x' is float64, the program takes float32", self.program, W, X.astype(np.float64))
        self.refused("argument 'x' has shape (5,), the program takes (6,)", self.program, W, X[:5])

    def test_device(self):
        self.refused("argument 'x' is on device (2, 0)", self.program, W, OnlyDLPack(X, (2, 0)))

    def test_files(self):
        self.refused("cannot read the artifact", tessera.load, "/nowhere/p.tsra")
        self.refused("artifact", tessera.load, tessera.Program(TEXT).compile()[:-9])
        self.refused("nowhere", tessera.load, tessera.Program(TEXT).compile(), "nowhere")

    def test_options_of_load(self):
        artifact = tessera.Program(TEXT).compile()
        self.refused("seed -1 is not a whole number from 0 to 18446744073709551615", tessera.load, artifact, seed=-1)
        self.refused("cores -1 is not a whole number from 0", tessera.load, artifact, cores=-1)
        self.refused("devices 1000000000 is not a whole number from 0 to 1048576", tessera.load, artifact, devices=10**9)
        self.refused("devices 2.5 is not a whole number", tessera.load, artifact, devices=2.5)
        self.refused("backend 3 is not a name", tessera.load, artifact, backend=3)
        self.refused("artifact None is neither a path nor bytes", tessera.load, None)
        self.assertEqual(len(tessera.load(bytearray(artifact)).results), 2)
        self.assertEqual(len(tessera.load(artifact, devices=np.int64(4), seed=2**64 - 1).results), 2)

    def test_options_of_programs(self):
        program = tessera.Program(TEXT)
        self.refused("target 3 is not a string", program.compile, target=3)
        self.refused("arch 90 is not an architecture or a list of them", program.compile, target="cuda", arch=90)
        self.refused("unknown architecture 'sm_99'", program.compile, target="cuda", arch=["compute_80", "sm_99"])
        self.refused("--arch applies to target cuda", program.compile, arch="compute_80")
        self.refused("compile has no option 'speed'; it has target, arch", program.compile, speed=3)
        self.refused("lower has no option 'target'", program.lower, "fused", target="cpu")
        self.refused("topology 3 is not a file path", program.explain, topology=3)
        self.refused("memory_budget inf is not a number of GiB", program.explain, search="dynamic_programming", memory_budget=float("inf"))
        self.refused("memory_budget -1 is not a number of GiB", program.explain, search="dynamic_programming", memory_budget=-1)
        self.refused("time_limit 'long' is not a number of seconds", program.explain, search="dynamic_programming", time_limit="long")
        self.refused("executable.py:", program.explain, objective="speed")
        self.refused("objective 'speed' is not one of time, bytes", program.explain, objective="speed")
        self.refused("search 'speed' is not a valid mode; expected one of sharding_propagation", program.explain, search="speed")
        with tempfile.TemporaryDirectory() as folder:
            self.refused(f"path '{folder}' is a folder; give a file", program.compile, folder)
            self.refused("no file can be written to folder", program.compile, os.path.join(folder, "none", "x.tsra"))
        self.refused("in Python with devices=", tessera.Program(ONE).explain, search="dynamic_programming")
        tessera.Program(ONE).explain(search="dynamic_programming", devices=2, memory_budget=np.float32(1), time_limit=5, topology=None)

    def test_architectures(self):
        program = tessera.Program(TEXT)
        for arch in ("compute_80,compute_90", ["compute_80", "compute_90"]):
            artifact = program.compile(target="cuda", arch=arch)
            self.refused("(compute_80, compute_90)", tessera.load, artifact)

    def test_tensors_of_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("no PyTorch")
        self.refused("argument 'x' is on device meta, it has no values", self.program, W, torch.empty(6, device="meta"))
        self.refused("argument 'x' is of layout torch.sparse_coo", self.program, W, torch.ones(6).to_sparse())

    def test_no_array(self):
        self.refused("argument 'x' cannot be read as an array", self.program, W, [[1, 2], [3]])


if __name__ == "__main__":
    unittest.main()
