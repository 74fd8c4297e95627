# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small typed builder of MLIR programs; depends only on the standard library."""

from .build import Builder
from .core import Block, Function, Location, Operation, Port, Value
from .module import Module
from .simplify import simplify
from .types import AffineMap, TensorType

__all__ = ["AffineMap", "Block", "Builder", "Function", "Location", "Module", "Operation", "Port", "TensorType", "Value",
           "simplify"]
