# RUN: %tessera_python %s
# REQUIRES: tessera-core, torch
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent layers of PyTorch are loops, and packed sequences masks: values and gradients on one device and on four equal PyTorch's."""

import unittest

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence

import tessera as ts
from tessera import ProcessMesh, Replicate, Shard, optim, shard_tensor
from tessera.testing import difference

torch.manual_seed(0)


class Layer(nn.Module):
    """A layer over padded sequences whose lengths are packed, or without lengths over all steps. Results are floats."""

    def __init__(self, layer, is_sorted=False, given=False):
        super().__init__()
        self.layer, self.is_sorted = layer, is_sorted
        rows = layer.num_layers * (2 if layer.bidirectional else 1)
        sizes = [layer.proj_size or layer.hidden_size, *([layer.hidden_size] if isinstance(layer, nn.LSTM) else [])]
        self.state = nn.ParameterList(nn.Parameter(torch.randn(rows, 4, size)) for size in sizes) if given else None

    def forward(self, x, lengths=None):
        first, state = self.layer.batch_first, self.state and tuple(self.state)
        state = state[0] if state and len(state) == 1 else state
        if lengths is None:
            outputs, states = self.layer(x, state)
            more = ()
        else:
            packed, states = self.layer(pack_padded_sequence(x, lengths, first, enforce_sorted=self.is_sorted), state)
            outputs, counts = pad_packed_sequence(packed, first, 0.5, x.shape[1 if first else 0])
            more = counts.float(),
        return outputs, *(states if isinstance(states, tuple) else [states]), *more


