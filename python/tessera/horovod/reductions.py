# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How contributions are combined: the reductions and their scaling."""

from __future__ import annotations

import numbers

import numpy as np

from ..errors import ArgumentError
from ..tensor import round_to_bfloat16


class ReduceOp:
    """A reduction. `name` is Horovod's, `kind` that of tessera.distributed."""

    def __init__(self, name: str, kind: str):
        self.name, self.kind = name, kind

    def __repr__(self):
        return self.name


Average, Sum, Min, Max, Product = (ReduceOp(*each) for each in (
    ("Average", "avg"), ("Sum", "sum"), ("Min", "min"), ("Max", "max"), ("Product", "prod")))
Adasum = ReduceOp("Adasum", "")
KNOWN = {op.name: op for op in (Average, Sum, Min, Max, Product)}


def reduction(op: ReduceOp | str | None, average: bool | None = None) -> ReduceOp:
    """The reduction of a call: `op`, or by the older argument `average`, else Average."""
    if average is not None:
        if op is not None:
            raise ArgumentError("op and average are given; average is the older spelling of op, give op alone")
        return Average if average else Sum
    if op is None:
        return Average
    if op is Adasum or op == "Adasum":
        raise ArgumentError("op Adasum is not supported; use Average, and scale the learning rate by hand")
    found = op if isinstance(op, ReduceOp) else KNOWN.get(op) if isinstance(op, str) else None
    if found is None:
        raise ArgumentError(f"unknown op {op!r}; there are {', '.join(KNOWN)}")
    return found


def check_average(op: ReduceOp, dtype: str) -> None:
    if op is Average and "float" not in dtype:
        raise ArgumentError(f"op Average of {dtype}; averages are of floats: use Sum, and divide the result")


def factor(name: str, value) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ArgumentError(f"{name} {value!r} is not a number")
    return float(value)


def scale(flat: np.ndarray, dtype: str, by: float) -> None:
    """Multiplies bytes in place, as elements of a type; floats of 16 bits in float32, integers in float64, truncated."""
    if by == 1.0:
        return
    if dtype == "bfloat16":
        bits = flat.view(np.uint16)
        bits[:] = round_to_bfloat16((bits.astype(np.uint32) << 16).view(np.float32) * np.float32(by))
        return
    values = flat.view(np.dtype(dtype))
    wide = np.float64 if values.dtype.kind in "iu" or values.dtype == np.float64 else np.float32
    values[:] = (values.astype(wide) * wide(by)).astype(values.dtype)
