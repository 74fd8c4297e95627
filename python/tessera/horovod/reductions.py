# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions and the scaling of their operands and results."""

from __future__ import annotations

import numbers

import numpy as np

from ..errors import ArgumentError
from ..tensor import round_to_bfloat16


class ReduceOp:
    """A reduction. `name` is its name in Horovod, `kind` in tessera.distributed."""

    def __init__(self, name: str, kind: str):
        self.name, self.kind = name, kind

    def __repr__(self):
        return self.name


Average, Sum, Min, Max, Product = (ReduceOp(*each) for each in (
    ("Average", "avg"), ("Sum", "sum"), ("Min", "min"), ("Max", "max"), ("Product", "prod")))
Adasum = ReduceOp("Adasum", "")
KNOWN = {op.name: op for op in (Average, Sum, Min, Max, Product)}


def reduction(op: ReduceOp | str | None, average: bool | None = None) -> ReduceOp:
    """The reduction of a call: from `op`, or from the older argument `average`; default Average.

    Raises ArgumentError.
    """
    if average is not None:
        if op is not None:
            raise ArgumentError("both op and average are given; average is deprecated: give only op")
        return Average if average else Sum
    if op is None:
        return Average
    if op is Adasum or op == "Adasum":
        raise ArgumentError("op Adasum is not supported; use Average and scale the learning rate")
    found = op if isinstance(op, ReduceOp) else KNOWN.get(op) if isinstance(op, str) else None
    if found is None:
        raise ArgumentError(f"unknown op {op!r}; expected one of {', '.join(KNOWN)}")
    return found


def check_average(op: ReduceOp, dtype: str) -> None:
    """Raise ArgumentError for an average of integers."""
    if op is Average and "float" not in dtype:
        raise ArgumentError(f"op Average of {dtype}; only floats can be averaged: use Sum and divide the result")


def factor(name: str, value) -> float:
    """A scale factor as a float. Raises ArgumentError, naming the argument."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ArgumentError(f"{name} {value!r} is not a number")
    return float(value)


def scale(flat: np.ndarray, dtype: str, by: float) -> None:
    """Multiply an array, given as bytes, in place: 16-bit floats in float32, integers in float64 with truncation."""
    if by == 1.0:
        return
    if dtype == "bfloat16":
        bits = flat.view(np.uint16)
        bits[:] = round_to_bfloat16((bits.astype(np.uint32) << 16).view(np.float32) * np.float32(by))
        return
    values = flat.view(np.dtype(dtype))
    wide = np.float64 if values.dtype.kind in "iu" or values.dtype == np.float64 else np.float32
    values[:] = (values.astype(wide) * wide(by)).astype(values.dtype)
