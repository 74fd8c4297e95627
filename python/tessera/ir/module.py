# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A module: meshes, functions, and its text."""

from __future__ import annotations

from .core import Function
from .printer import print_module


class Module:
    """`meshes` maps a symbol to the text after `dist.process_mesh @symbol`; str() is the MLIR text."""

    def __init__(self):
        self.meshes: dict[str, str] = {}
        self.functions: list[Function] = []

    def __str__(self):
        return print_module(self.functions, self.meshes)
