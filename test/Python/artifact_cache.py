# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artifacts of programs compiled before are read from the cache, with their warnings; whatever they depend on is in the key."""

import json
import os
import tempfile
import unittest
import warnings
from pathlib import Path

import numpy as np

import tessera as ts

PROGRAM = """
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {{
  %c = arith.constant dense<{constant}> : tensor<8x4xf32>
  %0 = tensor.empty() : tensor<8x4xf32>
  %1 = linalg.add ins(%x, %c : tensor<8x4xf32>, tensor<8x4xf32>) outs(%0 : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}}
"""
ON_DEVICES = """
dist.process_mesh @mesh(shape = [2], dim_names = ["d"])
func.func @main(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [shard(1)]>},
                %w: tensor<4x6xf32> {dist.sharding = #dist.sharding<@mesh, [shard(0)]>}) -> tensor<8x6xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<8x6xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<8x6xf32>) -> tensor<8x6xf32>
  %2 = linalg.matmul ins(%x, %w : tensor<8x4xf32>, tensor<4x6xf32>) outs(%1 : tensor<8x6xf32>) -> tensor<8x6xf32>
  return %2 : tensor<8x6xf32>
}
"""


class ArtifactCache(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name, "tessera")
        before = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = folder.name
        self.addCleanup(lambda: os.environ.pop("XDG_CACHE_HOME") if before is None else os.environ.update(XDG_CACHE_HOME=before))

    def entries(self):
        return set(self.folder.glob("*.artifact"))

    def program(self, constant=1.0):
        return ts.Program(PROGRAM.format(constant=constant))

    def added(self, artifact):
        return ts.Session(artifact).run([np.zeros((8, 4), np.float32)])[0][0, 0]

    def test_second_is_read(self):
        one, two = self.program(1.0), self.program(2.0)
        first = one.compile()
        (entry,) = self.entries()
        self.assertEqual(one.compile(), first)
        self.assertEqual(self.added(two.compile()), 2)
        (other,) = self.entries() - {entry}
        # An entry in the place of another is what the next compilation returns: it compiles nothing.
        entry.write_bytes(other.read_bytes())
        self.assertEqual(self.added(one.compile()), 2)

    def test_damaged(self):
        program = self.program()
        first = program.compile()
        (entry,) = self.entries()
        whole = entry.read_bytes()
        for damaged in (b"", whole[:100], whole[:-1], whole[:200] + bytes([whole[200] ^ 1]) + whole[201:]):
            entry.write_bytes(damaged)
            self.assertEqual(program.compile(), first)
            self.assertEqual(entry.read_bytes(), whole)

    def test_options(self):
        program = self.program()
        program.compile()
        topology = self.folder / "machine.json"
        for count, options in enumerate(({"objective": "bytes"}, {"overlap": True}, {"attention_sequence": "gather"},
                                         {"narrow_reductions": True}, {"remarks": True}), start=2):
            program.compile(**options)
            self.assertEqual(len(self.entries()), count, options)
        count = len(self.entries())
        for rate in (1e9, 2e9):
            topology.write_text(json.dumps({
                "version": 1, "name": "m", "source": "made up", "device": {"kind": "cpu", "flops": {"f32": 1e10}, "memory_rate": rate, "memory": 1e9},
                "links": [{"name": "n", "devices": 8, "alpha": 1e-6, "rate": 1e9}]}))
            program.compile(topology=str(topology))
            count += 1
            self.assertEqual(len(self.entries()), count)
        ts.Program(program.mlir, name="other").compile()  # messages and locations name the file
        self.assertEqual(len(self.entries()), count + 1)
        with self.assertRaises(ts.Error):
            program.compile(objective="speed")
        self.assertEqual(len(self.entries()), count + 1)

    def test_messages_are_repeated(self):
        program, said = ts.Program(ON_DEVICES), []
        for _ in range(2):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                program.compile(remarks=True)
            said.append([str(each.message) for each in caught])
        self.assertEqual(len(self.entries()), 1)
        self.assertTrue(said[0])
        self.assertEqual(said[0], said[1])


if __name__ == "__main__":
    unittest.main()
