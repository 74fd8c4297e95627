# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers, losses, random numbers: values against NumPy, gradients against central differences, training cut and whole."""

import math
import unittest
import warnings

import numpy as np

import tessera as ts
from tessera import ProcessMesh, Replicate, Shard, nn, ops, random, shard_tensor, tree
from tessera.nn.attention import attention

R = np.random.default_rng(0)


def floats(*shape):
    return R.standard_normal(shape).astype(np.float32)


class Values(unittest.TestCase):
    def close(self, actual, expected):
        np.testing.assert_allclose(actual.numpy(), expected, rtol=2e-4, atol=2e-5)

    def test_layers(self):
        x, norm, rms, linear = floats(3, 5), nn.LayerNorm(5), nn.RMSNorm(5), nn.Linear(5, 4)
        made = ts.jit(lambda x: (norm(x), rms(x), linear(x), nn.gelu(x), nn.silu(x), nn.functional.softplus(x), nn.functional.leaky_relu(x),
                                 nn.gelu(x, True)))(x)
        erf = np.vectorize(math.erf)
        self.close(made[0], (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5))
        self.close(made[1], x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6))
        self.close(made[2], x @ linear.weight.numpy() + linear.bias.numpy())
        self.close(made[3], x / 2 * (1 + erf(x / np.sqrt(2))))
        self.close(made[4], x / (1 + np.exp(-x)))
        self.close(made[5], np.log1p(np.exp(x)))
        self.close(made[6], np.where(x > 0, x, x / 100))
        np.testing.assert_allclose(made[7].numpy(), made[3].numpy(), atol=2e-3)

    def test_convolution(self):
        """Against an explicit sum, with stride, padding, dilation, groups; also on a cut image."""
        x, w, bias = floats(2, 4, 9, 8), floats(6, 2, 3, 2), floats(6)
        padded = np.pad(x, [(0, 0), (0, 0), (1, 2), (1, 1)])
        out = np.zeros((2, 6, 5, 8), np.float32)
        for f in range(6):
            for i in range(5):
                for j in range(8):
                    window = padded[:, f // 3 * 2:f // 3 * 2 + 2, 2 * i:2 * i + 3, j:j + 3:2]
                    out[:, f, i, j] = (window * w[f]).sum((1, 2, 3)) + bias[f]
        conv = ts.jit(lambda x: ops.conv(x, w, bias, (2, 1), [(1, 2), (1, 1)], (1, 2), 2))
        mesh = ProcessMesh([[0, 1], [2, 3]], ["h", "w"])
        self.close(conv(x), out)
        self.close(conv(shard_tensor(x, mesh, [Shard(2), Shard(3)])), out)

    def test_pools(self):
        x = floats(2, 3, 6, 8)
        tiles = x.reshape(2, 3, 3, 2, 4, 2)
        largest, mean, three = ts.jit(lambda x: (nn.MaxPool2d(2)(x), nn.AvgPool2d(2)(x), ops.max_pool(x, 3, 1, 1)))(x)
        self.close(largest, tiles.max((3, 5)))
        self.close(mean, tiles.mean((3, 5)))
        padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-np.inf)
        self.close(three, np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3)).max((-1, -2)))

    def test_attention(self):
        layer, x = nn.MultiHeadAttention(8, 2, causal=True), floats(2, 5, 8)
        q, k, v = [np.einsum("bse,ehd->bshd", x, w.numpy()) for w in (layer.query, layer.key, layer.value)]
        s = np.einsum("bqhd,bkhd->bhqk", q, k) / 2
        s = np.where(np.tril(np.ones((5, 5), bool)), s, -np.inf)
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        y = np.einsum("bhqk,bkhd->bqhd", p, v)
        self.close(layer(x), np.einsum("bshd,hde->bse", y, layer.out.numpy()))
        dropped = nn.MultiHeadAttention(8, 2, causal=True, dropout=0.25, seed=3)
        dropped.load_state_dict({**layer.state_dict(), "dropout.counter": np.array(0, np.int32)})
        for call in 0, 1:
            kept = random.uniform(random.key(3, call), p.shape).numpy() >= 0.25
            y = np.einsum("bhqk,bkhd->bqhd", np.where(kept, p / 0.75, 0), v)
            self.close(dropped(x), np.einsum("bshd,hde->bse", y, layer.out.numpy()))
        self.close(dropped.eval()(x), layer(x).numpy())

    def test_losses(self):
        x, t = floats(6, 4), R.integers(0, 4, 6)
        logs = x - np.log(np.exp(x).sum(-1, keepdims=True))
        self.close(nn.cross_entropy(x, t), -logs[np.arange(6), t].mean())
        self.close(nn.cross_entropy(x, t, "none"), -logs[np.arange(6), t])
        self.close(nn.nll_loss(logs, t, "sum"), -logs[np.arange(6), t].sum())
        self.close(nn.mse_loss(x, logs), ((x - logs) ** 2).mean())
        classes = shard_tensor(x, ProcessMesh(range(4), ["c"]), [Shard(1)])
        self.close(nn.cross_entropy(classes, t), -logs[np.arange(6), t].mean())

    def test_ignored_labels(self):
        """They do not contribute to the loss, its mean or a gradient, on whole logits and on cut ones."""
        x, t = floats(6, 4), np.array([1, -100, 3, 0, -100, 2])
        logs, kept = x - np.log(np.exp(x).sum(-1, keepdims=True)), t >= 0
        losses = np.where(kept, -logs[np.arange(6), np.where(kept, t, 0)], 0)
        mesh = ProcessMesh(range(2), ["d"])
        for value in (x, shard_tensor(x, mesh, [Shard(0)]), shard_tensor(x, mesh, [Shard(1)])):
            self.close(nn.cross_entropy(value, t), losses.sum() / 4)
        self.close(nn.cross_entropy(x, t, "none"), losses)
        self.close(nn.nll_loss(logs, t), losses.sum() / 4)
        self.close(nn.cross_entropy(x, np.where(kept, t, 3), "sum", ignore_index=3), losses[kept & (t != 3)].sum())
        self.close(nn.cross_entropy(x, np.where(kept, t, -1), ignore_index=-1), losses.sum() / 4)
        gradient = ts.grad(lambda x: nn.cross_entropy(x, t))(ts.Tensor(x)).numpy()
        expected = (np.exp(logs) - np.eye(4)[np.where(kept, t, 0)]) * kept[:, None] / 4
        np.testing.assert_allclose(gradient, expected, rtol=2e-4, atol=2e-5)
        self.assertTrue(np.isnan(nn.cross_entropy(x, np.full(6, -100)).numpy()))

    def test_labels_outside(self):
        """Rejected if known before the program runs; NaN in the loss and the gradient if the program computes them."""
        x, t = ts.Tensor(floats(3, 4)), np.array([1, 4, 0])
        step = ts.jit(lambda x, t: ts.value_and_grad(lambda x: nn.cross_entropy(x, t))(x))
        for function in (lambda: nn.cross_entropy(x, t), lambda: nn.nll_loss(x, t), lambda: step(x, t), lambda: nn.Embedding(4, 2)(t),
                         lambda: nn.cross_entropy(x, t - 2, ignore_index=2), lambda: nn.cross_entropy(x, t, ignore_index=None)):
            with self.assertRaises(ts.OutOfRangeError):
                function()
        with self.assertRaises(ts.OutOfRangeError) as caught:
            nn.cross_entropy(x, np.full(3, 99))
        self.assertIn(f"{__file__}:", str(caught.exception))
        self.assertIn("label 99 of 'cross_entropy' is out of range: there are 4 classes, labels are 0 to 3, or -100 (ignore_index)",
                      str(caught.exception))
        for call in (lambda: nn.Embedding(4, 2)(t), lambda: ts.jit(lambda table, i: table(i))(nn.Embedding(4, 2), t)):
            with self.assertRaisesRegex(ts.OutOfRangeError, rf"^{__file__}:\d+:\d+: error: index 4 of 'Embedding' is out of range"):
                call()
        computed = ts.jit(lambda x, t: ts.value_and_grad(lambda x: nn.cross_entropy(x, t + 3))(x))
        value, gradient = computed(x, t)
        self.assertTrue(np.isnan(value.numpy()))
        self.assertTrue(np.isnan(gradient.numpy()[0]).all())
        rows = ts.jit(lambda table, i: table(i + 3))(nn.Embedding(4, 2), t - 1).numpy()
        np.testing.assert_array_equal(np.isnan(rows).all(-1), [False, True, False])

    def test_batch_norm(self):
        """Normalizes over the whole batch, cut or not; the running statistics change in the called module."""
        x = floats(8, 3, 4, 4)
        for data in (x, shard_tensor(x, ProcessMesh(range(4), ["dp"]), [Shard(0)])):
            norm = nn.BatchNorm(3)
            y = ts.jit(lambda norm, x: norm(x))(norm, data)
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
            self.close(y, (x - mean[:, None, None]) / np.sqrt(var[:, None, None] + 1e-5))
            self.close(norm.running_mean, mean / 10)
            self.close(norm.running_var, 0.9 + var * 128 / 127 / 10)
            with nn.eval_mode(norm):
                self.close(norm(x), (x - mean[:, None, None] / 10) / np.sqrt(norm.running_var.numpy()[:, None, None] + 1e-5))
            self.assertTrue(norm.training)

    def test_embedding(self):
        layer, i = nn.Embedding(7, 3), np.array([[1, 6], [0, 1]])
        self.close(layer(i), layer.weight.numpy()[i])


