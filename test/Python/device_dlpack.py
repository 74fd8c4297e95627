# RUN: env LD_LIBRARY_PATH=%fake_gpu FAKE_CUDA_REPORT=1 %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values on a GPU by DLPack, out and in, on a driver whose GPU is host memory: no copy to the host, streams, refusals."""

import ctypes
import gc
import unittest

import numpy as np

import tessera as ts
from tessera import _core

W, X = (np.random.default_rng(7).standard_normal(shape, np.float32) for shape in ((6, 5), (4, 6)))


def product(x, w):
    return x @ w


class Other:
    """An array of another library that records the requested streams."""

    def __init__(self, tensor):
        self._tensor, self.shape, self.dtype, self.streams = tensor, tensor.shape, np.dtype("float32"), []

    def __array__(self):
        raise TypeError("it is on a GPU")

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **options):
        self.streams.append(stream)
        return self._tensor.__dlpack__(stream=stream, **options)

    def get(self):
        return self._tensor.numpy()


class DeviceDLPack(unittest.TestCase):
    def setUp(self):
        self.product = ts.jit(product, backend="cuda")
        self.y = self.product(ts.asarray(X), ts.asarray(W))

    def counters(self, jitted):
        return dict(next(iter(jitted._recorded.values())).session.counters)

    def test_out(self):
        before = self.counters(self.product)
        self.assertEqual(self.y.__dlpack_device__(), (2, 0))
        for stream in (None, -1, 1, 2):
            memory = _core.Memory(self.y.__dlpack__(stream=stream))
            self.assertEqual((memory.device, tuple(memory.shape), tuple(memory.type), memory.is_dense), (0, (4, 5), (2, 32, 1), True))
            held = np.ctypeslib.as_array((ctypes.c_float * 20).from_address(memory.address)).reshape(4, 5)
            np.testing.assert_allclose(held, X @ W, rtol=1e-5)
        self.assertEqual(self.counters(self.product)["device_to_host_bytes"], before["device_to_host_bytes"])

    def test_out_to_the_host(self):
        np.testing.assert_allclose(np.from_dlpack(self.y, device="cpu"), X @ W, rtol=1e-5)

    def test_what_was_handed_out_stays(self):
        memory = _core.Memory(self.y.__dlpack__())
        del self.y
        for _ in range(3):
            kept = self.product(ts.asarray(X * 2), ts.asarray(W))
        del kept
        held = np.ctypeslib.as_array((ctypes.c_float * 20).from_address(memory.address)).reshape(4, 5)
        np.testing.assert_allclose(held, X @ W, rtol=1e-5)

    def test_wrong_streams_and_devices(self):
        with self.assertRaisesRegex(BufferError, "stream 0 is not a CUDA stream; expected None, -1, 1, 2 or a handle"):
            self.y.__dlpack__(stream=0)
        with self.assertRaisesRegex(BufferError, r"on device \(2, 0\) can be exported to it or to the host, not to \(2, 1\)"):
            self.y.__dlpack__(dl_device=(2, 1))

    def test_in(self):
        other = Other(self.y)
        tensor = ts.from_dlpack(other)
        self.assertEqual((tensor.shape, tensor.dtype, other.streams), ((4, 5), ts.float32, [1]))
        self.assertEqual(tensor.__dlpack_device__(), (2, 0))
        again = ts.jit(product, backend="cuda")
        right = ts.asarray(np.eye(5, dtype=np.float32))
        again(tensor, right)
        before = self.counters(again)
        z = again(ts.from_dlpack(Other(self.y)), right)
        after = self.counters(again)
        self.assertEqual([after[name] - before[name] for name in ("host_to_device_bytes", "device_to_host_bytes")], [0, 0])
        np.testing.assert_allclose(z.numpy(), X @ W, rtol=1e-5)

    def test_a_call_takes_arrays_of_others(self):
        again = ts.jit(product, backend="cuda")
        z = again(Other(self.y), np.eye(5, dtype=np.float32))
        np.testing.assert_allclose(z.numpy(), X @ W, rtol=1e-5)
        self.assertEqual(self.counters(again)["host_to_device_bytes"], 100)

    def test_a_program_of_the_host_reads_them(self):
        z = ts.jit(product)(Other(self.y), np.eye(5, dtype=np.float32))
        np.testing.assert_allclose(z.numpy(), X @ W, rtol=1e-5)

    def test_what_is_no_array(self):
        with self.assertRaisesRegex(ts.ArgumentError, "from_dlpack takes an array with __dlpack__, not int"):
            ts.from_dlpack(3)

    def test_closing_frees(self):
        del self.product
        gc.collect()
        np.testing.assert_allclose(self.y.numpy(), X @ W, rtol=1e-5)


if __name__ == "__main__":
    unittest.main()
