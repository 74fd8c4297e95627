# RUN: %tessera_python %s
# REQUIRES: torch
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indices in modules of PyTorch: inside of their axes results equal PyTorch's; outside there is an error where the index is known before
the call, and poison elsewhere."""

import itertools
import unittest

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import tessera as ts
from tessera import ProcessMesh, Replicate, Shard, shard_tensor
from tessera.testing import difference

torch.manual_seed(0)
x = torch.randn(5, 3)


def module(function):
    class Net(nn.Module):
        def forward(self, *args):
            return function(*args)
    return Net()


READS = {
    "embedding": lambda x, i: F.embedding(i, x),
    "index_select": lambda x, i: torch.index_select(x, 0, i),
    "gather": lambda x, i: torch.gather(x, 0, i[:, None]),
    "index": lambda x, i: x[i],
    "two indices": lambda x, i: x[i, i.clamp(max=2)],
    "columns": lambda x, i: x.T[:, i],
}
WRITES = {
    "scatter": lambda x, i: torch.scatter(x, 0, i[:, None].expand(-1, 3), 2.0),
    "scatter_add": lambda x, i: x.scatter_add(0, i[:, None].expand(-1, 3), torch.ones(len(i), 3)),
    "index_add": lambda x, i: x.index_add(0, i, torch.ones(len(i), 3)),
    "index_put": lambda x, i: x.index_put((i,), torch.zeros(())),
}
WRAP = {"index", "two indices", "columns", "index_put", "index_add"}  # take -1


class Indices(unittest.TestCase):
    def imported(self, function, *args):
        return ts.from_torch(module(function), args)

    def test_inside(self):
        i = torch.tensor([4, 0, 2])
        for name, function in (READS | WRITES).items():
            if name == "two indices":
                continue
            model = self.imported(function, x, i)
            self.assertIsNone(difference(model(x.numpy(), i.numpy()).numpy(), function(x, i).numpy()), name)

    def test_negative(self):
        i = torch.tensor([-1, 0, -5])
        for name in ("index", "columns", "index_put"):
            function = (READS | WRITES)[name]
            self.assertIsNone(difference(self.imported(function, x, i)(x.numpy(), i.numpy()).numpy(), function(x, i).numpy()), name)

    def test_outside(self):
        """Arguments of the compiled function are checked before each call."""
        good = torch.tensor([4, 0, 2])
        for name, function in (READS | WRITES).items():
            run = ts.jit(lambda model, x, i: model(x, i))
            model = self.imported(function, x, good)
            run(model, x.numpy(), good.numpy() % 3)
            for bad in (9, 5, -6, -1):
                if bad == -1 and name in WRAP:
                    continue
                if name in ("two indices",) and bad < 0:
                    continue
                with self.subTest(name=name, index=bad):
                    with self.assertRaisesRegex(ts.OutOfRangeError, rf"torch_indices.py:\d+:1: error: index {bad} of '\w+' is out of range: the axis has extent 5"):
                        run(model, x.numpy(), np.array([1, bad, 2]))
                    with self.assertRaises(IndexError):
                        model(x.numpy(), np.array([1, bad, 2]))
            run(model, x.numpy(), good.numpy() % 3)

    def test_one_operation_at_a_time(self):
        """Outside of jit every index is known, and the line is that of the call."""
        class Net(nn.Module):
            def forward(self, x, i):
                y = x[i + 2] * 2
                return y + x[i + 2] + x[2 * i]
        first, good = Net.forward.__code__.co_firstlineno, np.array([2, 0, 1])
        model = ts.from_torch(Net(), (x, torch.tensor(good)))
        model(x.numpy(), good)
        for bad, line, found in ((3, 1, 5), (9, 1, 11), (-5, 2, -10)):
            with self.assertRaisesRegex(IndexError, rf"torch_indices.py:{first + line}:1: error: index {found} of 'index'"):
                model(x.numpy(), np.array([1, bad, 2]))

    def test_poison(self):
        """Indices that the program computes cannot be checked before: out of range, floats are NaN, integers their least number."""
        run = ts.jit(lambda model, x, i: model(x, i))
        mesh = ProcessMesh(range(2), ["x"])
        shifted = torch.tensor([2, 0, 1])  # plus 2: 4, 2, 3
        for name, function in (READS | WRITES).items():
            if name == "two indices":
                continue
            model = self.imported(lambda x, i: function(x, i + 2), x, shifted)
            for bad in (3, -9, *(() if name in WRAP else (-3,))):
                i = np.array([1, bad, 2])
                for data in (x.numpy(), shard_tensor(x.numpy(), mesh, [Shard(0)])):
                    self.assertIsNone(difference(run(model, data, shifted.numpy()).numpy(), function(x, shifted + 2).numpy()), name)
                    y = run(model, data, i).numpy()
                    where = slice(None) if name in WRITES else (slice(None), 1) if name == "columns" else 1
                    self.assertTrue(np.isnan(y[where]).all(), (name, bad, y))
                    if name in READS:
                        rest = np.delete(y, 1, 1 if name == "columns" else 0)
                        self.assertIsNone(difference(rest, function(x, torch.tensor([3, 4])).numpy()), name)
        whole = torch.arange(15).reshape(5, 3)
        model = self.imported(lambda x, i: x[i + 2], whole, shifted)
        self.assertTrue((run(model, whole.numpy(), np.array([1, 3, 2])).numpy()[1] == np.iinfo(np.int64).min).all())

    def test_constants(self):
        """An index that belongs to the module is checked, too."""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("ids", torch.tensor([0, 1, 4]))

            def forward(self, x):
                return x[self.ids]
        model = ts.from_torch(Net(), (x,))
        self.assertIsNone(difference(model(x.numpy()).numpy(), x[[0, 1, 4]].numpy()))
        model.constants["ids"] = ts.asarray(np.array([0, 7, 1]))
        with self.assertRaisesRegex(IndexError, "index 7 of 'index'"):
            ts.jit(lambda m, x: m(x))(model, x.numpy())

    def test_gradients(self):
        """Of lookups whose index is computed: PyTorch's, cut and whole."""
        i = torch.tensor([2, 0, 2])
        for name in ("embedding", "gather", "index", "scatter_add", "index_put"):
            function = (READS | WRITES)[name]
            leaf = x.clone().requires_grad_()
            (function(leaf, i + 1) ** 2).sum().backward()
            model = self.imported(lambda x, i: function(x, i + 1), x, i)
            gradient = ts.jit(ts.grad(lambda x, model, i: (model(x, i) ** 2).sum()))
            for data in (x.numpy(), shard_tensor(x.numpy(), ProcessMesh(range(2), ["x"]), [Shard(0)])):
                self.assertIsNone(difference(gradient(data, model, i.numpy()).numpy(), leaf.grad.numpy()), name)