class Recurrent(unittest.TestCase):
    mesh = ProcessMesh(np.arange(4).reshape(2, 2), ["dp", "tp"])

    def check(self, module, *inputs):
        expected = module(*inputs)
        weights = [torch.randn_like(e) for e in expected]
        module.zero_grad()
        sum((e * w).sum() for e, w in zip(expected, weights)).backward()
        imported = ts.from_torch(module, inputs)
        self.assertLess(str(ts.jit(lambda m, *x: m(*x)).lower(imported, *[x.numpy() for x in inputs])).count("linalg.contract"), 25)

        @ts.jit
        def both(imported, *inputs):
            def loss(m, *inputs):
                results = m(*inputs)
                return sum((y * w.numpy()).sum() for y, w in zip(results, weights)), results
            (_, results), gradients = ts.value_and_grad(loss, has_aux=True)(imported, *inputs)
            return results, gradients
        cut = optim.shard_parameters(imported, self.mesh, lambda name, p: [Replicate(), Shard(0)] if p.ndim == 2 else None)
        batch = 0 if module.layer.batch_first else 1
        data = [shard_tensor(x.numpy(), self.mesh, [Shard(batch if x.ndim > 1 else 0)]) for x in inputs]
        for kind, model, given in (("whole", imported, [x.numpy() for x in inputs]), ("cut", cut, data)):
            results, gradients = both(model, *given)
            for i, (y, e) in enumerate(zip(results, expected)):
                self.assertIsNone(difference(y.numpy(), e.detach().numpy(), steps=10), f"{kind}, result {i}")
            for name, p in module.named_parameters():
                self.assertIsNone(difference(gradients.weights[name].numpy(), p.grad.numpy(), steps=10), f"{kind}, {name}")

    def test_layers(self):
        x = torch.randn(4, 6, 3)
        self.check(Layer(nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True)), x)
        self.check(Layer(nn.LSTM(6, 4, bias=False, proj_size=2), given=True), torch.randn(5, 4, 6))
        self.check(Layer(nn.GRU(3, 4, 2, batch_first=True), given=True), x)
        self.check(Layer(nn.RNN(3, 4, bidirectional=True, nonlinearity="relu", batch_first=True)), x)

    def test_packed(self):
        x, lengths = torch.randn(4, 6, 3), torch.tensor([3, 6, 1, 4])
        self.check(Layer(nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True), given=True), x, lengths)
        self.check(Layer(nn.GRU(3, 4, batch_first=True), is_sorted=True), x, torch.tensor([6, 5, 2, 1]))
        self.check(Layer(nn.RNN(4, 4, bidirectional=True)), torch.randn(7, 4, 4), torch.tensor([2, 2, 7, 5]))

    def test_lengths_are_data(self):
        """A program serves any lengths."""
        module = Layer(nn.GRU(3, 4, batch_first=True))
        x = torch.randn(4, 6, 3)
        imported = ts.from_torch(module, (x, torch.tensor([6, 6, 6, 6])))
        for lengths in ([6, 2, 3, 1], [1, 6, 1, 1]):
            lengths = torch.tensor(lengths)
            for y, e in zip(imported(x.numpy(), lengths.numpy()), module(x, lengths)):
                self.assertIsNone(difference(np.asarray(y), e.detach().numpy(), steps=10))

    def test_padding_is_anything(self):
        layer, x, lengths = Layer(nn.GRU(3, 4, batch_first=True)), torch.randn(4, 6, 3), torch.tensor([2, 5, 6, 1])
        padded = torch.where(torch.arange(6)[:, None] < lengths[:, None, None], x, float("nan"))
        self.check(layer, padded, lengths)

    def test_known_lengths(self):
        """Padded to the longest, as PyTorch does; lengths that are data leave the length of the input."""
        class Mean(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.LSTM(3, 4, batch_first=True)

            def forward(self, x):
                packed = pack_padded_sequence(x, [4, 2, 1], True)
                return pad_packed_sequence(self.layer(packed)[0], True)[0].mean(1)
        module, x = Mean(), torch.randn(3, 6, 3)
        self.assertIsNone(difference(np.asarray(ts.from_torch(module, (x,))(x.numpy())), module(x).detach().numpy(), steps=10))

    def test_pack_sequence(self):
        class Last(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.LSTM(3, 4)

            def forward(self, x, y):
                return self.layer(pack_sequence([x, y], enforce_sorted=False))[1][0]
        module, x, y = Last(), torch.randn(2, 3), torch.randn(5, 3)
        self.assertIsNone(difference(np.asarray(ts.from_torch(module, (x, y))(x.numpy(), y.numpy())), module(x, y).detach().numpy(), steps=10))

    def test_dropout(self):
        """Between layers, in training alone: kept elements are divided by the rate."""
        layer = nn.LSTM(3, 64, 2, dropout=0.5, batch_first=True)
        module, x = Layer(layer), torch.randn(4, 6, 3)
        imported = ts.from_torch(module, (x,))
        first, second = (np.asarray(imported(x.numpy())[0]) for _ in range(2))
        self.assertTrue((first != second).any())
        expected = module.eval()(x)[0].detach().numpy()
        np.testing.assert_allclose(np.asarray(imported.eval()(x.numpy())[0]), expected, rtol=1e-4, atol=1e-5)
        # The first layer's state has no dropout, and the mean of the second stays about the same.
        with torch.no_grad():
            states = module.train()(x)[1]
        np.testing.assert_allclose(np.asarray(imported.train()(x.numpy())[1])[0], states[0].numpy(), rtol=1e-4, atol=1e-5)

    def test_refused(self):
        class Data(nn.Module):
            def forward(self, x, lengths):
                return pack_padded_sequence(x, lengths, True).data.mean()
        x, lengths = torch.randn(2, 4, 3), torch.tensor([4, 2])
        with self.assertRaisesRegex(ts.Error, "'data' of a packed sequence has a shape that depends on the lengths"):
            ts.from_torch(Data(), (x, lengths))

        class Short(nn.Module):
            def forward(self, x, lengths):
                return pad_packed_sequence(pack_padded_sequence(x, lengths, True), True, total_length=3)[0]
        with self.assertRaisesRegex(ts.Error, "total_length 3 of 'pad_packed_sequence' is less than the 4 steps"):
            ts.from_torch(Short(), (x, lengths))

    def test_pytorch_as_before(self):
        """An import, also a refused one, leaves PyTorch's functions as they were."""
        x = torch.randn(2, 4, 3)
        ts.from_torch(Layer(nn.GRU(3, 4, batch_first=True)), (x, torch.tensor([4, 2])))
        packed = pack_padded_sequence(x, torch.tensor([4, 2]), True)
        self.assertEqual(tuple(packed.data.shape), (6, 3))
        self.assertEqual(tuple(pad_packed_sequence(packed, True)[0].shape), (2, 4, 3))


if __name__ == "__main__":
    unittest.main()
