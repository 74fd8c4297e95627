# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules: operations of core ATen by those of Tessera. A rule takes the arguments of the operation."""

from __future__ import annotations

import functools

from .. import dtypes
from ..tensor import Tensor

RULES: dict = {}


def rule(*names):
    def register(function):
        for name in names:
            RULES[name] = function
        return function
    return register


def promoted(*operands):
    """Operands in PyTorch's common type: floats win over integers, integers over bool, and tensors of rank 0 follow others of their
    kind; float16 with bfloat16 makes float32."""
    kinds = {"bool": 0, "integer": 1, "float": 2}
    tensors = [o for o in operands if isinstance(o, Tensor)]
    if not tensors:
        return operands
    highest = max(kinds[t.dtype.kind] for t in tensors)
    deciding = [t.dtype for t in tensors if kinds[t.dtype.kind] == highest]
    ranked = [t.dtype for t in tensors if kinds[t.dtype.kind] == highest and t.ndim]
    common = functools.reduce(_wider, ranked or deciding)
    return [o.astype(common) if isinstance(o, Tensor) and o.dtype is not common else o for o in operands]


def _wider(a, b):
    if {a, b} == {dtypes.float16, dtypes.bfloat16}:
        return dtypes.float32
    return dtypes.promote("operands", a, b)


def promoting(function):
    """A rule whose positional tensors are brought to a common type first."""
    return lambda *args, **kwargs: function(*promoted(*args), **kwargs)


def dtype_of(value):
    """A type of PyTorch as one of ours."""
    return dtypes.dtype(str(value).removeprefix("torch."))
