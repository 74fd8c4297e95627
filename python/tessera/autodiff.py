# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives: a function is recorded as a function of the module, which the pass dist-autodiff differentiates."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from . import ir, tree
from .arguments import Arguments
from .compiled import Jitted
from .errors import ArgumentError, DTypeError, ShapeError
from .ir import Port, TensorType
from .sharding import Open, Sharding
from .source import refuse
from .tensor import Tensor, asarray
from .trace import Trace, current, operations


def value_and_grad(function: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable:
    """A function that returns (value, gradients) of `function`, whose result must be a floating-point scalar.

    argnums: the positional arguments to differentiate with respect to, an index or a sequence of them (gradients are
    then a tuple). A gradient has the tree structure of its argument, with None for integers and for buffers of modules.
    has_aux: `function` returns (scalar, aux), and value is that pair. Buffers that the function changes are updated in
    the caller's modules.

    Raises ShapeError or DTypeError if the result is not a floating-point scalar, ArgumentError if no argument can be
    differentiated.
    """
    if not callable(function):
        raise refuse(ArgumentError, f"value_and_grad takes a function, not {function!r}")
    numbers = [argnums] if isinstance(argnums, (int, str)) or not hasattr(argnums, "__iter__") else list(argnums)

    @functools.wraps(function)
    def differentiated(*args, **kwargs):
        if current() is None:
            made = differentiated.__dict__.setdefault("_jitted", Jitted(differentiated, feeds=False))
            return made(*args, **kwargs)
        return _record(current(), function, args, kwargs, numbers, isinstance(argnums, int), has_aux)
    return differentiated


def grad(function: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable:
    """As value_and_grad, returning the gradients alone, or (gradients, aux) with has_aux."""
    both = value_and_grad(function, argnums, has_aux)

    @functools.wraps(function)
    def differentiated(*args, **kwargs):
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients
    return differentiated


def _record(trace: Trace, function, args, kwargs, numbers, single, has_aux):
    for n in numbers:
        if not isinstance(n, int) or not 0 <= n < len(args):
            raise refuse(ArgumentError, f"argnums {n!r} is out of range: '{_name(function)}' is called with "
                                        f"{len(args)} positional arguments")
    arguments = Arguments(function, args, kwargs, tree.is_array)
    tensors = [asarray(leaf.value) for leaf in arguments.leaves]
    wrt = [i for n in numbers for i in arguments.parts[n][1] if arguments.leaves[i].trainable and tensors[i].dtype.kind == "float"]
    if not wrt:
        raise refuse(ArgumentError, f"'{_name(function)}' has no floating-point tensor in the arguments to "
                                    f"differentiate with respect to ({numbers})")
    trace.derivatives += 1
    name = f"{_symbol(function)}_{trace.derivatives}"
    with trace.function(f"'{_name(function)}'") as frame:
        inner = list(tensors)
        for i in wrt:
            value = frame.argument(TensorType(tensors[i].shape, tensors[i].dtype.element), arguments.leaves[i].path)
            inner[i] = trace.tensor(value, tensors[i].sharding)
            inner[i]._mesh = tensors[i].mesh
        copies, keywords = arguments.rebuilt(inner)
        result = function(*copies, **keywords)
        value, aux = _result(function, result, has_aux)
        final = arguments.leaves_of(copies, keywords)
        changed = [i for i, (before, after) in enumerate(zip(inner, final)) if after is not before]
        aux_leaves, _ = tree.flatten(aux)
        outputs = [value, *[asarray(leaf.value) for leaf in aux_leaves], *[asarray(final[i]) for i in changed]]
        values = [trace.value(t) for t in outputs]
        trace.builder.op("func.return", values, [])
    made = ir.Function(name, [])
    made.body, made.private = frame.block, True
    outside = [*[tensors[i] for i in wrt], *frame.captured]
    made.arguments = [_port(trace, v, t) for v, t in zip(frame.block.arguments, outside)]
    made.results = [Port(v.type) for v in values]
    declared = ir.Function(f"{name}_grad", [])
    declared.body, declared.private = None, True
    declared.arguments = list(made.arguments)
    declared.results = [*made.results, *[Port(frame.block.arguments[k].type) for k in range(len(wrt))]]
    trace.builder.module.functions += [made, declared]
    trace.passes.append(f"dist-autodiff{{function={name} wrt={','.join(map(str, range(len(wrt))))} of=0}}")

    operands = [trace.value(t) for t in outside]
    called = trace.builder.op("func.call", operands, [port.type for port in declared.results],
                              {"callee": declared.name, "micro_batch": trace.micro_batch})
    out = [trace.tensor(v) for v in called.results]
    for tensor, inside in zip(out, [*outputs, *outside]):
        tensor._mesh = inside.mesh
    used = {value for operation in operations(frame.block) for value in operation.operands}
    gradients: list[Tensor | None] = [None] * len(tensors)
    cotangents = dict(zip(wrt, out[len(outputs):]))
    for n in numbers:
        wrapper, own = next(_wrappers(args[n]), None), [i for i in arguments.parts[n][1] if i in cotangents]
        if wrapper is not None:
            out[0] = wrapper.value_of(trace, out[0])
            wrapper.check_used([arguments.leaves[i].path for i in own if frame.block.arguments[wrt.index(i)] not in used])
        for i in own:
            gradients[i] = cotangents[i] if wrapper is None else wrapper.gradient_of(trace, cotangents[i])
            gradients[i]._gradient = True
    aux = tree.rebuild(aux, out[1:1 + len(aux_leaves)])
    arguments.assign(dict(zip(changed, out[1 + len(aux_leaves):len(outputs)])))
    trees = [_gradient(args[n], [gradients[i] for i in arguments.parts[n][1]]) for n in numbers]
    return (out[0], aux) if has_aux else out[0], trees[0] if single else tuple(trees)


def _wrappers(value):
    """Data-parallel modules inside `value`, which decide how gradients are reduced."""
    if hasattr(type(value), "gradient_of"):
        yield value
    elif not tree.is_array(value):
        for _, child in (tree.children(value) or (None, None, (), ()))[2]:
            yield from _wrappers(child)


def _port(trace, value, tensor) -> Port:
    """A port of the function; with several meshes it names the tensor's mesh, so that its cotangent is placed there."""
    if tensor.mesh is None or len(trace.meshes) < 2:
        return Port(value.type)
    return Port(value.type, {"sharding": trace.text(Sharding(tensor.mesh, (Open(),) * len(tensor.mesh.shape)))})


def _gradient(value, leaves):
    return leaves[0] if tree.is_array(value) else tree.rebuild(value, leaves)


def _result(function, result, has_aux):
    aux = ()
    if has_aux:
        if not isinstance(result, tuple) or len(result) != 2:
            raise refuse(ArgumentError, f"with has_aux '{_name(function)}' must return a pair (scalar, aux)")
        result, aux = result
    if not tree.is_array(result):
        raise refuse(ArgumentError, f"'{_name(function)}' returns {type(result).__name__}; only scalar tensors are differentiated")
    value = asarray(result)
    if value.shape != ():
        raise refuse(ShapeError, f"'{_name(function)}' returns shape {value.shape}; only scalars are differentiated: take the sum or the mean")
    if value.dtype.kind != "float":
        raise refuse(DTypeError, f"'{_name(function)}' returns {value.dtype}; only floats are differentiated")
    return value, aux


def _name(function) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _symbol(function) -> str:
    name = "".join(c if c.isalnum() or c == "_" else "_" for c in _name(function))
    return name if name and not name[0].isdigit() else f"f{name}"