class Gradients(unittest.TestCase):
    def check(self, layer, x, loss=lambda y: ops.sum(ops.sin(y))):
        """The derivative along a random direction, in f64, against a central difference: relative 1e-6."""
        layer = layer.astype("float64")
        x = x.astype(np.float64)
        leaves = [leaf for leaf in tree.flatten(layer)[0] if leaf.trainable]
        directions = {leaf.path: R.standard_normal(leaf.value.shape) for leaf in leaves}
        dx = R.standard_normal(x.shape)
        value = ts.jit(lambda layer, x: loss(layer(x)))
        layer.train()
        gradients, gx = ts.jit(lambda layer, x: ts.grad(lambda layer, x: loss(layer(x)), (0, 1))(layer, x))(layer, x)
        analytic = (gx.numpy() * dx).sum() + sum((leaf.value.numpy() * directions[leaf.path]).sum() for leaf in tree.flatten(gradients)[0])

        def moved(e):
            at = tree.rebuild(layer, [leaf.value.numpy() + e * directions[leaf.path] if leaf.trainable else leaf.value for leaf in tree.flatten(layer)[0]])
            return value(at, x + e * dx).item()
        e = 1e-5
        central = (8 * (moved(e) - moved(-e)) - (moved(2 * e) - moved(-2 * e))) / (12 * e)
        self.assertLess(abs(analytic - central), 1e-6 * abs(central), type(layer).__name__)

    def test_layers(self):
        self.check(nn.Sequential(nn.Linear(4, 5), nn.gelu, nn.LayerNorm(5), nn.RMSNorm(5), nn.silu, nn.Linear(5, 2)), floats(3, 4))
        self.check(nn.Sequential(nn.Conv2d(2, 4, 3, 2, 1), nn.BatchNorm(4), nn.sigmoid, nn.MaxPool2d(2), nn.AvgPool2d((1, 2))), floats(2, 2, 8, 8))
        self.check(nn.MultiHeadAttention(4, 2, causal=True), floats(2, 3, 4))
        self.check(nn.Linear(4, 3), floats(5, 4), lambda y: nn.cross_entropy(y, np.array([0, 2, 1, 1, 0])))

    def test_smooth(self):
        """At 0, where forms meet, and where exponentials overflow."""
        x, s = np.float32([0, 1, 100, -100]), 1 / (1 + np.exp(-1))
        for function, expected in ((nn.functional.softplus, [0.5, s, 1, 0]), (nn.sigmoid, [0.25, s * (1 - s), 0, 0]),
                                   (nn.silu, [0.5, s + s * (1 - s), 1, 0]), (lambda x: ts.sign(x) * x, [0, 1, 1, -1]),
                                   (lambda x: ts.grad(lambda x: ts.sum(nn.functional.softplus(x)))(x), [0.25, s * (1 - s), 0, 0])):
            found = ts.jit(lambda x, function=function: ts.grad(lambda x: ts.sum(function(x)))(x))(x).numpy()
            np.testing.assert_allclose(found, expected, 1e-5, 1e-12)


