# RUN: %tessera_python %s
# REQUIRES: torch
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention as PyTorch exports it, and as its autograd differentiates it, is recognized."""

import math
import unittest

import numpy as np
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

import tessera as ts

PASSES = "dist-normalize,dist-recognize-attention-backward{recomputed-scores=0}"
B, S, H, D = 2, 12, 4, 6


def library(q, k, v):
    return nn.functional.scaled_dot_product_attention(q, k, v)


def library_causal(q, k, v):
    return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def library_masked(q, k, v):
    return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=torch.ones(S, S, dtype=torch.bool).tril())


def filled(q, k, v):
    a = (q @ k.transpose(-1, -2) / math.sqrt(D)).masked_fill(~torch.ones(S, S, dtype=torch.bool).tril(), -math.inf)
    return torch.softmax(a, -1) @ v


def added(q, k, v):
    mask = torch.where(torch.ones(S, S, dtype=torch.bool).tril(), 0.0, -1e9)
    return torch.softmax((q * D ** -0.5) @ k.transpose(-1, -2) + mask, -1) @ v


def library_dropped(q, k, v):
    return nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.25, is_causal=True)


def dropped(q, k, v):
    return nn.functional.dropout(torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(D), -1), 0.25) @ v


def of_positions(q, k, v):
    """A mask of positions and of packed sequences, as Hugging Face's models compute it, for positions of one sequence."""
    positions = torch.arange(S).expand(B, S)
    sequence = (torch.diff(positions, prepend=positions[:, :1] - 1, dim=-1) != 1).cumsum(-1)
    rows, query, key = torch.arange(B)[:, None, None], torch.arange(S)[:, None], torch.arange(S)
    mask = (positions[rows, key] <= positions[rows, query]) & (sequence[rows, key] == sequence[rows, query])
    return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None])


class Block(nn.Module):
    def __init__(self, attend):
        super().__init__()
        self.attend, self.qkv, self.out = attend, nn.Linear(H * D, 3 * H * D), nn.Linear(H * D, H * D)

    def forward(self, x):
        q, k, v = (t.view(B, S, H, D).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return self.out(self.attend(q, k, v).transpose(1, 2).reshape(B, S, H * D))


class Windowed(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(H * D, 3 * H * D)

    def forward(self, x, keep):
        q, k, v = [t.unflatten(-1, (H, D)).transpose(1, 2) for t in self.project(x).chunk(3, -1)]
        distance = torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1])
        mask = (distance >= 0) & (distance < 24) & keep[:, None, None, :]
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)