class Pools(unittest.TestCase):
    def check(self, x, *args, **options):
        space = x.ndim - 2
        pool = getattr(F, f"max_pool{space}d")
        function = lambda x: pool(x, *args, return_indices=True, **options)
        model = ts.from_torch(module(function), (x,))
        for y, wanted in zip(ts.jit(lambda m, x: m(x))(model, x.numpy()), function(x)):
            self.assertIsNone(difference(y.numpy(), wanted.numpy()), (args, options))

    def test_indices(self):
        y = torch.randn(2, 3, 9, 8)
        for window, stride, padding, dilation, ceil in itertools.product((2, 3), (None, 1), (0, 1), (1, 2), (False, True)):
            self.check(y, window, stride, padding, dilation, ceil_mode=ceil)
        self.check(torch.randn(2, 3, 11), 3)
        self.check(torch.randn(1, 2, 4, 5, 6), 2)

    def test_equal_ones(self):
        self.check(torch.zeros(1, 1, 6, 6), 3, 2, 1)
        self.check(torch.full((1, 1, 6, 6), -float("inf")), 3, 2, 1)
        y = torch.randint(0, 2, (1, 2, 6, 6)).float()
        self.check(y, 3, 1, 1)
        y[0, 0, 2, 3] = y[0, 0, 2, 4] = float("nan")
        self.check(y, 2)


class Attention(unittest.TestCase):
    """scaled_dot_product_attention has a separate rule."""

    def check(self, *shapes, mask=None, **options):
        q, k, v = [torch.randn(shape) for shape in shapes]
        weight = torch.randn(F.scaled_dot_product_attention(q, k, v, mask, **options).shape)
        inputs = [t.requires_grad_() for t in (q, k, v)]
        expected = F.scaled_dot_product_attention(*inputs, mask, **options)
        (expected * weight).sum().backward()
        given = (q, k, v) if mask is None else (q, k, v, mask)
        model = ts.from_torch(module(lambda q, k, v, mask=None: F.scaled_dot_product_attention(q, k, v, mask, **options)), tuple(t.detach() for t in given))
        arrays = [t.detach().numpy() for t in given]
        both = ts.jit(ts.value_and_grad(lambda q, k, v, *mask: (lambda y: ((y * weight.numpy()).sum(), y))(model(q, k, v, *mask)), (0, 1, 2), has_aux=True))
        (_, y), gradients = both(*arrays)
        self.assertIsNone(difference(y.numpy(), expected.detach().numpy()), options)
        for g, t in zip(gradients, inputs):
            self.assertIsNone(difference(g.numpy(), t.grad.numpy()), options)

    def test_plain(self):
        self.check((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6))
        self.check((3, 5, 4), (3, 7, 4), (3, 7, 4))
        self.check((5, 4), (7, 4), (7, 4))
        self.check((2, 2, 3, 5, 4), (2, 2, 3, 7, 4), (2, 2, 3, 7, 4), scale=0.3)

    def test_causal(self):
        for places in ((5, 5), (5, 7), (7, 5)):
            self.check(*[(2, 3, n, 4) for n in (places[0], places[1], places[1])], is_causal=True)

    def test_masks(self):
        shapes = (2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4)
        for shape in ((5, 7), (2, 1, 1, 7), (2, 3, 5, 7), (1, 1, 5, 7)):
            self.check(*shapes, mask=torch.rand(shape) > 0.2)
            self.check(*shapes, mask=torch.randn(shape))

    def test_nothing_to_look_at(self):
        """Left padding: completely masked rows are 0."""
        mask = torch.ones(2, 1, 5, 7, dtype=torch.bool)
        mask[0, :, 2] = False
        self.check((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4), mask=mask)
        self.check((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4), mask=torch.zeros(mask.shape).masked_fill(~mask, -float("inf")))

    def test_groups_of_heads(self):
        self.check((2, 6, 5, 4), (2, 2, 7, 4), (2, 2, 7, 4), enable_gqa=True)


if __name__ == "__main__":
    unittest.main()
