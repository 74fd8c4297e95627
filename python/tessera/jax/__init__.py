# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The importer of JAX programs. Needs jax; nothing else in `tessera` does."""

from . import (associative, contractions, control_flow, elementwise, indexing, linalg, ragged, random, reductions, shapes, sorting, special,
               structure, windows)  # registers the rules
from .errors import ImportFailure
from .program import JaxProgram, from_jax, to_module

__all__ = ["ImportFailure", "JaxProgram", "from_jax", "to_module"]
