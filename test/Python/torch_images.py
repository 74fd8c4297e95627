# RUN: %tessera_python %s
# REQUIRES: torch
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks on images whose rows or batch 4 devices share: gradients equal PyTorch's, and no more is sent than by hand."""

import unittest

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import tessera as ts
from tessera import ProcessMesh, Shard, shard_tensor
from tessera.testing import difference

torch.manual_seed(0)
DEVICES = 4


class Chain(nn.Module):
    """A function of layers and images."""

    def __init__(self, fn, *layers):
        super().__init__()
        self.layers, self.fn = nn.ModuleList(layers), fn

    def forward(self, x):
        return self.fn(x, *self.layers)


def conv(inputs=4, outputs=4, kernel=3, **options):
    return nn.Conv2d(inputs, outputs, kernel, padding=1, **options)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        block = lambda inputs, outputs: nn.Sequential(conv(inputs, outputs), nn.GroupNorm(2, outputs), nn.SiLU())
        self.wide, self.deep, self.join = block(4, 4), block(4, 8), block(8, 4)
        self.up, self.out = nn.ConvTranspose2d(8, 4, 2, 2), nn.Conv2d(4, 2, 1)

    def forward(self, x):
        wide = self.wide(x)
        return self.out(self.join(torch.cat([wide, self.up(self.deep(F.max_pool2d(wide, 2)))], 1)))


def windowed(x, layer):
    """Attention in shifted windows of 4 x 4."""
    shifted = torch.roll(x, (-2, -2), (1, 2)).view(len(x), 2, 4, 2, 4, 4).permute(0, 1, 3, 2, 4, 5)
    return F.scaled_dot_product_attention(*layer(shifted.reshape(-1, 16, 4)).chunk(3, -1))


class Images(unittest.TestCase):
    def check(self, module, shape, axis, sent):
        """sent: bytes by hand for a loss and its gradients, besides reductions of the loss and of the gradients."""
        x, loss = torch.randn(shape), lambda out: (out * out).mean()
        value = loss(module(x))
        value.backward()
        tensors = [p for p in module.parameters() if p.requires_grad]
        imported = ts.from_torch(module, (x,))
        step = ts.jit(lambda m, x: ts.value_and_grad(lambda m, x: loss(m(x)))(m, x))
        cut = shard_tensor(x.numpy(), ProcessMesh(list(range(DEVICES)), ["d"]), [Shard(axis)])
        report = step.explain(imported, cut)
        got, gradients = step(imported, cut)
        self.assertIsNone(difference(got.numpy(), value.detach().numpy(), 4))
        gradients = gradients.state_dict()
        for name, parameter in module.named_parameters():
            want = parameter.grad.numpy()
            np.testing.assert_allclose(np.asarray(gradients[name]), want, rtol=0, atol=2e-5 * max(1, np.abs(want).max()), err_msg=name)
        moved = sum(c["wire_bytes"] for c in report["collectives"] if "reduce" not in c["kind"])
        self.assertEqual(moved, sent)
        # An all-reduce of a gradient sends 2 B (n - 1) / n; statistics are a few numbers.
        reduced = sum(c["wire_bytes"] for c in report["collectives"]) - moved
        self.assertLessEqual(reduced, 6 * (sum(p.numel() for p in tensors) + 1) + 512)

    def test_norms(self):
        self.check(nn.GroupNorm(2, 4), (2, 4, 16, 8), 2, 0)
        self.check(nn.InstanceNorm2d(4, affine=True), (2, 4, 16, 8), 2, 0)

    def test_convolutions(self):
        row = 2 * 4 * 8 * 4  # bytes of a row of both images
        two = lambda **options: [conv(), conv(**options)]
        chain = lambda x, a, b: b(a(x))
        self.check(Chain(chain, *two()), (2, 4, 16, 8), 2, (2 + 2 + 2) * row)
        # With stride 2 a device needs a row from before, and one of half as many columns from behind for the gradient.
        self.check(Chain(chain, *two(stride=2)), (2, 4, 16, 8), 2, 2 * row + row + row // 2)
        self.check(Chain(lambda x, a, b: b(F.avg_pool2d(a(x), 3, 1, 1)), *two()), (2, 4, 16, 8), 2, (3 * 2 + 2 * 2) * row)
        self.check(Chain(lambda x, a, b: b(F.max_pool2d(a(x), 2)), *two()), (2, 4, 16, 8), 2, (2 + 1 + 1) * row)
        self.check(Chain(lambda x, a, up, b: b(up(a(x))), conv(), nn.ConvTranspose2d(4, 4, 2, 2), conv()), (2, 4, 16, 8), 2,
                   (2 + 2 * 2 + 2 * 2) * row)

    def test_forward_of_padding_modes(self):
        row = 2 * 4 * 8 * 4
        for mode in ("circular", "reflect", "replicate"):
            module = conv(padding_mode=mode)
            x = torch.randn(2, 4, 16, 8)
            imported = ts.from_torch(module, (x,))
            run = ts.jit(lambda m, x: m(x))
            cut = shard_tensor(x.numpy(), ProcessMesh(list(range(DEVICES)), ["d"]), [Shard(2)])
            self.assertEqual(run.explain(imported, cut)["wire_bytes_total"], 2 * row, mode)
            self.assertIsNone(difference(run(imported, cut).numpy(), module(x).detach().numpy(), 4), mode)

    def test_resizes(self):
        row = 2 * 4 * 8 * 4  # a row of the result has twice as many columns
        # Forward the rows of x are sent, not those of the result.
        for rows, options in ((2, dict(mode="nearest")), (1 + 3, dict(mode="bilinear")),
                              (1 + 3, dict(mode="bilinear", align_corners=True)), (2 + 4, dict(mode="bicubic"))):
            with self.subTest(options):
                resized = lambda x, a, options=options: a(F.interpolate(x, scale_factor=2, **options))
                self.check(Chain(resized, conv()), (2, 4, 32, 8), 2, rows * row)

    def test_u_net(self):
        row = 2 * 4 * 256 * 4  # long: smaller images are gathered in one collective
        forward = 2 + 2 // 2 + 2 * 2  # of x; of the pooled; of eight channels
        self.check(UNet(), (2, 4, 64, 256), 2, (forward + 2 + 2) * row)  # and of both gradients

    def test_windows_of_a_batch_that_the_devices_do_not_divide(self):
        self.check(Chain(windowed, nn.Linear(4, 12)), (10, 8, 8, 4), 0, 0)


if __name__ == "__main__":
    unittest.main()
