# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tessera: programs for one device, run on many."""

from .sharding import Mesh, Open, Partial, Replicate, Shard, Sharding

__all__ = ["Mesh", "Open", "Partial", "Replicate", "Shard", "Sharding"]
