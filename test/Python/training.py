# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""jit, grad and value_and_grad: training on many devices equals training on one."""

import os
import subprocess
import tempfile
import threading
import unittest

import numpy as np

import tessera as ts
from tessera import ProcessMesh, Replicate, Shard, reshard, shard_tensor
from tessera.testing import difference


def mlp(params, x, y):
    h = ts.tanh(x @ params["w0"] + params["b0"])
    return ((h @ params["w1"] - y) ** 2).mean()


@ts.jit
def step(params, x, y, rate):
    value, gradients = ts.value_and_grad(mlp)(params, x, y)
    return {k: params[k] - rate * gradients[k] for k in params}, value


def start():
    r = np.random.default_rng(0)
    normal = lambda *shape: r.standard_normal(shape).astype(np.float32)
    return dict(w0=normal(6, 10), b0=normal(10), w1=normal(10, 4)), normal(12, 6), normal(12, 4)


def place(value, mesh, *placements):
    return shard_tensor(value, mesh, list(placements))


class Training(unittest.TestCase):
    def train(self, params, x, y, steps=50):
        for _ in range(steps):
            params, value = step(params, x, y, 0.1)
        return params, value

    def same(self, params, value, reference):
        expected, last = reference
        self.assertIsNone(difference(np.asarray(value), np.asarray(last), 50))
        for name in expected:
            wrong = difference(np.asarray(params[name]), np.asarray(expected[name]), 50)
            self.assertIsNone(wrong, f"{name}: {wrong}")

    def test_equals_one_device(self):
        params, x, y = start()
        reference = self.train(params, x, y)
        for ids in ([0], [0, 1], [0, 1, 2], range(8)):
            mesh = ProcessMesh(ids, ["dp"])
            trained = self.train({k: place(v, mesh) for k, v in params.items()}, place(x, mesh, Shard(0)), place(y, mesh, Shard(0)))
            self.same(*trained, reference)
        mesh = ProcessMesh(np.arange(8).reshape(2, 4), ["dp", "tp"])
        cut = dict(w0=place(params["w0"], mesh, Replicate(), Shard(1)), b0=params["b0"], w1=place(params["w1"], mesh, Replicate(), Shard(0)))
        data = [place(v, mesh, Shard(0), Replicate()) for v in (x, y)]
        trained = self.train(cut, *data)
        self.same(*trained, reference)
        self.assertEqual(trained[0]["w0"].placements, (Replicate(), Shard(1)))

    def test_donation(self):
        """Parameters stay on the devices from step to step: the same weights; reading an overwritten value is an error."""
        params, x, y = start()
        reference = self.train(params, x, y)
        mesh = ProcessMesh(range(4), ["dp"])
        kept = ts.jit(step._function, donate=True)
        now = {k: place(v, mesh) for k, v in params.items()}
        x, y = place(x, mesh, Shard(0)), place(y, mesh, Shard(0))
        for i in range(50):
            before = now
            now, value = kept(now, x, y, 0.1)
            if i == 10:
                eleventh = now["w0"].numpy().copy()  # read while it is on the device
                held = now
        self.same(now, value, reference)
        np.testing.assert_array_equal(held["w0"].numpy(), eleventh)
        self.refused(ts.TraceError, "was donated to 'step', which has overwritten it", lambda: before["w1"].numpy())
        # Another order: an earlier result again, and results of two calls that both are alive.
        first, _ = kept({k: place(v, mesh) for k, v in params.items()}, x, y, 0.1)
        second, _ = kept({k: place(v, mesh) for k, v in params.items()}, x, y, 0.2)
        plain, _ = step(params, np.asarray(x), np.asarray(y), 0.1)
        np.testing.assert_allclose(first["w0"].numpy(), plain["w0"].numpy(), rtol=1e-5, atol=1e-6)
        self.assertFalse(np.allclose(second["w0"].numpy(), first["w0"].numpy()))

    def test_threads(self):
        """One function called from several threads: each gets the results of its own call."""
        function, results = ts.jit(lambda x: (x @ x.T).sum()), {}

        def call(i):
            results[i] = [function(np.full((8, 8), i + k, np.float32)).item() for k in range(5)]
        threads = [threading.Thread(target=call, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, {i: [512.0 * (i + k) ** 2 for k in range(5)] for i in range(8)})

    def test_one_reduction_of_gradients(self):
        params, x, y = start()
        mesh = ProcessMesh(range(8), ["dp"])
        report = ts.explain(step, {k: place(v, mesh) for k, v in params.items()}, place(x, mesh, Shard(0)), place(y, mesh, Shard(0)), 0.1)
        self.assertEqual([(c["kind"], c["bytes"]) for c in report["collectives"]], [("all_reduce", 4 * (60 + 10 + 40 + 1))])
        self.assertIn("[dp] of 8", str(report))

    def test_report_is_that_of_the_command(self):
        """With a search and without."""
        mesh = ProcessMesh(np.arange(4).reshape(2, 2), ["dp", "tp"])
        made = ts.jit(lambda x, w: ts.ops.tanh(x @ w) @ w.mT)
        args = place(np.ones((8, 6), np.float32), mesh, Shard(0)), place(np.ones((6, 4), np.float32), mesh, Replicate(), Shard(1))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.mlir")
            with open(path, "w") as file:
                file.write(made.lower(*args).mlir)
            for search, flags in ((None, []), ("dynamic_programming", ["--mode", "dynamic_programming"])):
                said = subprocess.run(["tessera", "explain", path, *flags], capture_output=True, text=True, check=True).stdout.rstrip("\n")
                self.assertEqual(str(ts.explain(ts.jit(made._function, search=search), *args)), said)
                self.assertIn("partial sums reduced", said)

    def test_locations(self):
        """Operations have the user's line, also in a derivative."""
        params, x, y = start()
        program = step.lower(params, x, y, 0.1)
        line = mlp.__code__.co_firstlineno + 1
        self.assertIn(f'loc("{__file__}":{line}:', program.mlir)
        report = ts.explain(step, params, place(x, ProcessMesh([0, 1], ["dp"]), Shard(0)), y, 0.1)
        self.assertTrue(all(c["loc"].startswith(__file__) for c in report["collectives"]), report["collectives"])

    def test_bytes_are_counted(self):
        params, x, y = start()
        mesh = ProcessMesh(range(2), ["dp"])
        counted = ts.jit(lambda p, x, y: ts.grad(mlp)(p, x, y))
        arguments = {k: place(v, mesh) for k, v in params.items()}, place(x, mesh, Shard(0)), place(y, mesh, Shard(0))
        counted(*arguments)
        self.assertEqual(counted.wire_bytes, counted.explain(*arguments)["wire_bytes_total"])

    def test_finite_differences(self):
        r = np.random.default_rng(1)
        x, d = r.standard_normal((5, 4)), r.standard_normal((5, 4))

        def loss(x):
            h = ts.softmax(x @ ts.sigmoid(x.T)) * ts.exp(-x.sum(1, keepdims=True))
            return (ts.take(h, np.array([1, 3]), 1).max(0) / (1 + ts.square(h).mean(0))[:2]).sum()
        analytic = float((ts.grad(loss)(x).numpy() * d).sum())
        e, value = 1e-6, ts.jit(loss)
        self.assertLess(abs(analytic - (value(x + e * d).item() - value(x - e * d).item()) / (2 * e)), 1e-6 * abs(analytic))

    def test_second_derivatives(self):
        x = np.array([0.3, -0.7])
        second = ts.grad(lambda x: ts.grad(lambda x: (ts.sin(x) * x).sum())(x).sum())(x)
        np.testing.assert_allclose(second.numpy(), 2 * np.cos(x) - x * np.sin(x), rtol=1e-10)

    def test_several_arguments_and_more_results(self):
        a, c = np.float32(2), np.array([1, 2], np.float32)
        (value, more), (da, dc) = ts.value_and_grad(lambda a, c: ((a * c * c).sum(), c + 1), (0, 1), has_aux=True)(a, c)
        self.assertEqual((value.item(), more.tolist(), da.item(), dc.tolist()), (10, [2, 3], 5, [4, 8]))
        self.assertEqual(ts.grad(lambda x: (ts.stop_gradient(x) * x).sum())(c).tolist(), [1, 2])

    def test_captured_values(self):
        """Captured values become arguments of the program, also in a differentiated one."""
        w = shard_tensor(np.arange(40, dtype=np.float32).reshape(10, 4), ProcessMesh(range(4), ["x"]), [Shard(0)])
        gradient = ts.grad(lambda x: (x @ w).sum())(np.ones((2, 10), np.float32))
        np.testing.assert_array_equal(gradient.numpy(), np.tile(w.numpy().sum(1), (2, 1)))

    def test_two_meshes(self):
        """The layers of a perceptron on two meshes: only the activation and its gradient are transferred."""
        first, second = ProcessMesh(range(4), ["x"], "first"), ProcessMesh(range(4, 8), ["x"], "second")

        def loss(params, x, y):
            h = reshard(ts.tanh(x @ params["w0"] + params["b0"]), second, [Replicate()])
            return ((h @ params["w1"] - y) ** 2).mean()

        @ts.jit
        def step(params, x, y):
            value, gradients = ts.value_and_grad(loss)(params, x, y)
            return {k: params[k] - 0.1 * gradients[k] for k in params}, value
        params, x, y = start()
        reference = self.train(params, x, y)
        staged = {k: place(v, second if k == "w1" else first) for k, v in params.items()}
        x, y = place(x, first), place(y, second)
        for _ in range(50):
            staged, value = step(staged, x, y)
        self.same(staged, value, reference)
        kinds = [c["kind"] for c in ts.explain(step, staged, x, y)["collectives"]]
        self.assertEqual(kinds, ["send", "send"])

    def refused(self, kind, message, function):
        with self.assertRaises(kind) as caught:
            function()
        self.assertIn(message, str(caught.exception))
        self.assertIn(f"{__file__}:", str(caught.exception))

    def test_refused(self):
        x = np.ones((2, 3), np.float32)
        self.refused(ts.ShapeError, "returns shape (2, 3); only scalars", lambda: ts.grad(lambda x: x)(x))
        self.refused(ts.DTypeError, "returns int64", lambda: ts.grad(lambda x: x.sum().astype("int64"))(x))
        self.refused(ts.ArgumentError, "argnums 1", lambda: ts.grad(lambda x: x.sum(), 1)(x))
        self.refused(ts.ArgumentError, "no floating-point tensor", lambda: ts.grad(lambda x: x.sum())(np.ones(3, int)))
        self.refused(ts.ArgumentError, "a pair (scalar, aux)", lambda: ts.grad(lambda x: x.sum(), has_aux=True)(x))
        self.refused(ts.ArgumentError, "'x' is a description", lambda: ts.jit(lambda x: x)(ts.spec((2, 3))))


if __name__ == "__main__":
    unittest.main()
