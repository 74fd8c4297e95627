# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests of the importer share: a program's results on one device and on many equal those of JAX."""

import os
import unittest

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

import tessera
from tessera.testing import difference

F, I = jnp.float32, jnp.int32


def array(*shape, dtype=F):
    return jax.ShapeDtypeStruct(shape, dtype)


def mesh_of(**axes):
    n = int(np.prod(list(axes.values())))
    return Mesh(np.array(jax.devices()[:n]).reshape(tuple(axes.values())), tuple(axes))


def cut(rank, turn):
    """A spec that cuts up to two dimensions of a tensor over "x" and "y", others at every turn."""
    spec = [None] * rank
    if rank:
        spec[turn % rank] = "x"
    if rank > 1:
        spec[(turn + 1) % rank] = "y"
    return PartitionSpec(*spec)


class JaxCase(unittest.TestCase):
    def values(self, avals, below, seed=0):
        """Random values: floats normal with deviation 0.5, integers in [0, below)."""
        random = np.random.default_rng(seed)

        def one(aval):
            if jnp.issubdtype(aval.dtype, jnp.floating):
                return (random.standard_normal(aval.shape) / 2).astype(aval.dtype)
            if aval.dtype == bool:
                return random.integers(0, 2, aval.shape).astype(bool)
            return random.integers(0, below, aval.shape).astype(aval.dtype)
        return jax.tree.map(one, avals)

    def check(self, fn, *avals, below=5, values=None, turns=(0, 1), mesh=None):
        """Runs fn in JAX, imported on one device, and imported on 2x3 devices with the arguments cut in several ways.
        Few sizes divide."""
        values = values if values is not None else self.values(avals, below)
        expected = jax.tree.leaves(jax.jit(fn)(*values))
        mesh = mesh or mesh_of(x=2, y=3)
        specs = [None] + [jax.tree.map(lambda a, i=i: cut(len(a.shape), i), avals) for i in turns]
        for spec in specs:
            program = tessera.from_jax(fn, avals, spec, mesh=mesh if spec is not None else None)
            actual = jax.tree.leaves(program(*values))
            self.assertEqual(len(actual), len(expected))
            for leaf, a, b in zip(program.outputs, actual, expected):
                wrong = difference(a, b)
                self.assertIsNone(wrong, f"{leaf.name} with arguments cut as {spec}: {wrong}\n{program}")

    def gradient(self, fn, *arguments):
        """The gradient of sum(sin(fn)) by the numbered arguments."""
        return lambda *values: jax.grad(lambda *v: jnp.sum(jnp.sin(fn(*v))), argnums=arguments)(*values)
