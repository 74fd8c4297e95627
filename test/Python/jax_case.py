# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared by tests of the importer: results of a program on one device and on many equal JAX's."""

import os
import sys
import unittest

# XLA's code runs once, so compile it without optimizations.
os.environ["XLA_FLAGS"] = ("--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0 "
                           "--xla_llvm_disable_expensive_passes=true")
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

import tessera
from tessera.testing import difference

# XLA's compilation cache is in the build folder, for the next run of the tests.
jax.config.update("jax_compilation_cache_dir", os.path.join(os.path.dirname(tessera.__file__), "..", "..", "jax-cache"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

F, I = jnp.float32, jnp.int32


def array(*shape, dtype=F):
    return jax.ShapeDtypeStruct(shape, dtype)


def mesh_of(**axes):
    n = int(np.prod(list(axes.values())))
    return Mesh(np.array(jax.devices()[:n]).reshape(tuple(axes.values())), tuple(axes))


def cut(rank, turn):
    """A spec that cuts up to two dimensions of a tensor over "x" and "y", different ones on each call."""
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

    def setUp(self):
        self._cases = []

    def tearDown(self):
        cases, self._cases = self._cases, []
        for i in range(0, len(cases), 10):
            self._compare(cases[i:i + 10], (0, 1), None)

    def check(self, fn, *avals, below=5, values=None, turns=(0, 1), mesh=None):
        """Runs fn in JAX, imported on one device, and imported on 2x3 devices with the arguments cut in several ways.
        Few sizes divide. Cases of one test are compiled together, when it ends."""
        caller = sys._getframe(1)
        case = fn, avals, values if values is not None else self.values(avals, below), f"{caller.f_code.co_filename}:{caller.f_lineno}"
        if mesh is None and turns == (0, 1):
            self._cases.append(case)
        else:
            self._compare([case], turns, mesh)

    def _compare(self, cases, turns, mesh):
        def together(*arguments):
            return [fn(*args) for (fn, *_), args in zip(cases, arguments)]
        avals, values = tuple(tuple(avals) for _, avals, *_ in cases), tuple(tuple(values) for _, _, values, _ in cases)
        expected = jax.tree.leaves(jax.jit(together)(*values))
        places = [place for (*_, place), results in zip(cases, jax.eval_shape(together, *values)) for _ in jax.tree.leaves(results)]
        mesh = mesh or mesh_of(x=2, y=3)
        specs = [None] + [jax.tree.map(lambda a, i=i: cut(len(a.shape), i), avals) for i in turns]
        for spec in specs:
            program = tessera.from_jax(together, avals, spec, mesh=mesh if spec is not None else None)
            actual = jax.tree.leaves(program(*values))
            self.assertEqual(len(actual), len(expected))
            for leaf, place, a, b in zip(program.outputs, places, actual, expected):
                wrong = difference(a, b)
                self.assertIsNone(wrong, f"{place}: {leaf.name} with arguments cut as {spec}: {wrong}")

    def gradient(self, fn, *arguments):
        """The gradient of sum(sin(fn)) by the numbered arguments."""
        return lambda *values: jax.grad(lambda *v: jnp.sum(jnp.sin(fn(*v))), argnums=arguments)(*values)
