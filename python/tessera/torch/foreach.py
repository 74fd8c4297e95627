# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's operations on lists of tensors (`_foreach_add` and its like), one operation for each tensor."""

from __future__ import annotations

import functools

import torch

_OF_ONE = {"norm": lambda x, ord=2, dtype=None: torch.linalg.vector_norm(x, ord, dtype=dtype), "max": torch.amax}


@functools.cache
def of_lists() -> dict:
    """Decompositions of these operations, as torch.export takes them. Those in place have become functional before."""
    table = {}
    for name in dir(torch.ops.aten):
        base = name.removeprefix("_foreach_")
        one = _OF_ONE.get(base, getattr(torch, base, None))
        if base == name or name.endswith("_") or one is None:
            continue
        packet = getattr(torch.ops.aten, name)
        for overload in map(functools.partial(getattr, packet), packet.overloads()):
            if not overload._schema.is_mutable and not any("out" == argument.name for argument in overload._schema.arguments):
                table[overload] = functools.partial(_each, one)
    return table


def _each(one, *operands, **options):
    lists = [each for each in operands if isinstance(each, (list, tuple))]
    if one in (torch.addcdiv, torch.addcmul) and len(operands) == 4:  # their factor has a keyword
        *operands, options["value"] = operands
    return [one(*(each[i] if isinstance(each, (list, tuple)) else each for each in operands),
                **{name: value[i] if isinstance(value, (list, tuple)) else value for name, value in options.items()}) for i in range(len(lists[0]))]
