# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared by tests of PyTorch's importer: results and gradients of functions on one device and on four equal PyTorch's."""

import sys
import unittest

import numpy as np
import torch
from torch import nn

import tessera as ts
from tessera.testing import difference

torch.manual_seed(0)


class Functions(nn.Module):
    """Functions of as many of the inputs as `counts` says, one after the other, joined to one tuple of results."""

    def __init__(self, functions, counts):
        super().__init__()
        self.functions, self.counts = functions, counts

    def forward(self, *inputs):
        given, results = iter(inputs), []
        for function, count in zip(self.functions, self.counts):
            result = function(*[next(given) for _ in range(count)])
            results += result if isinstance(result, (tuple, list)) else [result]
        return tuple(results)


class TorchCase(unittest.TestCase):
    steps = 10  # of difference(): how much rounding errors accumulate

    def setUp(self):
        self._cases = []

    def check(self, function, *inputs, derivative=True):
        """Compares a function with PyTorch's: results, and gradients by all floating-point inputs of a sum of the results with weights.

        Then with all inputs cut along their first dimension over four devices. Cases of one test are compiled together,
        when it ends.
        """
        caller = sys._getframe(1)
        self._cases.append((function, [torch.as_tensor(x).clone() for x in inputs], derivative, f"{caller.f_code.co_filename}:{caller.f_lineno}"))

    def tearDown(self):
        cases, self._cases = self._cases, []
        if not cases:
            return
        inputs = [x for _, given, _, _ in cases for x in given]
        chosen = [derivative and x.is_floating_point() for _, given, derivative, _ in cases for x in given]
        where = [place for _, given, _, place in cases for _ in given]
        leaves = [x.clone().requires_grad_(wanted) for x, wanted in zip(inputs, chosen)]
        module = Functions([case[0] for case in cases], [len(case[1]) for case in cases])
        expected, places, given = [], [], iter(leaves)
        for function, own, _, place in cases:
            result = function(*[next(given) for _ in own])
            expected += result if isinstance(result, (tuple, list)) else [result]
            places += [place] * (len(expected) - len(places))
        generator = torch.Generator().manual_seed(1)
        weights = [torch.randn(e.shape, generator=generator, dtype=e.dtype) if e.requires_grad else None for e in expected]
        wanted = [i for i, x in enumerate(leaves) if x.requires_grad]
        gradients = torch.autograd.grad([e for e in expected if e.requires_grad], [leaves[i] for i in wanted],
                                        [w for w in weights if w is not None], allow_unused=True) if wanted else []
        imported = ts.from_torch(module, tuple(inputs))

        @ts.jit
        def both(imported, *arrays):
            def loss(*differentiated):
                values = list(arrays)
                for i, value in zip(wanted, differentiated):
                    values[i] = value
                results = imported(*values)
                return sum((r * w.numpy()).sum().astype("float32") for r, w in zip(results, weights) if w is not None), results
            if not wanted:
                return imported(*arrays), ()
            (_, results), found = ts.value_and_grad(loss, tuple(range(len(wanted))), has_aux=True)(*[arrays[i] for i in wanted])
            return results, found
        arrays = [x.numpy() for x in inputs]
        mesh = ts.ProcessMesh(list(range(4)), ["d"])
        for kind, data in (("whole", arrays), ("cut", [ts.shard_tensor(x, mesh, [ts.Shard(0) if x.ndim else ts.Replicate()]) for x in arrays])):
            results, found = both(imported, *data)
            for place, value, e in zip(places, results, expected, strict=True):
                self.assertIsNone(difference(value.numpy(), e.detach().numpy(), self.steps), f"{place}: {kind}")
            for i, gradient, e in zip(wanted, found, gradients, strict=True):
                e = np.zeros(inputs[i].shape, gradient.numpy().dtype) if e is None else e.numpy()
                self.assertIsNone(difference(gradient.numpy(), e, self.steps), f"{where[i]}: {kind}, gradient")
