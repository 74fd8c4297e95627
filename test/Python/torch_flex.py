# RUN: %tessera_python %s
# REQUIRES: tessera-core, torch
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.nn.attention.flex_attention: values equal PyTorch's, gradients those of the same attention with a mask (PyTorch has none on CPUs)."""

import unittest

import torch
from torch import nn
from torch.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

import tessera as ts
from tessera.testing import difference

torch.manual_seed(0)
SLOPES = torch.tensor([0.5, 0.25])
PARTS = torch.tensor([0, 0, 0, 1, 1, 1, 1, 2])


class Attention(nn.Module):
    def __init__(self, attend):
        super().__init__()
        self.attend = attend

    def forward(self, q, k, v):
        return self.attend(q, k, v)


def biased(score, b, h, q, k):
    return torch.where(q >= k, score + SLOPES[h] * (k - q), -float("inf"))


def in_part(b, h, q, k):
    return (PARTS[q] == PARTS[k]) & (q >= k)


class Flex(unittest.TestCase):
    def check(self, attend, same=None, heads=2):
        """Compares `attend` with itself in PyTorch, and with `same`, of which gradients are compared."""
        q, k, v = torch.randn(2, 2 if heads == 2 else 4, 8, 4), torch.randn(2, 2, 8, 4), torch.randn(2, 2, 8, 4)
        expected = attend(q, k, v)
        imported = ts.from_torch(Attention(attend), (q, k, v))
        mesh = ts.ProcessMesh(list(range(2)), ["d"])
        run = ts.jit(lambda imported, *x: imported(*x))
        for make in (lambda x: x.numpy(), lambda x: ts.shard_tensor(x.numpy(), mesh, [ts.Shard(0)])):
            results = run(imported, *map(make, (q, k, v)))
            for result, e in zip(*[x if isinstance(x, tuple) else (x,) for x in (results, expected)]):
                self.assertIsNone(difference(result.numpy(), e.numpy(), 10))
        if same is None:
            return
        weight = torch.randn(expected.shape)
        leaves = [x.clone().requires_grad_() for x in (q, k, v)]
        (same(*leaves) * weight).sum().backward()
        found = ts.jit(lambda *x: ts.grad(lambda *x: ts.sum(imported(*x) * weight.numpy()), (0, 1, 2))(*x))(*[x.numpy() for x in (q, k, v)])
        for gradient, leaf in zip(found, leaves):
            self.assertIsNone(difference(gradient.numpy(), leaf.grad.numpy(), 10))

    def test_plain(self):
        self.check(flex_attention, scaled_dot_product_attention)
        self.check(lambda q, k, v: flex_attention(q, k, v, scale=0.3), lambda q, k, v: scaled_dot_product_attention(q, k, v, scale=0.3))
        self.check(lambda q, k, v: flex_attention(q, k, v, enable_gqa=True),
                   lambda q, k, v: scaled_dot_product_attention(q, k, v, enable_gqa=True), heads=4)

    def test_changed_scores(self):
        places = torch.arange(8)
        bias = SLOPES[:, None, None] * (places - places[:, None])
        bias = torch.where(places[:, None] >= places, bias, -float("inf"))
        self.check(lambda q, k, v: flex_attention(q, k, v, score_mod=biased),
                   lambda q, k, v: scaled_dot_product_attention(q, k, v, attn_mask=bias))
        self.check(lambda q, k, v: flex_attention(q, k, v, score_mod=lambda score, b, h, q, k: 20 * torch.tanh(score / 20)))

    def test_masks(self):
        mask = create_block_mask(in_part, None, None, 8, 8, device="cpu", BLOCK_SIZE=4)
        looks = (PARTS[:, None] == PARTS) & torch.ones(8, 8).tril().bool()
        self.check(lambda q, k, v: flex_attention(q, k, v, block_mask=mask), lambda q, k, v: scaled_dot_product_attention(q, k, v, attn_mask=looks))
        none = create_block_mask(lambda b, h, q, k: (q > 1) & (k < 5), None, None, 8, 8, device="cpu", BLOCK_SIZE=4)  # queries without keys
        self.check(lambda q, k, v: flex_attention(q, k, v, biased, none))

    def test_sums(self):
        self.check(lambda q, k, v: flex_attention(q, k, v, score_mod=biased, return_aux=AuxRequest(lse=True))[1].lse)

    def test_parameters(self):
        """PyTorch refuses this on CPUs."""
        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.project = nn.Linear(8, 24)

            def forward(self, x, flex=True):
                q, k, v = self.project(x).reshape(2, 6, 3, 2, 4).permute(2, 0, 3, 1, 4)
                causal = torch.ones(6, 6).tril().bool()
                return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: torch.where(i >= j, s, -float("inf"))) if flex else \
                    scaled_dot_product_attention(q, k, v, attn_mask=causal)
        layer, x = Layer(), torch.randn(2, 6, 8)
        weight = torch.randn(2, 2, 6, 4)
        (layer(x, False) * weight).sum().backward()
        found = ts.jit(lambda m, x: ts.grad(lambda m, x: ts.sum(m(x) * weight.numpy()))(m, x))(ts.from_torch(layer, (x,)), x.numpy())
        for name, p in layer.named_parameters():
            self.assertIsNone(difference(found.weights[name].numpy(), p.grad.numpy(), 10), name)

    def test_memory(self):
        """Scores are not kept: the program has attention as one operation."""
        q = torch.randn(1, 4, 2048, 32)
        imported = ts.from_torch(Attention(lambda q, k, v: flex_attention(q, k, v, score_mod=lambda s, b, h, q, k: torch.where(q >= k, s, -float("inf")))),
                                 (q, q, q))
        report = ts.jit(lambda *x: imported(*x)).explain(*[q.numpy()] * 3)
        self.assertLess(report["peak_memory_bytes"], 4 * 2048 * 2048 * 4)


if __name__ == "__main__":
    unittest.main()
