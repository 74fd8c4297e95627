# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules: operations of core ATen by those of Tessera. A rule takes the arguments of the operation."""

from __future__ import annotations

from .. import dtypes

RULES: dict = {}


def rule(*names):
    def register(function):
        for name in names:
            RULES[name] = function
        return function
    return register


def dtype_of(value):
    """A type of PyTorch as one of ours."""
    return dtypes.dtype(str(value).removeprefix("torch."))
