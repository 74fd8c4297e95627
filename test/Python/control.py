# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops, rematerialization and custom derivatives, with gradients, on one device and cut; options of jit."""

import unittest

import numpy as np

import tessera as ts
from tessera import ProcessMesh, Replicate, Shard, nn, shard_tensor

W, X = [np.random.default_rng(i).standard_normal(s).astype(np.float32) / 2 for i, s in enumerate(((3, 4, 4), (6, 4)))]
MESH = ProcessMesh([[0, 1], [2, 3]], ["x", "y"])


def both(array, placements):
    return array, shard_tensor(array, MESH, placements)


class Control(unittest.TestCase):
    def check(self, function, expected):
        """Value and gradients by w and x equal those of the plain function, whole and cut."""
        plain = ts.jit(lambda w, x: ts.value_and_grad(expected, (0, 1))(w, x))(W, X)
        step = ts.jit(lambda w, x: ts.value_and_grad(function, (0, 1))(w, x))
        for w, x in zip(both(W, [Replicate(), Shard(2)]), both(X, [Shard(0)])):
            value, gradients = step(w, x)
            np.testing.assert_allclose(value.item(), plain[0].item(), rtol=1e-5)
            for a, b in zip(gradients, plain[1]):
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)
        return step

    def unrolled(self, w, x):
        for i in range(3):
            x = ts.tanh(x @ w[i])
        return x.sum()

    def test_scan(self):
        step = self.check(lambda w, x: ts.scan(lambda x, w: (ts.tanh(x @ w), x), x, w)[0].sum(), self.unrolled)
        self.assertEqual(step.lower(W, X).mlir.count("scf.for"), 1)
        last, all = ts.jit(lambda w, x: ts.scan(lambda x, w: (ts.tanh(x @ w), x.sum(0)), x, w))(W, X)
        self.assertEqual(all.shape, (3, 4))
        np.testing.assert_allclose(all.numpy()[0], X.sum(0), rtol=1e-5)
        np.testing.assert_allclose(last.sum().item(), self.unrolled(ts.asarray(W), ts.asarray(X)).item(), rtol=1e-5)

    def test_fori_loop(self):
        self.check(lambda w, x: ts.fori_loop(3, lambda i, x: ts.tanh(x @ w[0]), x).sum(),
                   lambda w, x: ts.tanh(ts.tanh(ts.tanh(x @ w[0]) @ w[0]) @ w[0]).sum())
        self.assertEqual(ts.fori_loop(5, lambda i, s: s + i, ts.asarray(0)).item(), 10)

    def test_checkpoint(self):
        layer = ts.checkpoint(lambda x, w: ts.tanh(x @ w))

        def function(w, x):
            for i in range(3):
                x = layer(x, w[i])
            return x.sum()
        step = self.check(function, self.unrolled)
        self.assertEqual(step.lower(W, X).mlir.count("dist.checkpoint"), 3)

    def test_custom_gradient(self):
        """Twice the derivative: the sum of the function and of itself without one."""
        doubled = ts.custom_gradient(lambda x, w: ts.tanh(x @ w), lambda args, out, g: (
            2 * ((g[0] * (1 - out[0] * out[0])) @ args[1].T), 2 * (args[0].T @ (g[0] * (1 - out[0] * out[0])))))
        self.check(lambda w, x: doubled(x, w[0]).sum(), lambda w, x: (lambda y: (2 * y - ts.stop_gradient(y)).sum())(ts.tanh(x @ w[0])))

    def test_custom_gradient_alone(self):
        """Without a derivative."""
        doubled = ts.custom_gradient(lambda x: 2 * x, lambda args, out, g: (g[0],))
        np.testing.assert_array_equal(ts.jit(lambda x: doubled(x) + 1)(X).numpy(), 2 * X + 1)

    def test_mesh(self):
        """Values without annotations are on the mesh of jit."""
        step = ts.jit(lambda x: x * 2, mesh=MESH)
        self.assertEqual(step(X).mesh, MESH)
        self.assertIsNone(ts.jit(lambda x: x * 2)(X).mesh)

    def test_search(self):
        """Without annotations a search cuts the product; the values are the same."""
        product = ts.jit(lambda x, w: x @ w, mesh=MESH, search="dynamic_programming")
        np.testing.assert_allclose(product(X, W[0]).numpy(), X @ W[0], rtol=1e-4, atol=1e-5)
        self.assertLess(min(int(np.prod(a["local_shape"])) for a in product.explain(X, W[0])["results"]), 24)

    def test_recurrent(self):
        """A recurrent cell over sequences of an uneven batch: the loop sends nothing, and gradients, without annotations,
        are scattered once."""
        def loss(w, xs):
            def cell(h, x):
                h = ts.tanh(x @ w["x"] + h @ w["h"])
                return h, h
            return (ts.scan(cell, ts.zeros((xs.shape[1], 4)), xs)[1] ** 2).mean()
        step = ts.jit(ts.value_and_grad(loss))
        w, xs = {"x": W[0], "h": W[1]}, np.stack([X, X + 1, X - 1])
        mesh = ProcessMesh(range(4), ["d"])
        placed = {k: shard_tensor(v, mesh, []) for k, v in w.items()}, shard_tensor(xs, mesh, [Shard(1)])
        (value, gradients), (expected, whole) = step(*placed), step(w, xs)
        np.testing.assert_allclose(value.item(), expected.item(), rtol=1e-5)
        for k in w:
            np.testing.assert_allclose(gradients[k].numpy(), whole[k].numpy(), rtol=1e-4, atol=1e-6)
        # Of few rows a whole loop costs less than two collectives of gradients.
        many = shard_tensor(np.tile(xs, (1, 17001, 1)), mesh, [Shard(1)])
        self.assertEqual([(c["kind"], c["trips"]) for c in step.explain(placed[0], many)["collectives"]],
                         [("all_reduce", 1), ("reduce_scatter", 1)])

    def test_memory(self):
        """Under a budget the plan fits; the least memory is at most that of any other plan; the error names values that do not fit."""
        shapes = [ts.spec(s) for s in ((512, 512), (512, 2048), (2048, 512))]
        function = lambda x, w, v: nn.relu(x @ w) @ v
        peak = lambda **more: ts.jit(function, mesh=ProcessMesh(range(8), ["d"]), search="dynamic_programming", **more).explain(*shapes)["peak_memory_bytes"]
        free, least = peak(), peak(minimise="memory")
        within = peak(memory_budget=free / 2 / 2 ** 30)
        self.assertLess(least, free)
        self.assertLessEqual(within, free / 2)
        self.assertLessEqual(least, within)
        with self.assertRaisesRegex(ts.Error, "no plan was found that fits into the memory budget of 1.05 KiB .1073 bytes. per device; the least found needs .*'x' takes most"):
            peak(memory_budget=1e-6)

    def refused(self, kind, message, function):
        with self.assertRaises(kind) as caught:
            function()
        self.assertIn(message, str(caught.exception))
        self.assertIn(f"{__file__}:", str(caught.exception))

    def test_refused(self):
        self.refused(ts.ShapeError, "carries 'the tensor' of float32 (6, 4) and returns float32 (4,)", lambda: ts.fori_loop(3, lambda i, x: x.sum(0), X))
        self.refused(ts.ShapeError, "first axes of one non-zero length", lambda: ts.scan(lambda c, x: (c, x), X, [W, X]))
        self.refused(ts.ArgumentError, "of scan must return a pair (carry, y), not Tensor", lambda: ts.scan(lambda c, x: c, X[0], X))
        self.refused(ts.ArgumentError, "a loop runs -1 times", lambda: ts.fori_loop(-1, lambda i, x: x, X))
        self.refused(ts.ArgumentError, "returns 1 cotangents for 2 arguments", lambda: ts.custom_gradient(lambda x, w: x @ w, lambda *_: (X,))(X, W[0]))
        self.refused(ts.ShapeError, "a cotangent of float32 (6, 4) for an argument of float32 (4, 4)",
                     lambda: ts.custom_gradient(lambda x, w: x @ w, lambda *_: (X, X))(X, W[0]))
        self.refused(ts.ArgumentError, "jit has no option 'serch'; did you mean 'search'?", lambda: ts.jit(lambda x: x, serch="exact"))
        self.refused(ts.ArgumentError, "jit has no option 'zzz'; it has mesh, search, ", lambda: ts.jit(zzz=1))
        self.refused(ts.Error, "there is no backend 'gpu'", lambda: ts.jit(lambda x: x, backend="gpu")(np.ones(2, np.float32)))
        self.refused(ts.ArgumentError, "search 'magic' of jit", lambda: ts.jit(lambda x: x, search="magic"))
        self.refused(ts.ArgumentError, "objective 'beauty' of jit", lambda: ts.jit(lambda x: x, objective="beauty"))
        self.refused(ts.ArgumentError, "mesh 4 of jit", lambda: ts.jit(lambda x: x, mesh=4))
        self.refused(ts.ArgumentError, "memory_budget -1 of jit", lambda: ts.jit(lambda x: x, search="exact", memory_budget=-1))
        for budget in (float("inf"), "much", True):
            self.refused(ts.ArgumentError, f"memory_budget {budget!r} of jit", lambda: ts.jit(lambda x: x, search="exact", memory_budget=budget))
        self.refused(ts.ArgumentError, "time_limit 0 of jit", lambda: ts.jit(lambda x: x, search="exact", time_limit=0))
        self.refused(ts.ArgumentError, "time_limit of jit apply to a search", lambda: ts.jit(lambda x: x, time_limit=3))
        self.refused(ts.ArgumentError, "topology 3 of jit is not a path", lambda: ts.jit(lambda x: x, topology=3))
        ts.jit(lambda x: x, search="exact", memory_budget=np.float32(1), time_limit=3, topology=None)
        self.refused(ts.ArgumentError, "minimise 'words' of jit", lambda: ts.jit(lambda x: x, search="exact", minimise="words"))
        self.refused(ts.ArgumentError, "apply to a search", lambda: ts.jit(lambda x: x, memory_budget=1))
        self.refused(ts.ArgumentError, "takes a function, not 5", lambda: ts.jit(5))
        self.refused(ts.ArgumentError, "takes a function, not 5", lambda: ts.value_and_grad(5))


if __name__ == "__main__":
    unittest.main()
