# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tessera: programs for one device, run on many."""

from .errors import Error
from .program import Program
from .sharding import Mesh, Open, Partial, Replicate, Shard, Sharding

__all__ = ["Error", "Mesh", "Open", "Partial", "Program", "Replicate", "Session", "Shard", "Sharding", "from_jax"]


def __getattr__(name):
    # What needs NumPy or JAX is loaded when it is used.
    if name == "Session":
        from .runtime import Session
        return Session
    if name == "from_jax":
        from .jax import from_jax
        return from_jax
    raise AttributeError(f"module 'tessera' has no attribute '{name}'")
