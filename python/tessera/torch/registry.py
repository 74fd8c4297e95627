# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The registry of rules: each implements operations of core ATen with those of Tessera, with ATen's arguments."""

from __future__ import annotations

import functools

from .. import dtypes
from ..tensor import Tensor

RULES: dict = {}

# What to write instead of operations whose results have a size or a value that the program must know.
INSTEAD = {
    "nonzero": "use torch.nonzero_static, or torch.where with three arguments",
    "masked_select": "use torch.where, or products with the mask",
    "index": "a bool index selects; use torch.where, or products with the mask",
    "bincount": "add ones to zeros of a known size with index_add",
    **dict.fromkeys(("_unique", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive"), "sort the elements"),
    "repeat_interleave": "pass output_size",
}


def rule(*names):
    """Decorator: registers a function as the rule of ATen operations."""
    def register(function):
        for name in names:
            RULES[name] = function
        return function
    return register


def python_name(function) -> str:
    """The name under which a function of Python, which acts on the numbers of a graph, has a rule."""
    return f"{function.__module__}.{function.__name__}"


def promoted(*operands):
    """Operands converted to PyTorch's common type.

    Floats win over integers and integers over bool; rank-0 tensors adapt to others of their kind; float16 and bfloat16
    give float32.
    """
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
    """A rule whose positional tensors are first converted to a common type."""
    return lambda *args, **kwargs: function(*promoted(*args), **kwargs)


def dtype_of(value):
    """A PyTorch dtype as a DType."""
    return dtypes.dtype(str(value).removeprefix("torch."))


class LazyResults:
    """A sequence of results, computed when they are read."""

    def __init__(self, *make):
        self._make, self._made = make, {}

    def __getitem__(self, i):
        if i not in self._made:
            self._made[i] = self._make[i]()
        return self._made[i]
