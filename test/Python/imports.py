# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tessera, numpy, jax and torch (where they are installed) in one process, imported in any order, each then used."""

import importlib.util
import itertools
import subprocess
import sys
import unittest

USE = """
x = numpy.ones((2, 3), numpy.float32)
assert tessera.jit(lambda x: (x @ x.T).sum())(x).item() == 12
"""
OTHERS = {"jax": "assert tessera.from_jax(lambda x: jax.numpy.sum(x), (x,))(x) == 6\n",
          "torch": "assert tessera.from_torch(torch.nn.Linear(3, 2), (torch.ones(2, 3),))(x).shape == (2, 2)\n"}


class Imports(unittest.TestCase):
    def test_orders(self):
        """tessera first, last and in the middle (every order: bench/training/run BUILD imports)."""
        names = ["tessera", "numpy", *[name for name in OTHERS if importlib.util.find_spec(name)]]
        orders = [names, names[::-1], [*names[2:3], "tessera", *names[3:], "numpy"]]
        for order in orders:
            code = "".join(f"import {name}\n" for name in order) + USE + "".join(OTHERS[name] for name in order if name in OTHERS)
            done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, f"{', '.join(order)}: {done.stderr}")

    def test_operators(self):
        """Importing operations also provides operators of tensors."""
        code = "from tessera import ops\nassert (ops.arange(3) + 1)[::-1].tolist() == [3, 2, 1]"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_missing(self):
        """The error names a missing package and the command that installs it."""
        for name, call in (("jax", "tessera.from_jax(None, ())"), ("torch", "tessera.from_torch(None)")):
            code = f"import sys; sys.modules['{name}'] = None\nimport tessera\ntry:\n  {call}\nexcept ImportError as error:\n  print(error)"
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            self.assertIn(f"needs the package '{name}': pip install {name}", done.stdout, done.stderr)


if __name__ == "__main__":
    unittest.main()
