# RUN: %tessera_python %s
# REQUIRES: tessera-core, torch
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values and gradients at kinks, ties, bounds, rows of zeros and large numbers equal PyTorch's."""

import unittest

import torch
from torch.nn import functional as F
from torch_case import TorchCase

X = torch.tensor([[0.0, 1.0, -1.0, 0.0, 2.0, 2.0], [0.0] * 6, [3.0, -3.0, 0.5, -0.5, 6.0, -3.0], [100.0, -100.0, 30.0, -30.0, 1e30, -1e30]])
ROWS = X[:3]  # one of zeros
Y = (torch.arange(24).reshape(4, 6) % 2).float()
INF = float("inf")


class Kinks(TorchCase):
    def each(self, functions, *inputs, derivative=True):
        for function in functions:
            self.check(function, *inputs, derivative=derivative)

    def test_smooth(self):
        """Smooth functions have no kink at 0 or another point where their forms meet."""
        self.each([F.logsigmoid, F.softplus, lambda x: F.softplus(x, 2.0, 3.0), F.mish, F.silu, F.elu, lambda x: F.elu(x, 0.5), F.selu, F.celu,
                   lambda x: F.celu(x, 0.5), F.softsign, F.tanhshrink, lambda x: torch.sinc(x[:3]), torch.sigmoid, torch.tanh, F.gelu, F.glu,
                   lambda x: torch.log(torch.sigmoid(x.clamp(-60, 60)))], X)
        self.each([torch.logaddexp, torch.logaddexp2], X, X.flip(1))
        self.each([torch.logaddexp], torch.tensor([INF, -INF, INF, -INF]), torch.tensor([1.0, 2.0, -INF, INF]))

    def test_losses(self):
        weight = torch.arange(6.0)
        kinds = (F.binary_cross_entropy_with_logits, lambda x, y: F.binary_cross_entropy_with_logits(x, y, weight=weight, pos_weight=weight + 1),
                 F.multilabel_soft_margin_loss, lambda x, y: F.soft_margin_loss(x[:3], 2 * y[:3] - 1), F.huber_loss, F.smooth_l1_loss, F.l1_loss,
                 lambda x, y: F.hinge_embedding_loss(x, 2 * y - 1), lambda x, y: F.margin_ranking_loss(x, x.flip(1), 2 * y - 1),
                 lambda x, y: F.poisson_nll_loss(x[:3], y[:3]), lambda x, y: F.multi_margin_loss(x, torch.tensor([0, 1, 2, 3])))

        def focal(x, y):
            p, ce = torch.sigmoid(x), F.binary_cross_entropy_with_logits(x, y, reduction="none")
            return ((0.25 * y + 0.75 * (1 - y)) * ce * (1 - (p * y + (1 - p) * (1 - y))) ** 2).mean()
        self.each([lambda x, kind=kind: kind(x, Y) for kind in (*kinds, focal)], X.clamp(-100, 100))

    def test_bounds(self):
        self.each([F.relu, F.relu6, F.hardtanh, lambda x: F.hardtanh(x, -3, 2), F.hardswish, F.hardsigmoid, F.hardshrink, F.softshrink, F.leaky_relu,
                   lambda x: F.threshold(x, 0.0, 0.5), lambda x: F.prelu(x, torch.tensor([0.1])), lambda x: x.clamp(-1, 2), lambda x: x.clamp(min=0),
                   lambda x: x.clamp(max=2), torch.abs, lambda x: torch.sign(x) * x, lambda x: torch.sign(x * x) * x], X)
        self.each([lambda x: torch.clamp(x, torch.tensor(0.0), torch.tensor(2.0)), lambda x: x.clamp_min(torch.tensor(-1.0))], X)
        for x, low, high in ((1, 1, 3), (3, 1, 3), (1, 1, 1), (1, 2, 1), (2, 2, 1), (0, 2, 1), (1.5, 2, 1), (0, 1, 1), (2, 1, 1), (2, 1, 3)):
            self.check(torch.clamp, *torch.tensor([x, low, high]).float())
        self.check(torch.clamp, X, X.flip(1) - 1, X.flip(1).abs())
        self.each([lambda x: torch.fmod(x, 2.0), lambda x: torch.remainder(x, 2.0), torch.frac, lambda x: torch.fmod(x.flip(1), x.abs() + 1),
                   lambda x: torch.remainder(x.flip(1), x.abs() + 1)], ROWS)
        self.each([torch.copysign, torch.atan2], ROWS, ROWS.flip(1))
        self.check(torch.fmod, torch.tensor([5, -5, 4, 0]), torch.tensor([3, 3, -3, 2]))

    def test_zero_rows(self):
        orders = (1, 1.5, 2, 3, INF, -INF, 0.5)
        self.each([lambda x, p=p: torch.linalg.vector_norm(x, p, dim=1) for p in orders] + [lambda x, p=p: x[1].norm(p) for p in orders], ROWS)
        self.each([lambda x: F.normalize(x, dim=1), lambda x: F.normalize(x, 1.0, dim=1), lambda x: F.cosine_similarity(x, x.flip(0)),
                   lambda x: x.std(1), lambda x: torch.std_mean(x, 1), lambda x: x.var(1), lambda x: torch.cdist(x, x), F.pdist,
                   lambda x: F.pairwise_distance(x, x.flip(0)), lambda x: torch.renorm(x, 2, 0, 1.0), lambda x: F.lp_pool1d(x[None], 2, 2),
                   lambda x: torch.linalg.matrix_norm(x), lambda x: torch.dist(x, x.flip(1)), lambda x: F.layer_norm(x, (6,)),
                   lambda x: F.triplet_margin_loss(x, x.flip(1), x.flip(0)),
                   lambda x: F.cosine_embedding_loss(x, x.flip(0), torch.tensor([1.0, -1.0, 1.0]))], ROWS)

    def test_ties(self):
        self.each([lambda x: x.amax(1), lambda x: x.amin((0, 1)), lambda x: x.amax(0, keepdim=True), lambda x: x.max(1)[0], lambda x: x.min(1)[0],
                   torch.max, torch.min, torch.median, torch.nanmedian, lambda x: x.median(1)[0], lambda x: torch.stack(torch.aminmax(x, dim=1)),
                   lambda x: x.cummax(1)[0], lambda x: x.prod(1), lambda x: x.amax(1) - x.amin(1), lambda x: F.max_pool1d(x[None], 2, 1),
                   lambda x: torch.logsumexp(x, 1), lambda x: (x - x.amax(1, keepdim=True)).exp()], ROWS)
        self.each([torch.maximum, torch.minimum, torch.fmax, torch.fmin], ROWS, ROWS.flip(1))
        nan = torch.tensor([float("nan"), 1.0, float("nan"), 2.0])
        self.each([torch.maximum, torch.minimum, torch.fmax, torch.fmin], nan, torch.tensor([1.0, float("nan"), 3.0, 2.0]))
        self.check(torch.amax, nan, derivative=False)

    def test_integers(self):
        a, b = torch.tensor([3, 1, 3, -2]), torch.tensor([3, 2, -1, -2])
        self.each([torch.maximum, torch.fmin, lambda a, b: a.amax(), lambda a, b: a.clamp(b, b + 1)], a, b)


class InferenceMode(TorchCase):
    def test_constant(self):
        """What is computed under inference_mode is a constant to derivatives."""
        def inside(x):
            with torch.inference_mode():
                y = x * 3
            return x * y.clone()

        @torch.inference_mode()
        def decorated(x):
            return x.exp()

        def enabled(x):
            with torch.inference_mode(False):
                y = x * 3
            return x * y
        for function in (inside, lambda x: x * decorated(x).clone(), enabled):
            self.check(function, torch.rand(4, 3))


if __name__ == "__main__":
    unittest.main()
