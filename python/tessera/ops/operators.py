# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators and methods of Tensor."""

from __future__ import annotations

from types import ModuleType

from ..tensor import Tensor
from .getitem import getitem


def attach(ops: ModuleType) -> None:
    """Adds Python's operators and NumPy's methods to Tensor, from the functions of `ops`."""
    for method, name in dict(add="add", sub="subtract", mul="multiply", truediv="divide", floordiv="floor_divide", mod="remainder",
                             pow="pow", matmul="matmul", and_="bitwise_and", or_="bitwise_or", xor="bitwise_xor").items():
        function, method = getattr(ops, name), method.rstrip("_")
        setattr(Tensor, f"__{method}__", lambda self, other, f=function: f(self, other))
        setattr(Tensor, f"__r{method}__", lambda self, other, f=function: f(other, self))
    for method, name in dict(lt="less", le="less_equal", gt="greater", ge="greater_equal", eq="equal", ne="not_equal").items():
        setattr(Tensor, f"__{method}__", lambda self, other, f=getattr(ops, name): f(self, other))
    Tensor.__neg__ = lambda self: ops.negative(self)
    Tensor.__pos__ = lambda self: self
    Tensor.__abs__ = lambda self: ops.abs(self)
    Tensor.__invert__ = lambda self: ops.logical_not(self) if self.dtype.kind == "bool" else ops.bitwise_xor(self, -1)
    Tensor.__array_namespace__ = lambda self, api_version=None: ops
    Tensor.__getitem__ = lambda self, key: getitem(self, key)
    for name in ("sum", "mean", "max", "min", "prod", "any", "all", "var", "std", "argmax", "argmin", "exp", "log", "sqrt", "tanh", "abs",
                 "astype", "flatten", "squeeze", "swapaxes", "clip", "square"):
        setattr(Tensor, name, getattr(ops, name))

    def of_extents(function):
        return lambda self, *extents: function(self, extents[0] if len(extents) == 1 and not isinstance(extents[0], int) else extents)
    Tensor.reshape, Tensor.broadcast_to = of_extents(ops.reshape), of_extents(ops.broadcast_to)
    Tensor.permute = of_extents(ops.permute_dims)
    Tensor.transpose = lambda self, *axes: Tensor.permute(self, *axes) if axes else ops.permute_dims(self, range(self.ndim)[::-1])
    Tensor.T = property(lambda self: ops.permute_dims(self, range(self.ndim)[::-1]))
    Tensor.mT = property(lambda self: ops.matrix_transpose(self))
    Tensor.reshard = lambda self, mesh, placements: ops.reshard(self, mesh, placements)
    Tensor.unshard = lambda self: ops.unshard(self)
