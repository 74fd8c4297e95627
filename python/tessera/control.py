# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops, rematerialization and custom derivatives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from . import ir, ops, tree
from .compiled import jit
from .errors import ArgumentError, ShapeError
from .ir import Port
from .ir.core import Block
from .source import location, refuse
from .tensor import Tensor, asarray
from .trace import Trace, current


def _traced(function):
    """Decorator: outside jit, the call is compiled and run as a program of its own."""
    @functools.wraps(function)
    def call(*args, **kwargs):
        if current() is not None:
            with current().builder.at(location()):
                return function(*args, **kwargs)
        return jit(call, feeds=False)(*args, **kwargs)
    return call


def _name(function) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _carried(name, carry, new):
    """The leaves of a loop's new carry. Raises ShapeError if its structure, shapes or types changed."""
    (before, node), (after, other) = tree.flatten(carry), tree.flatten(new)
    if node != other:
        raise refuse(ShapeError, f"'{name}' carries {len(before)} tensors and returns {len(after)}, or another "
                                 "structure; both must be the same")
    for a, b in zip(before, after):
        x, y = asarray(a.value), asarray(b.value)
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            raise refuse(ShapeError, f"'{name}' carries '{a.path or 'the tensor'}' of {x.dtype} {x.shape} and returns {y.dtype} {y.shape}; "
                                     "both must be the same")
    return [asarray(leaf.value) for leaf in after]


def _loop(name: str, count: int, carry, body: Callable):
    """`carry = body(index value, carry)`, `count` times, as scf.for; returns the last carry."""
    trace = current()
    b = trace.builder
    leaves, _ = tree.flatten(carry)
    start = [asarray(leaf.value) for leaf in leaves]
    inits = [trace.value(t) for t in start]
    bounds = [b.constant(n, "index") for n in (0, count, 1)]
    block = Block(["index", *[v.type for v in inits]])
    with trace.region(block, f"the loop '{name}'"):
        index, *values = block.arguments
        inside = [trace.tensor(v, t.sharding) for v, t in zip(values, start)]
        for tensor, outside in zip(inside, start):
            tensor._mesh = outside.mesh
        results = _carried(name, carry, body(index, tree.rebuild(carry, inside)))
        b.op("scf.yield", [trace.value(t) for t in results], [])
    made = b.op("scf.for", [*bounds, *inits], [v.type for v in inits], regions=[block])
    out = [trace.tensor(v) for v in made.results]
    for tensor, outside in zip(out, start):
        tensor._mesh = outside.mesh
    return tree.rebuild(carry, out)


def _count(count) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise refuse(ArgumentError, f"a loop runs {count!r} times; give a non-negative integer")
    return count


@_traced
def fori_loop(count: int, body: Callable, carry):
    """`carry = body(i, carry)` for i in 0, ..., count - 1, as one loop of the program; returns the last carry.

    i is an int64 tensor.

    Raises ShapeError if the body changes the structure, a shape or a type of the carry.
    """
    b = current().builder

    def step(index, carry):
        number = b.op("tensor.from_elements", [b.cast("arith.index_cast", index, "i64")], [ir.TensorType((), "i64")]).result
        return body(current().tensor(number), carry)
    return _loop(_name(body), _count(count), carry, step) if _count(count) else carry


@_traced
def scan(body: Callable, carry, xs):
    """`carry, y = body(carry, x)` for the slices x of the tree `xs` along its first axes.

    Returns (last carry, all y stacked along a new first axis). Raises ShapeError if the first axes differ in length or
    have length 0, or if the body changes the structure, a shape or a type of the carry.
    """
    leaves, _ = tree.flatten(xs)
    tensors = [asarray(leaf.value) for leaf in leaves]
    lengths = {t.shape[0] if t.ndim else None for t in tensors}
    if len(lengths) != 1 or None in lengths or 0 in lengths:
        raise refuse(ShapeError, f"'scan' takes first axes of one non-zero length, got {sorted(map(str, lengths))}")
    (count,), trace, b = lengths, current(), current().builder
    outside = [trace.value(t) for t in tensors]

    def slices(index):
        made = []
        for tensor, value in zip(tensors, outside):
            part = b.slice(value, [index, *[0] * (tensor.ndim - 1)], (1, *tensor.shape[1:]))
            made.append(trace.tensor(b.reshape(part, tensor.shape[1:])))
            made[-1]._mesh = tensor.mesh
        return tree.rebuild(xs, made)
    # Record the body once in a discarded block, to find the shapes of y.
    trial = Block(["index"])
    with trace.region(trial, "a trial"):
        pair = body(carry, slices(trial.arguments[0]))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise refuse(ArgumentError, f"'{_name(body)}' of scan must return a pair (carry, y), not {type(pair).__name__}")
        _, y = pair
        shapes = [(asarray(leaf.value).shape, asarray(leaf.value).dtype, asarray(leaf.value).mesh) for leaf in tree.flatten(y)[0]]
    stacks = []
    for shape, dtype, _ in shapes:
        stacks.append(ops.zeros((count, *shape), dtype))

    def step(index, state):
        carry, stacks = state
        carry, y = body(carry, slices(index))
        filled = []
        for stack, leaf in zip(stacks, tree.flatten(y)[0]):
            value = trace.value(asarray(leaf.value))
            part = b.reshape(value, (1, *value.type.shape))
            filled.append(trace.tensor(b.update(trace.value(stack), part, [index, *[0] * (part.type.rank - 1)])))
        return carry, filled
    carry, stacks = _loop(_name(body), count, (carry, stacks), step)
    return carry, tree.rebuild(y, stacks)


