# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The registry of import rules, by primitive name.

A rule takes the importer, the equation and a value per operand; it returns a value, or a list of one per result. To
support a primitive, write its rule in the file of its kind.
"""

from __future__ import annotations

RULES: dict = {}


def rule(*primitives: str):
    """Decorator: registers a function as the rule of primitives."""
    def register(function):
        for name in primitives:
            if name in RULES:
                raise AssertionError(f"two rules for '{name}'")
            RULES[name] = function
        return function
    return register
