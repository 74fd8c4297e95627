# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorts by emulated GPU kernels equal NumPy's bit for bit: sizes around a tile (1,792), types, dimensions, special values."""

import os
import re
import subprocess
import tempfile
import unittest

import numpy as np

import tessera

TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i32": np.int32, "i64": np.int64}
# shape, dimension, types of the operands, keys, descending, limit
CASES = [((3, n), 1, ("f32", "i32"), 1, False, None) for n in (1, 2, 3, 7, 8, 33, 1791, 1792, 1793, 3585)] + [
    ((100003,), 0, ("f32", "i32"), 1, True, None),
    ((40, 50, 3), 1, ("f32",), 1, False, None),
    ((2500, 3), 0, ("i32", "f32"), 1, True, None),
    ((2, 4000), 1, ("i8", "i32"), 1, True, None),
    ((5000,), 0, ("i64", "f32"), 1, False, None),
    ((2, 2000), 1, ("f16", "f32", "i8"), 2, True, None),
    ((2000,), 0, ("f64", "i8", "f64"), 3, False, None),
    ((2, 30000), 1, ("f32", "i32"), 1, True, 8),       # tiles of candidates, twice
    ((9000,), 0, ("f32", "i32"), 1, False, 448),       # the most that are selected
    ((2, 9000), 1, ("f32", "i32"), 1, True, 449),      # merged, in runs of 449
    ((6000, 2), 0, ("i32", "i32"), 1, False, 3000),
    # By digits: of one pass, of two and of four; results that are read at the indices.
    ((9000,), 0, ("i8", "i32"), 1, True, None),
    ((70000,), 0, ("f16", "i64"), 1, True, None),
    ((70000,), 0, ("f16", "f64", "i64"), 1, False, 60000),
    ((1 << 18,), 0, ("f32", "i32"), 1, False, None),
]


def order(keys, descending):
    """The indices of a line in stable order; NaN is the greatest."""
    columns = []
    for key in keys:
        isnan = np.isnan(key) if key.dtype.kind == "f" else np.zeros(key.shape, bool)
        rank = np.unique(np.where(isnan, key.dtype.type(0), key), return_inverse=True)[1]
        rank = np.where(isnan, rank.max() + 1, rank)
        columns.append(-rank if descending else rank)
    return np.lexsort(columns[::-1])


class GpuSorting(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def program(self):
        parameters, results, body = [], [], []
        for case, (shape, dim, types, keys, descending, limit) in enumerate(CASES):
            out = list(shape)
            out[dim] = limit or out[dim]
            of = [("x".join(map(str, shape)) + "x" + t, "x".join(map(str, out)) + "x" + t) for t in types]
            parameters += [f'%x{case}_{i}: tensor<{t}> {{dist.name = "x{case}_{i}"}}' for i, (t, _) in enumerate(of)]
            results += [(f"%r{case}#{i}", t, f"r{case}_{i}") for i, (_, t) in enumerate(of)]
            body.append(f"  %r{case}:{len(of)} = ext.sort dim = {dim} keys = {keys}{' descending' * descending}"
                        f"{f' limit = {limit}' if limit else ''} ins({', '.join(f'%x{case}_{i}' for i in range(len(of)))}"
                        f" : {', '.join(f'tensor<{t}>' for t, _ in of)})")
        named = ", ".join(f'tensor<{t}> {{dist.name = "{name}"}}' for _, t, name in results)
        body.append("  return " + ", ".join(r for r, _, _ in results) + " : " + ", ".join(f"tensor<{t}>" for _, t, _ in results))
        return f"func.func @main({', '.join(parameters)}) -> ({named}) {{\n" + "\n".join(body) + "\n}\n"

    def values(self, random, shape, name, i):
        dtype = TYPES[name]
        if np.dtype(dtype).kind == "i":
            return random.integers(-100, 100, shape).astype(dtype) if i == 0 else np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        values = np.round(random.normal(size=shape) * 100).astype(dtype)  # some are equal
        special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0], dtype)
        return np.where(random.random(shape) < 0.2, random.choice(special, shape), values)

    def test_against_numpy(self):
        source, artifact = os.path.join(self.folder, "p.mlir"), os.path.join(self.folder, "p.tsra")
        with open(source, "w") as file:
            file.write(self.program())
        done = subprocess.run(["tessera", "compile", source, "--target=stub", "--kernels", "-o", artifact],
                              check=True, stdout=subprocess.PIPE, text=True)
        schemes = re.findall(r"^kernel \S+_sort +(.*)$", done.stdout, re.M)
        self.assertEqual(len(schemes), len(CASES))
        self.assertEqual({scheme for line in schemes for scheme in line.split()}, {"sort"})
        random = np.random.default_rng(3)
        inputs = {f"x{case}_{i}": self.values(random, shape, name, i)
                  for case, (shape, _, types, *_) in enumerate(CASES) for i, name in enumerate(types)}
        results = iter(tessera.load(artifact, backend="stub")(**inputs))
        for case, (shape, dim, types, keys, descending, limit) in enumerate(CASES):
            operands = [np.moveaxis(inputs[f"x{case}_{i}"], dim, -1) for i in range(len(types))]
            lines = [operand.reshape(-1, operand.shape[-1]) for operand in operands]
            places = [order([line[row] for line in lines[:keys]], descending)[:limit] for row in range(len(lines[0]))]
            for i, line in enumerate(lines):
                expected = np.stack([line[row][place] for row, place in enumerate(places)])
                expected = np.moveaxis(expected.reshape(*operands[i].shape[:-1], -1), -1, dim)
                found = np.asarray(next(results))
                self.assertEqual(found.tobytes(), np.ascontiguousarray(expected).tobytes(), msg=str((CASES[case], i)))


if __name__ == "__main__":
    unittest.main()
