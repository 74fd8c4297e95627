# RUN: %tessera_python %s
# REQUIRES: torch
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations and layers of PyTorch: values and gradients of a linear layer in front equal PyTorch's, on one device and cut."""

import unittest

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import tessera as ts
from tessera import ProcessMesh, Replicate, Shard, optim, shard_tensor
from tessera.testing import difference

torch.manual_seed(0)


def written(y):
    y = y.clone()
    y[:, 0] = 1.0
    y[:, 1:, ::2] *= 2
    return y


def inside(y):
    z = torch.zeros(4, 3, 8)
    z[:, :, 1:7] = y
    return z


# y is a linear map of x; both are (4, 3, 6).
ELEMENTWISE = [
    lambda x, y: torch.where(x > 0, y, 0.0), lambda x, y: y.masked_fill(x > 0, -1e4).softmax(-1), lambda x, y: y.clamp(-.5, .5) + y.clamp(min=0),
    lambda x, y: torch.clamp(y, x - 1, x + 1), lambda x, y: F.elu(y) + F.selu(y) + F.celu(y), lambda x, y: F.softplus(y) + F.mish(y),
    lambda x, y: F.hardswish(y) + F.relu6(y) + F.leaky_relu(y), lambda x, y: F.glu(y, -1), lambda x, y: F.logsigmoid(y) + F.gelu(y, approximate="tanh"),
    lambda x, y: torch.remainder(y, .7) + torch.fmod(y, .7), lambda x, y: y * (x // 0.5), lambda x, y: y * ((x > 0) & (x < 1) | ~(x < -1)).float(),
    lambda x, y: y * x.long().float() + x.long(), lambda x, y: torch.addcmul(x, y, x, value=.5) + torch.addcdiv(x, y, x.abs() + 1),
    lambda x, y: torch.lerp(x, y, .3) + (1 - y).square() + y.abs().sqrt() + y.exp2(), lambda x, y: (y.abs() + .1) ** x + 2.0 ** y,
    lambda x, y: y.sin() + y.sigmoid().asin() + y.atan() + y.sinh() + y.asinh() + torch.atan2(y, x), lambda x, y: y.erf() + y.erfc(),
    lambda x, y: torch.nan_to_num(y) + torch.isfinite(x), lambda x, y: torch.minimum(y, x) + torch.fmax(y, x), lambda x, y: y.mul(2).add_(x),
    lambda x, y: torch.copysign(y, x) + torch.hypot(y, x) + torch.ldexp(y, x.round()) + y.abs().log10(), lambda x, y: y * ((x.long() << 3) + (x.long() >> 1))]
REDUCTIONS = [
    lambda x, y: y.cumsum(1) + y.cumprod(1), lambda x, y: y.topk(2, -1)[0], lambda x, y: y.sort(-1)[0], lambda x, y: y.max(-1)[0] + y.min(-1)[0],
    lambda x, y: y.norm(dim=-1) + y.norm(1, dim=-1), lambda x, y: F.normalize(y, dim=-1), lambda x, y: sum(torch.var_mean(y, -1)) + y.std(-1),
    lambda x, y: y.prod(-1) + y.logsumexp(-1), lambda x, y: y.max() * x + y.min(), lambda x, y: y * (x > 0).any(-1, keepdim=True) + (x > 0).all(),
    lambda x, y: F.cosine_similarity(y, x, -1) + F.pairwise_distance(y, x), lambda x, y: torch.cdist(y, x), lambda x, y: y + x.argmin(-1, keepdim=True),
    lambda x, y: F.cross_entropy(y.transpose(1, 2), x.argmax(-1)), lambda x, y: F.binary_cross_entropy_with_logits(y, x.sigmoid()),
    lambda x, y: F.smooth_l1_loss(y, x) + F.huber_loss(y, x) + F.kl_div(y.log_softmax(-1), x.softmax(-1), reduction="sum"),
    lambda x, y: torch.einsum("bij,bkj,bi->bk", y, x, x[..., 0]), lambda x, y: torch.baddbmm(y[:, :, :3], x, x.mT, beta=.5, alpha=2),
    lambda x, y: torch.cdist(y, x, 1.0) + torch.cdist(y, x, 3.0) + torch.cdist(y, x, float("inf")), lambda x, y: torch.pdist(y[0]) + torch.addmv(y[0, :, 0], y[1], x[0, 0]),
    lambda x, y: torch.addbmm(y[0, :, :3], y, x.mT, beta=.5, alpha=2), lambda x, y: y * y.sum().cumsum(0).amax(0) + y.sum().sort()[0].logsumexp(0),
    lambda x, y: sum(torch.native_layer_norm(y, (6,), None, None, 1e-5)) + torch.dist(y, x, 3.0),
    lambda x, y: torch.ops.aten._safe_softmax(y.masked_fill(x.sum(-1, keepdim=True) > 0, -float("inf")), -1),
    lambda x, y: F.adaptive_max_pool2d(y, (2, 4), return_indices=True)[0] + F.adaptive_max_pool2d(x, (2, 4), return_indices=True)[1]]
MOVES = [
    lambda x, y: torch.cat([t * i for i, t in enumerate(y.chunk(4, -1))], 1), lambda x, y: y.split([1, 2, 3], -1)[2] * 2,
    lambda x, y: y.flip(1).roll((1, -2), (0, 2)), lambda x, y: y[:, [0, 2, 1]], lambda x, y: y[torch.tensor([0, 1]), torch.tensor([2, 1])],
    lambda x, y: y.gather(-1, x.argmax(-1, keepdim=True)), lambda x, y: y.index_select(1, torch.tensor([2, 0])),
    lambda x, y: torch.zeros(4, 3, 6).scatter(-1, x.argmax(-1, keepdim=True), y[..., :1]),
    lambda x, y: torch.zeros(4, 3, 6).scatter_add(-1, x.argmax(-1, keepdim=True), y[..., :1]),
    lambda x, y: torch.zeros(4, 5, 6).index_add(1, torch.tensor([1, 1, 3]), y), lambda x, y: y * F.one_hot(x.argmax(-1), 6),
    lambda x, y: F.pad(y, (-1, 2, 0, 1), value=.5), lambda x, y: F.pad(y, (1, 2), mode="reflect") + F.pad(y, (1, 2), mode="circular"),
    lambda x, y: y.as_strided((4, 2, 3), (18, 6, 2), 1) * 2, lambda x, y: y.mT.contiguous().as_strided((6, 4, 3), (3, 18, 1)),
    lambda x, y: y.permute(1, 0, 2).as_strided((3, 4, 6), (6, 18, 1)) + F.adaptive_avg_pool2d(y[:, None].to(memory_format=torch.channels_last), 1)[0, 0],
    lambda x, y: y.unfold(2, 3, 1), lambda x, y: y.repeat_interleave(2, 1) + y.repeat(1, 2, 1), lambda x, y: torch.stack(y.unbind(1), 0),
    lambda x, y: torch.tril(y) + torch.triu(y, 1), lambda x, y: y[:, :, :3].diagonal(dim1=1, dim2=2), lambda x, y: written(y), lambda x, y: inside(y),
    lambda x, y: y @ torch.eye(6) * torch.linspace(0, 1, 6) + torch.empty(6).fill_(2.), lambda x, y: y.flatten(1).unflatten(1, (3, 6)).movedim(0, 1)]


class Each(nn.Module):
    """A function of x and of a linear map of x each."""

    def __init__(self, functions):
        super().__init__()
        self.linear, self.functions = nn.Linear(6, 6), functions

    def forward(self, x):
        y = self.linear(x)
        return tuple(f(x, y) for f in self.functions)


class Layers(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        return tuple(layer(x) for layer in self.layers)


def recurrent(kind):
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = kind(3, 5, batch_first=True)

        def forward(self, x):
            return self.cell(x)[0]
    return Recurrent()


class Imports(unittest.TestCase):
    mesh = ProcessMesh(np.arange(4).reshape(2, 2), ["dp", "tp"])

    def check(self, module, x, train=False):
        module = module if train else module.eval()
        expected = module(x)
        weights = [torch.randn_like(e) for e in expected]
        sum((e * w).sum() for e, w in zip(expected, weights)).backward()
        wanted = {name: p.grad.numpy() for name, p in module.named_parameters() if p.grad is not None}
        imported = ts.from_torch(module, (x,))

        @ts.jit
        def both(imported, x):
            def loss(m, x):
                results = m(x)
                return sum((y * w.numpy()).sum() for y, w in zip(results, weights)), results
            (_, results), gradients = ts.value_and_grad(loss, has_aux=True)(imported, x)
            return results, gradients
        cut = optim.shard_parameters(imported, self.mesh, lambda name, p: [Replicate(), Shard(0)] if p.ndim >= 2 else None)
        for kind, model, data in (("whole", imported, x.numpy()), ("cut", cut, shard_tensor(x.numpy(), self.mesh, [Shard(0)]))):
            results, gradients = both(model, data)
            for i, (y, e) in enumerate(zip(results, expected)):
                self.assertIsNone(difference(y.numpy(), e.detach().numpy()), f"{kind}, result {i}")
            for name, g in wanted.items():
                self.assertIsNone(difference(gradients.weights[name].numpy(), g), f"{kind}, {name}")
        return imported

    def test_elementwise(self):
        self.check(Each(ELEMENTWISE), torch.randn(4, 3, 6))

    def test_reductions(self):
        self.check(Each(REDUCTIONS), torch.randn(4, 3, 6))

    def test_moves(self):
        self.check(Each(MOVES), torch.randn(4, 3, 6))

    def test_images(self):
        conv = lambda *rest: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), *rest)
        self.check(Layers(
            nn.ConvTranspose2d(3, 4, 3, 2, 1, 1), nn.Sequential(nn.Conv2d(3, 4, 3, dilation=2), nn.ConvTranspose2d(4, 6, 2, 2, groups=2)),
            nn.Conv2d(3, 4, (2, 3), (2, 3), padding="valid"), nn.Conv2d(3, 4, 3, padding="same"),
            conv(nn.AvgPool2d(3, 2, ceil_mode=True)), conv(nn.AvgPool2d(3, 2, 1, count_include_pad=False)), conv(nn.MaxPool2d(3, 2, ceil_mode=True)),
            conv(nn.MaxPool2d(2, 1, dilation=2)), conv(nn.AdaptiveAvgPool2d(3)), conv(nn.AdaptiveMaxPool2d(3)), conv(nn.GroupNorm(2, 4)),
            conv(nn.Upsample(scale_factor=2)), conv(nn.Upsample(scale_factor=2, mode="bilinear")), conv(nn.PixelShuffle(2)),
            nn.Sequential(nn.ReflectionPad2d(1), conv()), conv(nn.PReLU(4), nn.Hardtanh()), nn.Sequential(nn.Unfold(3, padding=1), nn.Linear(64, 2))),
            torch.randn(4, 3, 8, 8))

    def test_batch_normalisation(self):
        """While training: the running statistics of the module change as PyTorch's."""
        module, x = Layers(nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU()), nn.InstanceNorm2d(3)), torch.randn(4, 3, 6, 6)
        imported = ts.from_torch(module, (x,))
        _, imported = ts.jit(lambda m, x: (m(x), m))(imported, x.numpy())
        module(x)
        for name, value in imported.constants.items():
            self.assertIsNone(difference(value.numpy(), module.state_dict()[name].numpy()), name)
        self.check(module, x, train=True)

    def test_sequences(self):
        self.check(Layers(recurrent(nn.LSTM), recurrent(nn.GRU), nn.Sequential(nn.Linear(3, 4), nn.RMSNorm(4))), torch.randn(4, 5, 3))
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True, activation="gelu")
        self.check(Layers(nn.TransformerEncoder(layer, 2)), torch.randn(4, 5, 8))

    def test_shared(self):
        """Tied parameters are one; the row of padding_idx gets no gradient; bags are sums."""
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.token, self.head = nn.Embedding(11, 6, padding_idx=3), nn.Linear(6, 11, bias=False)
                self.head.weight, self.bag = self.token.weight, nn.EmbeddingBag(11, 4, mode="mean")

            def forward(self, tokens):
                return self.head(self.token(tokens)), self.bag(tokens)
        self.assertEqual(len(self.check(Tied(), torch.randint(0, 11, (4, 5))).weights), 2)

    def test_masks(self):
        """Masks of floats, fewer heads of keys."""
        class Attends(nn.Module):
            def __init__(self):
                super().__init__()
                self.q, self.k = nn.Linear(8, 8), nn.Linear(8, 4)

            def forward(self, x):
                heads = lambda t: t.unflatten(-1, (-1, 2)).transpose(1, 2)
                mask = torch.full((5, 5), -torch.inf).triu(1)
                k = heads(self.k(x))
                return F.scaled_dot_product_attention(heads(self.q(x)), k, k, attn_mask=mask, enable_gqa=True, scale=0.3),
        self.check(Attends(), torch.randn(4, 5, 8))


if __name__ == "__main__":
    unittest.main()
