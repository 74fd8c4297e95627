# RUN: %tessera_python %s
# REQUIRES: torch
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bags, scatters that reduce, searches and samples of grids: values and gradients equal PyTorch's, on one device and cut."""

import itertools
import unittest

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import tessera as ts
from tessera import ProcessMesh, Shard, shard_tensor
from tessera.testing import difference

torch.manual_seed(0)
MESH = ProcessMesh(range(2), ["x"])


class Each(nn.Module):
    """Several functions of the same tensors."""

    def __init__(self, functions):
        super().__init__()
        self.functions = functions

    def forward(self, *tensors):
        return tuple(f(*tensors) for f in self.functions)


class Case(unittest.TestCase):
    def check(self, functions, *tensors):
        """functions: name -> function of the tensors. The gradients of all float tensors are compared."""
        module, arrays = Each(list(functions.values())), [t.numpy() for t in tensors]
        wanted = [i for i, t in enumerate(tensors) if t.is_floating_point()]
        leaves = [t.clone().requires_grad_(i in wanted) for i, t in enumerate(tensors)]
        expected = module(*leaves)
        weights = [torch.randn_like(e).numpy() if e.requires_grad else None for e in expected]
        gradients = [torch.autograd.grad((e * torch.from_numpy(w)).sum(), [leaves[i] for i in wanted], allow_unused=True) if w is not None else None
                     for e, w in zip(expected, weights)]
        imported = ts.from_torch(module, tensors)

        @ts.jit
        def both(*tensors):
            def loss(k):
                return lambda *tensors: (imported(*tensors)[k] * weights[k]).sum()
            return imported(*tensors), [ts.grad(loss(k), tuple(wanted))(*tensors) if w is not None else None for k, w in enumerate(weights)]
        for given in (arrays, [shard_tensor(a, MESH, [Shard(0)]) for a in arrays]):
            results, found = both(*given)
            for name, result, value, got, gradient in zip(functions, results, expected, found, gradients):
                self.assertIsNone(difference(result.numpy(), value.detach().numpy(), 4), name)
                for g, w in zip(got or (), gradient or ()):
                    self.assertIsNone(difference(g.numpy(), np.zeros(g.shape, np.float32) if w is None else w.numpy(), 4), f"gradient of {name}")


class Bags(Case):
    def test_modes(self):
        """Empty bags give 0; the index of padding is not in any bag."""
        table, indices, offsets = torch.randn(10, 3), torch.tensor([1, 2, 4, 5, 4, 3, 2, 9, 1]), torch.tensor([0, 3, 3, 6])
        functions = {f"{mode} {padding}": lambda w, i, o, m=mode, p=padding: F.embedding_bag(i, w, o, mode=m, padding_idx=p)
                     for mode in ("sum", "mean", "max") for padding in (None, 2)}
        functions |= {f"matrix {mode}": lambda w, i, o, m=mode: F.embedding_bag(i.reshape(3, 3), w, mode=m) for mode in ("sum", "mean", "max")}
        functions |= {f"matrix {mode} padding": lambda w, i, o, m=mode: F.embedding_bag(i.reshape(3, 3), w, mode=m, padding_idx=4) for mode in ("sum", "mean", "max")}
        functions["last"] = lambda w, i, o: F.embedding_bag(i, w, torch.cat([o, torch.tensor([9])]), mode="mean", include_last_offset=True)
        functions["scaled"] = lambda w, i, o: F.embedding_bag(i, w, o, mode="sum", scale_grad_by_freq=True)
        functions["rows"] = lambda w, i, o: F.embedding(i, w, padding_idx=4, scale_grad_by_freq=True)
        self.check(functions, table, indices, offsets)
        self.check({"weights": lambda w, i, o, p: F.embedding_bag(i, w, o, mode="sum", per_sample_weights=p)}, table, indices, offsets, torch.randn(9))

    def test_infinite_rows(self):
        """A row reaches only the bags that have it."""
        table = torch.tensor([[1.0], [float("inf")], [2.0]])
        self.check({mode: lambda i, m=mode: F.embedding_bag(i, table, mode=m) for mode in ("sum", "mean", "max")}, torch.tensor([[0, 2], [1, 0]]))

    def test_memory(self):
        """2,048 bags of 50 rows: no matrix of bags by indices."""
        indices, table = torch.randint(0, 100, (2048, 50)), torch.randn(100, 4)
        imported = ts.from_torch(Each([lambda w, i: F.embedding_bag(i, w, mode="mean")]), (table, indices))
        program = ts.jit(lambda w, i: ts.grad(lambda w: imported(w, i)[0].sum())(w))
        self.assertNotRegex(program.lower(table.numpy(), indices.numpy()).lower("normalized"), r"tensor<(2048x102400|102400x2048)x")


