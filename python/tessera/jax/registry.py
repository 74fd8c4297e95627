# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How primitives are imported: a function each, found by name.

A rule gets the importer, the equation, and a value for each operand; it returns a value, or a list of one for each
result. To support another primitive, write its rule in the file of its kind; nothing else is to be registered.
"""

from __future__ import annotations

RULES: dict = {}


def rule(*primitives: str):
    def register(function):
        for name in primitives:
            if name in RULES:
                raise AssertionError(f"two rules for '{name}'")
            RULES[name] = function
        return function
    return register