def checkpoint(function: Callable) -> Callable:
    """`function` with rematerialization: its derivative keeps only the arguments and recomputes the rest."""
    @functools.wraps(function)
    @_traced
    def recomputed(*args, **kwargs):
        trace, block = current(), Block()
        with trace.region(block, f"'{_name(function)}'"):
            result = function(*args, **kwargs)
            inside = [asarray(leaf.value) for leaf in tree.flatten(result)[0]]
            values = [trace.value(t) for t in inside]
            trace.builder.op("dist.yield", values, [])
        made = trace.builder.op("dist.checkpoint", [], [v.type for v in values], regions=[block])
        out = [trace.tensor(v) for v in made.results]
        for tensor, of in zip(out, inside):
            tensor._mesh = of.mesh
        return tree.rebuild(result, out)
    return recomputed


def custom_gradient(function: Callable, backward: Callable) -> Callable:
    """`function` (tensors to a tensor, or a tuple of them) with its derivative given by `backward`.

    backward(arguments, results, cotangents) returns a tuple of one cotangent per floating-point argument. Raises
    ArgumentError for a wrong number of cotangents, ShapeError for a wrong shape or type.
    """
    @functools.wraps(function)
    @_traced
    def call(*args):
        trace, tensors = current(), [asarray(a) for a in args]
        trace.derivatives += 1
        name = f"custom_{trace.derivatives}"
        forward, returned = _function(trace, name, function, tensors)
        several = isinstance(returned, tuple)
        results = [asarray(r) for r in (returned if several else (returned,))]
        floats = [t for t in tensors if t.dtype.kind == "float"]

        def back(*values):
            first, second = values[:len(tensors)], values[len(tensors):]
            given = backward(first, second[:len(results)], second[len(results):])
            given = [asarray(g) for g in (given if isinstance(given, (tuple, list)) else (given,))]
            if len(given) != len(floats):
                raise refuse(ArgumentError, f"backward of '{_name(function)}' returns {len(given)} cotangents for {len(floats)} arguments of floats")
            for g, t in zip(given, floats):
                if (g.shape, g.dtype) != (t.shape, t.dtype):
                    raise refuse(ShapeError, f"backward of '{_name(function)}' returns a cotangent of {g.dtype} {g.shape} "
                                             f"for an argument of {t.dtype} {t.shape}")
            return tuple(given)
        _function(trace, f"{name}_vjp", back, [*tensors, *results, *[r for r in results if r.dtype.kind == "float"]])
        made = trace.builder.op("func.call", [trace.value(t) for t in tensors], [p.type for p in forward.results],
                                {"callee": name, "vjp": f"{name}_vjp"})
        out = [trace.tensor(v) for v in made.results]
        mesh = next((t.mesh for t in tensors if t.mesh is not None), None)
        for tensor in out:
            tensor._mesh = mesh
        return tuple(out) if several else out[0]
    return call


def _function(trace: Trace, name: str, function: Callable, like: Sequence[Tensor]):
    """Records a private function of the module. It captures nothing: all inputs are arguments."""
    with trace.function(f"'{_name(function)}'") as frame:
        arguments = []
        for t in like:
            arguments.append(trace.tensor(frame.argument(ir.TensorType(t.shape, t.dtype.element)), t.sharding))
            arguments[-1]._mesh = t.mesh
        returned = function(*arguments)
        values = [trace.value(asarray(r)) for r in (returned if isinstance(returned, tuple) else (returned,))]
        if frame.captured:
            raise refuse(ArgumentError, f"'{_name(function)}' has a custom derivative and captures a tensor; pass it as an argument")
        trace.builder.op("func.return", values, [])
    made = ir.Function(name, [])
    made.body, made.private = frame.block, True
    made.arguments, made.results = [Port(v.type) for v in frame.block.arguments], [Port(v.type) for v in values]
    trace.builder.module.functions.append(made)
    return made, returned