class Scatters(Case):
    x, indices, values = torch.randn(4, 6), torch.tensor([[0, 1, 1, 3], [2, 2, 2, 0], [1, 0, 3, 3]]), torch.randn(3, 4)

    def test_reductions(self):
        """Indices may have fewer lines than the tensor."""
        self.check({f"{kind} {axis} {own}": lambda x, v, i, k=kind, d=axis, o=own: x.scatter_reduce(d, i, v, k, include_self=o)
                    for kind in ("sum", "prod", "mean", "amax", "amin") for axis in (0, 1) for own in (True, False)}, self.x, self.values, self.indices)

    def test_equal_ones(self):
        """Equal extremes share the gradient."""
        self.check({kind: lambda x, v, i, k=kind: x.scatter_reduce(0, i, v, k) for kind in ("amax", "amin", "prod")}, torch.tensor([1.0, 1, 2, 0, 3]),
                   torch.tensor([1.0, 2, 2, 2, 3, 3, 0]), torch.tensor([0, 1, 1, 2, 4, 4, 3]))

    def test_lines(self):
        self.check({f"{kind} {own}": lambda x, v, i, k=kind, o=own: x.index_reduce(1, i, v, k, include_self=o)
                    for kind in ("prod", "mean", "amax", "amin") for own in (True, False)}, self.x, torch.randn(4, 3), torch.tensor([0, 5, 0]))

    def test_others(self):
        flat = torch.tensor([[3, -1], [0, 9]])
        self.check({
            "smaller": lambda x, v: x.scatter(0, torch.tensor([[3, 0]]), v[:1, :2]), "add": lambda x, v: x.scatter_add(1, self.indices, v),
            "masked": lambda x, v: x.masked_scatter(x.detach() > 0.5, v.repeat(2, 1)), "take": lambda x, v: x.take(flat) * v[0, 0],
            "put": lambda x, v: x.put(flat, v[:2, :2]), "put add": lambda x, v: x.put(flat % 3, v[:2, :2], True),
            "copy": lambda x, v: x.index_copy(0, torch.tensor([3, 1]), v.repeat(1, 2)[:2, :6]), "fill": lambda x, v: x.index_fill(1, torch.tensor([0, 5]), 3.0) * v[0, 0],
            "along": lambda x, v: torch.take_along_dim(x, torch.tensor([[1], [0], [2], [5]]), 1) * v[0], "diagonal": lambda x, v: x.diagonal_scatter(v[0], 1),
            "rows": lambda x, v: torch.segment_reduce(x, "mean", lengths=torch.tensor([1, 3])) * v[0, 0],
            "repeat": lambda x, v: x.repeat_interleave(torch.tensor([1, 0, 3, 2]), 0, output_size=6) * v[0, 0]}, self.x, self.values)
        self.check({"multiply": lambda i: self.x.scatter(0, i, self.values, reduce="multiply"), "add": lambda i: self.x.scatter(1, i, 2.0, reduce="add")}, self.indices)

    def test_order(self):
        x = self.x.clone()
        x[1, 2] = float("nan")
        edges = torch.sort(torch.randn(4, 40))[0]
        self.check({
            "left": lambda x: torch.searchsorted(edges, x.detach()), "right": lambda x: torch.bucketize(x.detach(), edges[0, :9], right=True),
            "max": lambda x: x.cummax(1)[0], "min": lambda x: x.cummin(0)[1], "log": lambda x: x.logcumsumexp(1) + x[:1].logcumsumexp(0), "kth": lambda x: x.kthvalue(2, 1)[0],
            "median": lambda x: x.median(1)[0], "skips": lambda x: x.nanmedian(1)[0], "all": lambda x: x.nanmedian(), "mode": lambda x: x.round().mode(1)[0],
            "histogram": lambda x: torch.histc(x[2:].detach(), 5, -1, 1), "places": lambda x: torch.nonzero_static(x > 0, size=14, fill_value=-7), "indices": lambda x: torch.cat([torch.tril_indices(4, 6, 1), torch.triu_indices(4, 5, -1)], 1)}, x)

    def test_unknown_sizes(self):
        """The result has a size known only at run time: refused at the line, with what to write instead."""
        for function, instead in ((lambda x: x[x > 0], "a bool index selects; use torch.where"), (torch.nonzero, "use torch.nonzero_static"),
                                  (torch.unique, "sort the elements"), (lambda x: x[0, :x.argmax().item()], "numbers that no tensor determines"),
                                  (lambda x: torch.bincount(x[0].long()), "add ones to zeros of a known size")):
            with self.assertRaisesRegex(ts.Error, rf"torch_scatters.py:\d+:1: error: the result of operation 'aten.\w+.\w+' of 'Each' has a size known only "
                                                  rf"at run time; programs have fixed shapes: .*{instead}"):
                ts.from_torch(Each([function]), (self.x.abs(),))


class Grids(Case):
    x = torch.randn(2, 3, 5, 7)

    def test_samples(self):
        """Points also are outside of the image."""
        self.check({f"{mode} {padding} {align}": lambda x, g, m=mode, p=padding, a=align: F.grid_sample(x, g, m, p, a) for mode, padding, align in itertools.chain(
            itertools.product(("bilinear", "nearest"), ("zeros", "border", "reflection"), (False, True)), [("bicubic", "reflection", False)])},
            self.x, torch.rand(2, 4, 6, 2) * 2.6 - 1.3)
        self.check({"3d": lambda x, g: F.grid_sample(x, g, "bilinear", "border", False)}, torch.randn(2, 2, 3, 4, 5), torch.rand(2, 2, 3, 2, 3) * 2.4 - 1.2)

    def test_resizes(self):
        options = [dict(size=(3, 4)), dict(size=(9, 11)), dict(scale_factor=(0.6, 1.7))]
        functions = {f"{mode} {kind} {o}": lambda x, m=mode, k=kind, o=o: F.interpolate(x, mode=m, antialias=k, **o)
                     for mode in ("bilinear", "bicubic") for kind in (False, True) for o in (*options, dict(size=(3, 9), align_corners=True))}
        functions |= {f"{mode} {o}": lambda x, m=mode, o=o: F.interpolate(x, mode=m, **o) for mode in ("nearest", "nearest-exact") for o in (*options, dict(size=(10, 14)))}
        self.check(functions, self.x)

    def test_infinite_pixels(self):
        """The nearest pixel alone counts."""
        x = self.x.clone()
        x[0, 0, 0, 0] = float("inf")
        self.check({"nearest": lambda x: F.interpolate(x.detach(), (3, 4))}, x)


if __name__ == "__main__":
    unittest.main()
