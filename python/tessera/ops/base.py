# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared by the operations: recording, type promotion and broadcasting of operands, and argument checks."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence

import numpy as np

from .. import dtypes
from ..dtypes import DType
from ..eager import run_eagerly
from ..errors import ArgumentError, DTypeError, ShapeError
from ..ir import TensorType
from ..ir.core import Value
from ..ir.scalars import convert
from ..source import location, refuse
from ..strategy import shard
from ..tensor import Tensor, asarray
from ..trace import Trace, check_meshes, current


def op(function: Callable) -> Callable:
    """Decorator: makes `function(trace, ...)` an operation, recorded inside jit, compiled and run at once outside."""
    @functools.wraps(function)
    def call(*args, **kwargs):
        trace = current()
        if trace is None:
            return run_eagerly(function, args, kwargs)
        with trace.builder.at(location()):
            result = function(trace, *args, **kwargs)
        if isinstance(result, Tensor) and result.mesh is None and result._scope is not None:
            result._mesh = next((t.mesh for t in _tensors((args, kwargs.values())) if t.mesh is not None), None)
        return result
    signature = inspect.signature(function)
    call.shard = functools.partial(_sharded, call)
    call.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])
    return call


def _sharded(operation, in_strategy, out_strategy=None, **options):
    """The operation with a strategy: the number of parts of each dimension of each input (tessera.shard)."""
    return shard(operation, in_strategy, out_strategy, **options)


def _tensors(values):
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple, type({}.values()))):
            yield from _tensors(value)


def is_number(value) -> bool:
    """Whether it is a Python number, whose type adapts to that of the other operands."""
    return isinstance(value, (bool, int, float)) and not isinstance(value, np.generic)


def tensor_of(value, name: str) -> Tensor:
    """An operand of operation `name` as a Tensor. Raises DTypeError for unsupported types."""
    try:
        return asarray(value)
    except DTypeError as error:
        raise refuse(DTypeError, f"operand of '{name}': {str(error).split('error: ', 1)[-1]}") from None


def kind_of(number) -> DType:
    """The type of a Python number without other operands."""
    return dtypes.bool_ if isinstance(number, bool) else dtypes.int64 if isinstance(number, int) else dtypes.float32


def common_type(name: str, operands: Sequence) -> DType:
    """The promoted type of operands. Python numbers, and tensors made of them, adapt to the other operands."""
    strong = [o.dtype for o in operands if isinstance(o, Tensor) and not o._weak]
    weak = [o.dtype if isinstance(o, Tensor) else kind_of(o) for o in operands if not isinstance(o, Tensor) or o._weak]
    if not strong:
        order = {"bool": 0, "integer": 1, "float": 2}
        return max(weak, key=lambda d: order[d.kind])
    result = functools.reduce(functools.partial(dtypes.promote, name), strong)
    for d in weak:
        if d.kind == "float" and result.kind != "float":
            result = dtypes.float32
        elif d.kind == "integer" and result.kind == "bool":
            result = dtypes.int64
    return result


def broadcast_shapes(name: str, shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The broadcast shape of an elementwise operation. Raises ShapeError, naming the dimension."""
    rank = max((len(s) for s in shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for i, n in enumerate(shape):
            d = rank - len(shape) + i
            if n != 1 and result[d] not in (1, n):
                raise refuse(ShapeError, f"shapes {' and '.join(map(str, map(tuple, shapes)))} of '{name}' do not broadcast: "
                                         f"dimension {d - rank} is {result[d]} and {n}")
            result[d] = n if n != 1 else result[d]
    return tuple(result)


def cast(trace: Trace, value: Value, element: str) -> Value:
    """A tensor value converted to another element type."""
    if value.type.element == element:
        return value
    b = trace.builder
    return b.pointwise([value], value.type.shape, lambda x: convert(b, x, x.type, element))


def operand(trace: Trace, value, element: str | None = None) -> Value:
    """A tensor or number as an IR value, converted to `element` if given."""
    if isinstance(value, Tensor):
        value._used()
        read = trace.value(value)
        return cast(trace, read, element) if element else read
    return trace.builder.constant(value, TensorType((), element))


def elementwise(trace: Trace, name: str, operands: Sequence, body: Callable, dtype: DType | None = None) -> Tensor:
    """body(builder, *elements) over the broadcast operands, converted to a common type or to `dtype`."""
    operands = [o if is_number(o) else tensor_of(o, name) for o in operands]
    tensors = [o for o in operands if isinstance(o, Tensor)]
    check_meshes(name, tensors)
    common = dtype or common_type(name, operands)
    shape = broadcast_shapes(name, [o.shape for o in tensors])
    b = trace.builder
    values = []
    for o in operands:
        value = operand(trace, o, common.element)
        if value.type.rank and value.type.rank < len(shape):
            value = b.reshape(value, (1,) * (len(shape) - value.type.rank) + value.type.shape)
        values.append(value)
    weak = all(is_number(o) or o._weak for o in operands)
    return trace.tensor(b.pointwise(values, shape, lambda *xs: body(b, *xs)), weak=weak)


def need(name: str, tensor: Tensor, *kinds: str) -> None:
    """Raises DTypeError unless the tensor's type is of one of the kinds "float", "integer", "bool"."""
    if tensor.dtype.kind not in kinds:
        raise refuse(DTypeError, f"'{name}' takes {' or '.join(kinds)}, not {tensor.dtype}; convert with astype")


def listed(name: str, what: str, value, kind: type[Exception] = ArgumentError) -> list:
    """A list or tuple as a list. Raises `kind` for other values."""
    if not isinstance(value, (list, tuple, range)):
        raise refuse(kind, f"{what} {value!r} of '{name}' are not a list")
    return list(value)


def whole(name: str, what: str, value) -> int:
    """An integer. Raises ArgumentError for other values."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise refuse(ArgumentError, f"{what} {value!r} of '{name}' is not an integer")
    return int(value)


def axis_of(name: str, axis, rank: int) -> int:
    """An axis as a non-negative index. Raises ShapeError if it is not an integer or out of range."""
    if isinstance(axis, bool) or not isinstance(axis, (int, np.integer)):
        raise refuse(ShapeError, f"axis {axis!r} of '{name}' is not an integer")
    if not -rank <= axis < rank:
        raise refuse(ShapeError, f"axis {axis} of '{name}' is out of range: the tensor has rank {rank}")
    return int(axis) % rank


def axes_of(name: str, axis, rank: int) -> list[int]:
    """Sorted non-negative axes from None (all), an axis, or several.

    Raises ShapeError for duplicates and axes out of range.
    """
    if axis is None:
        return list(range(rank))
    axes = [axis_of(name, a, rank) for a in (axis if isinstance(axis, (tuple, list)) else [axis])]
    if len(set(axes)) != len(axes):
        raise refuse(ShapeError, f"axes {axis} of '{name}' name one axis twice")
    return sorted(axes)