class Random(unittest.TestCase):
    def test_threefry(self):
        """The published test vector: key 0, counter 0 (Random123's kat_vectors: threefry2x32 of 20 rounds)."""
        self.assertEqual(int(random.bits(np.zeros(2, np.int32), (1,)).numpy()[0]) & 0xFFFFFFFF, (0x6B200159 ^ 0x99BA4EFE))

    def test_does_not_depend_on_placement(self):
        x = np.ones((6, 8), np.float32)
        drop = nn.Dropout(0.5, seed=3)
        mesh = ProcessMesh([[0, 1], [2, 3]], ["x", "y"])
        forward = ts.jit(lambda drop, x: drop(x))
        whole = forward(drop, x).numpy()
        self.assertEqual(drop.counter.item(), 1)
        again = forward(drop, x).numpy()
        self.assertFalse((whole == again).all())
        for placements in ([Shard(0), Shard(1)], [Shard(1), Shard(1)], [Replicate(), Shard(0)]):
            other = nn.Dropout(0.5, seed=3)
            np.testing.assert_array_equal(forward(other, shard_tensor(x, mesh, placements)).numpy(), whole)
        self.assertEqual(set(np.unique(whole)), {0, 2})
        np.testing.assert_array_equal(drop.eval()(x), x)

    def test_distribution(self):
        u, n = ts.jit(lambda k: (random.uniform(k, (20000,)), random.normal(k, (20000,))))(random.key(5))
        self.assertAlmostEqual(u.numpy().mean(), 0.5, delta=0.01)
        self.assertTrue((u.numpy() >= 0).all() and (u.numpy() < 1).all())
        self.assertAlmostEqual(n.numpy().std(), 1, delta=0.03)


