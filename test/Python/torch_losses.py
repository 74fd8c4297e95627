# RUN: %tessera_python %s
# REQUIRES: torch
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Losses of PyTorch programs: values and derivatives equal PyTorch's."""

import unittest

import numpy as np
import torch
from torch import distributions, nn
from torch.nn import functional as F
from torch_case import TorchCase

import tessera as ts
from tessera.testing import difference

X, Y = torch.randn(4, 6), torch.randn(4, 6)
CLASSES = torch.tensor([5, 0, 3, 3])
SIGNS = torch.tensor([1.0, -1.0, 1.0, -1.0])


class Losses(TorchCase):
    def test_distances(self):
        self.check(lambda x, y: F.cosine_embedding_loss(x, y, SIGNS), X, Y)
        self.check(lambda x, y: F.margin_ranking_loss(x, y, torch.ones(4, 6)), X, Y)
        self.check(lambda x, y: F.triplet_margin_loss(x, y, x * y) + F.triplet_margin_with_distance_loss(x, y, x + y), X, Y)
        self.check(lambda x: F.hinge_embedding_loss(x, SIGNS[:, None]) + F.soft_margin_loss(x, SIGNS[:, None]), X)

    def test_classes(self):
        self.check(lambda x: F.multi_margin_loss(x, CLASSES), X)
        self.check(lambda x: F.multilabel_margin_loss(x, torch.tensor([[0, 2, -1, 0, 0, 0]] * 4)), X)
        self.check(lambda x: F.multilabel_soft_margin_loss(x, torch.eye(4, 6)), X)
        self.check(lambda x: F.cross_entropy(x, CLASSES, label_smoothing=0.1, weight=torch.arange(1.0, 7.0), ignore_index=0), X)

    def test_likelihoods(self):
        self.check(lambda x, y: F.poisson_nll_loss(x, y.exp(), full=True), X, Y)
        self.check(lambda x, y: distributions.StudentT(x.exp(), y, 1.0, validate_args=False).log_prob(x), X, Y)
        self.check(lambda x, y: distributions.NegativeBinomial(x.exp(), logits=y, validate_args=False).log_prob(CLASSES[:, None].float()), X, Y)
        self.check(lambda x, y: distributions.kl_divergence(distributions.Beta(x.exp(), y.exp(), validate_args=False),
                                                            distributions.Beta(1.0, 2.0, validate_args=False)), X, Y)
        self.check(lambda x, y: distributions.VonMises(x, y.exp(), validate_args=False).log_prob(y), X, Y)
        self.check(lambda x: distributions.MultivariateNormal(
            x[0, :4], covariance_matrix=x @ x.T + torch.eye(4), validate_args=False).log_prob(x[1, :4]), X)

    def test_functions_that_check_values(self):
        """torch.export refuses these as they are."""
        self.check(lambda x, y: F.gaussian_nll_loss(x, y, (x * y).exp(), full=True), X, Y)
        self.check(lambda x, y: F.gaussian_nll_loss(x, y, y[:, 0].square() * torch.tensor([1.0, 0, 1, 0]), reduction="none"), X, Y)  # some below eps
        self.check(lambda x: torch.cov(x) + torch.cov(x, correction=0) + torch.cov(x, fweights=torch.arange(1, 7)), X)
        self.check(lambda x: torch.cov(x, aweights=torch.arange(1.0, 7.0), fweights=torch.arange(1, 7)) + torch.cov(x[0]), X)
        self.check(lambda x: torch.corrcoef(x), X)

    def test_connectionist_temporal_classification(self):
        """Of inputs and targets of different lengths; a label twice needs a blank between; a target that does not fit is infinite."""
        logits, targets = torch.randn(9, 4, 5), torch.tensor([[1, 2, 2, 4], [3, 0, 0, 0], [2, 2, 2, 0], [0, 0, 0, 0]])
        inputs, lengths = torch.tensor([9, 7, 5, 3]), torch.tensor([4, 1, 3, 0])
        for reduction in ("none", "mean", "sum"):
            self.check(lambda x, reduction=reduction: F.ctc_loss(x.log_softmax(-1), targets, inputs, lengths, reduction=reduction), logits)
        self.check(lambda x, inputs, lengths: F.ctc_loss(x.log_softmax(-1), targets, inputs, lengths), logits, inputs, lengths)
        # One after the other, with another blank, of one sequence, and longer than the input.
        self.check(lambda x: F.ctc_loss(x.log_softmax(-1), torch.tensor([1, 2, 2, 3, 0, 2, 1]), (9, 9, 9, 9), (3, 1, 2, 1), blank=4), logits)
        self.check(lambda x: F.ctc_loss(x[:, 0].log_softmax(-1), targets[0], torch.tensor(9), torch.tensor(4)), logits)
        self.check(lambda x: F.ctc_loss(x[:4].log_softmax(-1), targets, torch.full((4,), 4), lengths, zero_infinity=True), logits)
        self.check(lambda x: F.ctc_loss(x[:4].log_softmax(-1), targets, torch.full((4,), 4), lengths, reduction="none"), logits, derivative=False)

    def test_adaptive(self):
        """Clusters of classes: losses, all parameters' gradients, and predictions."""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.loss = nn.AdaptiveLogSoftmaxWithLoss(6, 12, [3, 7], 2.0)

            def forward(self, x, classes):
                found = self.loss(x, classes)
                return found.output, found.loss, self.loss(x[0], classes[0]).output, self.loss.predict(x), self.loss.log_prob(x)
        net, x, classes = Net(), torch.randn(12, 6), torch.arange(12)
        expected = net(x, classes)
        expected[1].backward()
        imported = ts.from_torch(net, (x, classes))
        mesh = ts.ProcessMesh(list(range(4)), ["d"])
        for make in (lambda x: x.numpy(), lambda x: ts.shard_tensor(x.numpy(), mesh, [ts.Shard(0)])):
            (_, results), gradients = ts.jit(lambda m, *args: ts.value_and_grad(lambda m, *args: (lambda r: (r[1], r))(m(*args)), has_aux=True)(m, *args))(
                imported, make(x), make(classes))
            for result, e in zip(results, expected, strict=True):
                self.assertIsNone(difference(result.numpy(), e.detach().numpy(), 3))
            for name, p in net.named_parameters():
                self.assertIsNone(difference(gradients.weights[name].numpy(), p.grad.numpy(), 3), name)
        with self.assertRaises(ts.OutOfRangeError):
            imported(x.numpy(), np.int64([12, -1] + [0] * 10))


if __name__ == "__main__":
    unittest.main()