class Attention(unittest.TestCase):
    x = torch.randn(B, S, H * D, generator=torch.Generator().manual_seed(0))

    def setUp(self):
        torch.manual_seed(1)

    def lowered(self, module, *arguments):
        values = [a.detach().numpy() for a in arguments]
        return ts.jit(lambda m, *a: m(*a)).lower(ts.from_torch(module, arguments), *values)

    def test_forward(self):
        for attend in library, library_causal, library_masked, filled, added:
            with self.subTest(attend.__name__):
                text = self.lowered(Block(attend), self.x).lower("normalized")
                self.assertEqual(text.count("= ext.attention "), 1, text)
                self.assertNotIn("math.exp", text)

    def test_mask_of_positions(self):
        """The mask is a comparison of indices: it has no operand, and no row without keys."""
        module = Block(of_positions)
        cut = ts.shard_tensor(self.x.numpy(), ts.ProcessMesh(list(range(3)), ["s"]), [ts.Shard(1)])
        attend = ts.jit(lambda m, x: m(x))
        text = attend.lower(ts.from_torch(module, (self.x,)), cut).lower("normalized")
        self.assertEqual(text.count("= ext.attention "), 1, text)
        self.assertNotIn("xi1>", text)
        self.assertNotIn("ext.scan", text)
        found = attend(ts.from_torch(module, (self.x,)), cut).numpy()
        np.testing.assert_allclose(found, module(self.x).detach().numpy(), rtol=1e-4, atol=1e-5)

    def test_dropout(self):
        """One op, whose draws are the same on one device and with a cut sequence."""
        mesh = ts.ProcessMesh(list(range(3)), ["s"])
        for attend in library_dropped, dropped:
            with self.subTest(attend.__name__):
                module = Block(attend).train()
                text = self.lowered(module, self.x).lower("normalized")
                self.assertEqual(text.count("= ext.attention "), 1, text)
                self.assertIn("} weights {", text)
                self.assertNotIn(f"{S}x{S}x", text)
                results = []
                whole, parts = self.x.numpy(), ts.shard_tensor(self.x.numpy(), mesh, [ts.Shard(1)])
                for seed, x in (1, whole), (1, parts), (2, whole):
                    torch.manual_seed(seed)
                    results.append(ts.jit(lambda m, x: m(x))(ts.from_torch(module, (self.x,)), x).numpy())
                np.testing.assert_allclose(*results[:2], rtol=1e-4, atol=1e-5)
                self.assertGreater(abs(results[0] - results[2]).max(), 1e-2)

    def test_window_and_padding(self):
        """Devices exchange the window alone, although some queries see no key; these give 0."""
        mesh = ts.ProcessMesh(list(range(8)), ["s"])
        module, x, keep = Windowed(), torch.randn(B, 256, H * D), torch.ones(B, 256, dtype=torch.bool)
        keep[0, 100:180] = keep[1, :40] = False
        parts = [ts.shard_tensor(a.numpy(), mesh, [ts.Shard(1)]) for a in (x, keep)]
        net = ts.from_torch(module, (x, keep))
        forward = ts.jit(lambda m, x, keep: m(x, keep), objective="bytes")
        step = ts.jit(lambda m, x, keep: ts.value_and_grad(lambda m: (m(x, keep) ** 3).mean())(m), objective="bytes")
        seen = module(x, keep)
        (seen ** 3).mean().backward()
        np.testing.assert_allclose(forward(net, *parts).numpy(), seen.detach().numpy(), rtol=1e-4, atol=1e-5)
        for name, gradient in step(net, *parts)[1].state_dict().items():
            wanted = module.get_parameter(name).grad.numpy()
            np.testing.assert_allclose(np.asarray(gradient), wanted, rtol=1e-3, atol=1e-6)
        # 23 keys and values, and the flags of all keys.
        self.assertLessEqual(forward.explain(net, *parts)["wire_bytes_total"], B * 23 * 2 * H * D * 4 + 2 * B * 256)

    def test_masks_of_the_least_number(self):
        """Of float16 a score below it has none: a query whose keys have all this mask sees all of them alike."""
        q, k, v = torch.full((1, 1, 4, 8), -4.0).half(), torch.full((1, 1, 4, 8), 4.0).half(), torch.randn(1, 1, 4, 8).half()
        mask = torch.zeros(4, 4).half()
        mask[2] = torch.finfo(torch.float16).min
        got = self.run_of(q, k, v, mask)
        np.testing.assert_allclose(got.astype("f"), nn.functional.scaled_dot_product_attention(q, k, v, mask).float().numpy(), atol=2e-3)

    def test_leading_shapes(self):
        """Masks of keys alone; batches that the keys have, not the queries."""
        wide, one = torch.randn(2, 4, 8, 8), torch.randn(1, 4, 8, 8)
        for q, k, v, mask in ((wide, one, one[:, :1], torch.randn(8)), (one, wide, wide, None)):
            want = nn.functional.scaled_dot_product_attention(q, k, v, mask).numpy()
            np.testing.assert_allclose(self.run_of(q, k, v, mask), want, rtol=1e-5, atol=1e-5)

    def run_of(self, *values):
        values = tuple(value for value in values if value is not None)

        class Plain(nn.Module):
            def forward(self, *values):
                return nn.functional.scaled_dot_product_attention(*values)
        module = ts.from_torch(Plain(), values)
        return np.asarray(ts.jit(lambda *arrays: module(*arrays))(*[value.numpy() for value in values]))

    def test_graphs_of_autograd(self):
        for attend in filled, added:
            with self.subTest(attend.__name__):
                module = Block(attend)
                names, weights = zip(*module.named_parameters())

                def step(x, *weights):
                    weights = [w.detach().requires_grad_() for w in weights]
                    loss = (torch.func.functional_call(module, dict(zip(names, weights)), (x,)) ** 2).mean()
                    return loss, *torch.autograd.grad(loss, weights)
                arguments = self.x, *(w.detach() for w in weights)
                program = self.lowered(make_fx(step)(*arguments), *arguments)
                program.passes = PASSES
                text = program.lower("normalized")
                self.assertEqual(text.count("= ext.attention_backward"), 1, text)
                self.assertNotIn(f"{S}x{S}x", text)
                for found, wanted in zip(program(*(a.numpy() for a in arguments)), step(*arguments)):
                    np.testing.assert_allclose(found, wanted.detach().numpy(), rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