class Modules(unittest.TestCase):
    def test_state(self):
        model = nn.Sequential(nn.Linear(3, 4), nn.relu, nn.BatchNorm(4), nn.Linear(4, 2))
        state = model.state_dict()
        self.assertEqual(list(state)[:2], ["layers.0.weight", "layers.0.bias"])
        self.assertEqual([n for n, _ in model.named_buffers()], ["layers.2.running_mean", "layers.2.running_var"])
        other = nn.Sequential(nn.Linear(3, 4), nn.relu, nn.BatchNorm(4), nn.Linear(4, 2)).load_state_dict(state)
        for name, value in other.state_dict().items():
            np.testing.assert_array_equal(value, state[name])

    def test_lazy(self):
        """No memory before initialize(); values equal eager ones; a use before is an error."""
        nn.init.seed(7)
        now = nn.Linear(3, 4)
        nn.init.seed(7)
        with nn.LazyGuard():
            later = nn.Linear(3, 4)
        with self.assertRaisesRegex(ts.TraceError, "made under LazyGuard; call initialize"):
            later(floats(2, 3))
        np.testing.assert_array_equal(later.initialize().weight.numpy(), now.weight.numpy())

    def test_lazy_and_placed(self):
        """shard_tensor leaves a parameter lazy: initialize() computes its value in place, without a warning."""
        nn.init.seed(7)
        now = nn.Linear(3, 4)
        nn.init.seed(7)
        with nn.LazyGuard():
            later = nn.Linear(3, 4)
        mesh = ts.ProcessMesh([0, 1], ["x"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            later.weight = ts.shard_tensor(later.weight, mesh, [ts.Shard(1)])
            later.initialize()
        self.assertEqual(later.weight.placements, (ts.Shard(1),))
        np.testing.assert_array_equal(later.weight.numpy(), now.weight.numpy())
        x = floats(2, 3)
        np.testing.assert_allclose(later(x).numpy(), now(x).numpy(), rtol=1e-5)

    def test_refused(self):
        for kind, message, function in (
                (ts.ShapeError, "Linear takes 3 features in the last axis, got shape (2, 4)", lambda: nn.Linear(3, 4)(floats(2, 4))),
                (ts.ArgumentError, "in_features 0 of Linear is not a positive integer", lambda: nn.Linear(0, 4)),
                (ts.ArgumentError, "features 6 of MultiHeadAttention are not a multiple of heads 4", lambda: nn.MultiHeadAttention(6, 4)),
                (ts.ArgumentError, "rate -0.5 of Dropout is not in [0, 1)", lambda: nn.MultiHeadAttention(8, 4, dropout=-0.5)),
                (ts.ShapeError, "query of shape (4, 3, 8) has 3 axes, not 4; attention takes a query (batch, queries, heads, size), a key and a value (batch, keys,",
                 lambda: attention(*[floats(4, 3, 8)] * 3)),
                (ts.ShapeError, "query of shape (2, 4, 3, 8) and key of shape (2, 5, 3, 7) differ in size, 8 and 7; attention takes",
                 lambda: attention(floats(2, 4, 3, 8), *[floats(2, 5, 3, 7)] * 2)),
                (ts.ShapeError, "key of shape (2, 5, 3, 8) and value of shape (2, 6, 3, 8) differ in keys, 5 and 6; attention takes",
                 lambda: attention(floats(2, 4, 3, 8), floats(2, 5, 3, 8), floats(2, 6, 3, 8))),
                (ts.ShapeError, "3 heads of queries are not a multiple of 2 heads of keys; each key head serves as many query heads",
                 lambda: attention(floats(2, 4, 3, 8), *[floats(2, 5, 2, 8)] * 2)),
                (ts.ArgumentError, "rate 1.5 of Dropout is not in [0, 1)", lambda: nn.Dropout(1.5)),
                (ts.ShapeError, "'conv' of 3 channels with a weight of 2", lambda: nn.Conv2d(2, 4, 3)(floats(1, 3, 5, 5))),
                (ts.ShapeError, "a window spans 3 elements, but the padded axis has 2", lambda: nn.Conv2d(2, 4, 3)(floats(1, 2, 2, 5))),
                (ts.ShapeError, "'cross_entropy' of shapes (4, 3) and (5,)", lambda: nn.cross_entropy(floats(4, 3), np.zeros(5, int))),
                (ts.DTypeError, "indices of 'take' are float32", lambda: nn.Embedding(3, 2)(floats(2))),
                (ts.ArgumentError, "reduction 'median'", lambda: nn.mse_loss(floats(2), floats(2), "median")),
                (ts.ArgumentError, "the state has no 'weight', which the module has; is it 'wieght'?",
                 lambda: nn.Linear(3, 4, bias=False).load_state_dict({"wieght": floats(3, 4)})),
                (ts.ArgumentError, "the module has no 'weight.0', which the state has; did you mean 'weight'?",
                 lambda: nn.Linear(3, 4, bias=False).load_state_dict({"weight": floats(3, 4), "weight.0": floats(3, 4)})),
                (ts.ArgumentError, "elements cannot be assigned; make another one by ts.put_at",
                 lambda: ts.asarray(floats(3)).__setitem__(0, 1.0)),
                (ts.ArgumentError, "the state has no 'bias'", lambda: nn.Linear(3, 4).load_state_dict({"weight": floats(3, 4)})),
                (ts.ShapeError, "'weight' has shape (3, 4), the state's is (4, 3)",
                 lambda: nn.Linear(3, 4, bias=False).load_state_dict({"weight": floats(4, 3)}))):
            with self.assertRaises(kind) as caught:
                function()
            self.assertIn(message, str(caught.exception))
            self.assertIn(f"{__file__}:{function.__code__.co_firstlineno}:", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
