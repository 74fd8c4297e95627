# RUN: %tessera_python %s %source/bench/communication
# REQUIRES: jax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole training steps: JAX, one device and eight devices agree in every gradient."""

import sys
import unittest

sys.path.insert(0, sys.argv.pop())

from jax_case import JaxCase, jax
import tessera
import workloads
from tessera.testing import difference
from workloads import common

common.LEARNING_RATE = 1e4  # the returned parameters are then gradients


class Workloads(JaxCase):
    pass


def add(name, make):
    def test(self):
        program = make()
        values = self.values(program.args, 10)
        expected = jax.tree.leaves(jax.jit(program.fn)(*values))
        for specs, out in ((None, None), (program.specs, program.out)):
            mesh = program.mesh if specs is not None else None
            imported = tessera.from_jax(program.fn, program.args, specs, out, mesh=mesh, feeds="auto" if program.out else None)
            for leaf, a, b in zip(imported.outputs, jax.tree.leaves(imported(*values)), expected, strict=True):
                wrong = difference(a, b)
                self.assertIsNone(wrong, f"{leaf.name} {'on eight devices' if specs else 'on one device'}: {wrong}")
    setattr(Workloads, f"test_{name}", test)


for name, make in workloads.SMALL.items():
    add(name, make)

if __name__ == "__main__":
    unittest.main()
