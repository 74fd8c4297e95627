# RUN: %tessera_python %s
# REQUIRES: torch
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dropout and random draws of PyTorch modules: rates, gradients through the same mask, repeatable by seed and counter."""

import unittest

import numpy as np
import torch
from torch import nn

import tessera as ts

x = torch.ones(64, 64)


def called(module, seed=0):
    torch.manual_seed(seed)
    model = ts.from_torch(module.train(), (x,))
    return model, ts.jit(lambda m, x: (m(x), m))


class Draws(nn.Module):
    def forward(self, x):
        path = x * x.new_empty(x.shape[0], 1).bernoulli_(0.75) / 0.75
        return path, torch.rand_like(x), torch.randn(64, 64), torch.empty(64, 64).uniform_(2, 3)


class Attention(nn.Module):
    def forward(self, x):
        q = x.reshape(1, 4, 16, 64)
        return nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.5)


class Random(unittest.TestCase):
    def test_dropout(self):
        model, step = called(nn.Dropout(0.25))
        first, model = step(model, x.numpy())
        values, counts = np.unique(first.numpy(), return_counts=True)
        np.testing.assert_allclose(values, [0, 1 / 0.75], rtol=1e-6)
        self.assertLess(abs(counts[0] / x.numel() - 0.25), 0.03)
        second, model = step(model, x.numpy())
        self.assertGreater(abs(first.numpy() - second.numpy()).max(), 0)  # the counter
        self.assertEqual(int(model.counter.numpy()), 2)
        self.assertEqual(list(model.state_dict()), [])
        for seed, same in (0, True), (1, False):
            model, step = called(nn.Dropout(0.25), seed)
            self.assertEqual(np.array_equal(step(model, x.numpy())[0].numpy(), first.numpy()), same)
        np.testing.assert_array_equal(step(model.eval(), x.numpy())[0].numpy(), x.numpy())

    def test_gradients_have_the_mask_of_the_values(self):
        model, _ = called(nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.5)))
        values, gradient = ts.jit(lambda m, x: ts.value_and_grad(lambda m, x: m(x).sum(), 1)(m, x))(model, x.numpy())
        self.assertAlmostEqual(float(values.numpy()), float(gradient.numpy().sum()), delta=1e-2)
        kept = (gradient.numpy() > 0).mean()
        self.assertLess(abs(kept - 0.25), 0.03)  # the two masks are independent
        all_dropped, _ = called(nn.Dropout(1.0))
        self.assertFalse(all_dropped(x.numpy()).numpy().any())

    def test_placement_does_not_change_bits(self):
        model, _ = called(nn.Dropout(0.5))
        mesh = ts.ProcessMesh(list(range(4)), ["d"])
        whole = ts.jit(lambda m, x: m(x))(model, x.numpy()).numpy()
        placed = ts.from_torch(nn.Dropout(0.5).train(), (x,))
        placed.seed = model.seed
        parts = ts.jit(lambda m, x: m(x))(placed, ts.shard_tensor(x.numpy(), mesh, [ts.Shard(0)])).numpy()
        np.testing.assert_array_equal(parts, whole)

    def test_attention(self):
        model, step = called(Attention())
        result, _ = step(model, x.numpy())
        # The weights of 16 equal keys are 1/16, half of them dropped and the others doubled.
        sums = result.numpy()[..., 0] * 8
        np.testing.assert_allclose(sums, np.round(sums), atol=1e-4)
        self.assertLess(abs(result.numpy().mean() - 1), 0.2)
        self.assertGreater(len(np.unique(np.round(sums))), 3)

    def test_draws(self):
        model, step = called(Draws())
        (path, uniform, normal, shifted), _ = step(model, x.numpy())
        self.assertTrue(all(len(set(row)) == 1 for row in path.numpy()))
        self.assertLess(abs(uniform.numpy().mean() - 0.5), 0.02)
        self.assertLess(abs(normal.numpy().std() - 1), 0.05)
        self.assertTrue((shifted.numpy() >= 2).all() and (shifted.numpy() < 3).all())

    def test_distributions(self):
        """Means and deviations of draws by other distributions; integers, permutations and categories are in their ranges."""
        class Draw(nn.Module):
            def forward(self, x):
                like = torch.empty(64, 64)
                weights = torch.tensor([0.0, 1, 2, 1, 0]).expand(64, 5)
                return (like.exponential_(2.0), torch.empty(64, 64).log_normal_(0.0, 0.5), torch.empty(64, 64).geometric_(0.25), torch.normal(x * 3, 2.0),
                        torch.randint(-2, 6, (64, 64)), torch.randint_like(x, 4), torch.randperm(64), torch.multinomial(weights, 3),
                        torch.multinomial(weights, 50, replacement=True), torch.empty(64, 64).cauchy_(1.0, 2.0))
        model, step = called(Draw())
        exponential, log_normal, geometric, normal, integers, like, order, chosen, again, cauchy = [r.numpy() for r in step(model, x.numpy())[0]]
        for drawn, mean, deviation in ((exponential, 0.5, 0.5), (log_normal, np.exp(0.125), 0.604), (geometric, 4, np.sqrt(12)), (normal, 3, 2),
                                       (integers, 1.5, np.sqrt(63 / 12)), (like, 1.5, np.sqrt(15 / 12)), (again, 2, np.sqrt(0.5))):
            self.assertLess(abs(drawn.mean() - mean), 0.1 * deviation)
            self.assertLess(abs(drawn.std() - deviation), 0.1 * deviation)
        self.assertEqual((integers.min(), integers.max(), geometric.min(), like.min(), like.max()), (-2, 5, 1, 0, 3))
        np.testing.assert_array_equal(np.sort(order), np.arange(64))
        np.testing.assert_array_equal(np.sort(chosen, 1), np.broadcast_to([1, 2, 3], (64, 3)))  # those of positive weight
        self.assertLess(abs(np.median(cauchy) - 1), 0.2)

    def test_gumbel_softmax_and_rrelu(self):
        class Net(nn.Module):
            def forward(self, x):
                return nn.functional.gumbel_softmax(x, hard=True), nn.functional.rrelu(-x, training=True)
        model, step = called(Net())
        chosen, sloped = [r.numpy() for r in step(model, x.numpy())[0]]
        np.testing.assert_allclose(chosen.sum(1), 1, atol=1e-6)
        self.assertGreater(len(set(chosen.argmax(1))), 30)
        self.assertLess(abs(-sloped.mean() - (1 / 8 + 1 / 3) / 2), 0.01)
        self.assertTrue((-sloped >= 1 / 8).all() and (-sloped <= 1 / 3).all())
        gradient = ts.jit(lambda m, x: ts.grad(lambda m, x: m(x)[1].sum(), 1)(m, x))(ts.from_torch(Net().train(), (x,)), x.numpy()).numpy()
        self.assertTrue((-gradient >= 1 / 8 - 1e-6).all() and (-gradient <= 1 / 3 + 1e-6).all())


if __name__ == "__main__":
    unittest.main()
