# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared by the workloads: a program with its shardings and the best plan known by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

F = jnp.float32
S = jax.ShapeDtypeStruct
LEARNING_RATE = 0.1


@dataclasses.dataclass
class Prog:
    """A training step: `fn(*args)`, plain SGD, returns (new parameters, loss).

    specs: PartitionSpecs by argument, None leaves one open; out: those of the results, None leaves them to propagation;
    ref: the best known by hand, dict(count=, wire_bytes=, how=), of one device and step.
    """

    fn: Any
    args: tuple
    specs: Any
    mesh: Mesh
    out: Any = None
    ref: Any = None


def mesh_of(**axes) -> Mesh:
    n = int(np.prod(list(axes.values())))
    return Mesh(np.array(jax.devices()[:n]).reshape(tuple(axes.values())), tuple(axes))


def shardings(mesh, tree):
    """The tree with NamedShardings in place of specs."""
    return jax.tree.map(lambda p: NamedSharding(mesh, p) if p is not None else None, tree,
                        is_leaf=lambda x: x is None or isinstance(x, P))


def sgd(loss):
    """A step of gradient descent at LEARNING_RATE, which tests raise so that results are gradients."""
    def step(params, *data):
        value, gradients = jax.value_and_grad(loss)(params, *data)
        return jax.tree.map(lambda p, d: p - LEARNING_RATE * d, params, gradients), value
    return step


def all_reduce(bytes, n):
    """Wire bytes of an all-reduce of `bytes` per device."""
    return 2 * bytes * (n - 1) / n


def gather(bytes, n):
    """Wire bytes of gathering to `bytes`, or reduce-scattering `bytes`, or an all-to-all of `bytes`."""
    return bytes * (n - 1) / n
