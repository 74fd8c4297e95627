# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers that a module makes of tensors (`item()`): they stay tensors of rank 0, without a derivative, of 64 bits as Python's.

PyTorch's export knows them as symbols, on which Python's operators act. A number that decides a size is refused by the
operation whose result has it (`importer.check_operations`).
"""

from __future__ import annotations

import math
import operator

import torch

from .. import ops
from ..tensor import Tensor
from .registry import RULES, promoted, python_name, rule

_LIKE = {
    operator.add: "add.Tensor", operator.sub: "sub.Tensor", operator.mul: "mul.Tensor", operator.truediv: "div.Tensor", operator.mod: "remainder.Tensor",
    operator.floordiv: "floor_divide.default", operator.pow: "pow.Tensor_Tensor", operator.le: "le.Tensor", operator.lt: "lt.Tensor",
    operator.ge: "ge.Tensor", operator.gt: "gt.Tensor", operator.eq: "eq.Tensor", operator.ne: "ne.Tensor", operator.and_: "bitwise_and.Tensor",
    operator.or_: "bitwise_or.Tensor", operator.neg: "neg.default", operator.abs: "abs.default", torch.sym_max: "maximum.default",
    torch.sym_min: "minimum.default", torch.sym_not: "logical_not.default"}


def _number(value):
    """A number as a tensor of rank 0 and 64 bits."""
    if isinstance(value, Tensor):
        return value
    return ops.full((), value, {bool: "bool", int: "int64"}.get(type(value), "float64"))


def _of_tensors(name):
    return lambda *numbers: RULES[name](*map(_number, numbers))


for _function, _name in _LIKE.items():
    RULES[python_name(_function)] = _of_tensors(_name)


_NUMBERS = {"float": "float64", "integer": "int64", "bool": "bool"}


@rule("_local_scalar_dense.default")
def _(x):
    return ops.stop_gradient(ops.reshape(x, ())).astype(_NUMBERS[x.dtype.kind])


@rule(python_name(torch.sym_ite))
def _(condition, x, y):
    return ops.where(condition, *promoted(_number(x), _number(y)))


@rule(python_name(round))
def _(x, digits=None):
    rounded = RULES["round.decimals"](x, digits or 0)
    return rounded if digits is not None or x.dtype.kind != "float" else rounded.astype("int64")


@rule(python_name(torch.sym_float))
def _(x):
    return x.astype("float64") if x.dtype.kind != "float" else x


@rule(python_name(torch.sym_int), python_name(math.trunc))
def _(x):
    return ops.trunc(x).astype("int64") if x.dtype.kind == "float" else x.astype("int64")


@rule(python_name(math.floor))
def _(x):
    return ops.floor(x).astype("int64") if x.dtype.kind == "float" else x


@rule(python_name(math.ceil))
def _(x):
    return ops.ceil(x).astype("int64") if x.dtype.kind == "float" else x
