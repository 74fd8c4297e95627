# RUN: %tessera_python %s
# REQUIRES: tessera-core, torch
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""state_dict goes to a checkpoint and back: PyTorch's names, tied weights, bfloat16."""

import os
import tempfile
import unittest

import torch

import tessera as ts


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.inner, self.head = torch.nn.Embedding(5, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 5, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("sixteen", torch.randn(4).bfloat16())


class StateDict(unittest.TestCase):
    def test_round_trip(self):
        with tempfile.TemporaryDirectory() as folder:
            saved, other = Tied(), Tied()
            ts.save_checkpoint(folder, {"model": saved.state_dict()}, 3)
            loaded = ts.load_checkpoint(folder, {"model": other.state_dict()})
            other.load_state_dict(loaded.state["model"])
            self.assertIs(other.head.weight, other.embed.weight)
            for name, value in saved.state_dict().items():
                self.assertEqual(value.dtype, other.state_dict()[name].dtype)
                self.assertTrue(torch.equal(value, other.state_dict()[name]), name)

    def test_one_file(self):
        """Each package reads files of the other."""
        try:
            from safetensors.torch import load_file, save_file
        except ImportError:
            self.skipTest("the package safetensors is not there")
        with tempfile.TemporaryDirectory() as folder:
            path, state = os.path.join(folder, "x.safetensors"), Tied().state_dict()
            ts.save_state(path, state)
            found = load_file(path)
            self.assertEqual(set(state) - set(found), {"head.weight"})
            for name, value in found.items():
                self.assertTrue(torch.equal(value, state[name]), name)
            save_file(found, path)
            loaded = ts.load_state(path, state)
            for name, value in state.items():
                self.assertTrue(torch.equal(value, loaded[name]), name)


if __name__ == "__main__":
    unittest.main()
