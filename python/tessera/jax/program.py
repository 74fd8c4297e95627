# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`from_jax`: a JAX function as a program for Tessera."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.interpreters import partial_eval

from .. import ir
from . import arguments as trees
from . import elements
from .errors import ImportFailure
from .importer import Importer, check_primitives
from .shardings import ShardingReader


def to_module(fn: Callable, args: Sequence[Any], in_shardings=None, out_shardings=None, *, mesh=None,
              feeds: str | Mapping[int, int] | None = "auto", ranges: Mapping[str, tuple[int, int]] | None = None,
              name: str = "main"):
    """Imports `fn(*args)`; arguments as of `from_jax`. Returns the module and the leaves of arguments and results."""
    args = tuple(jax.tree.map(_abstract, tuple(args)))
    inputs = trees.arguments(fn, args, in_shardings)
    try:
        closed, shape = jax.make_jaxpr(fn, return_shape=True)(*args)
    except jax.errors.UnexpectedTracerError as error:
        raise ImportFailure(f"the function uses a value of another trace (a leaked tracer): {str(error).splitlines()[0]}",
                          _function_location(fn)) from error
    if isinstance(feeds, str):
        feeds = trees.matching_feeds(args, shape)
    feeds = dict(feeds or {})
    outputs = trees.results(shape, out_shardings, feeds, inputs)
    jaxpr, _ = partial_eval.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars), instantiate=True)
    check_primitives(jaxpr)

    reader = ShardingReader(mesh)
    importer = Importer(reader)
    where = _function_location(fn)

    def port(leaf, role, **more):
        what = f"{role} '{leaf.name}'"
        type = importer.type(leaf.aval, what, where)
        attributes = {"name": f'"{leaf.name}"', **more}
        sharding = reader.convert(leaf.sharding, type.rank, what, where)
        if sharding is not None:
            attributes["sharding"] = sharding
        return ir.Port(type, attributes, where)

    arguments = []
    for leaf in inputs:
        more = {"range": f"[{ranges[leaf.name][0]}, {ranges[leaf.name][1]}]"} if ranges and leaf.name in ranges else {}
        arguments.append(port(leaf, "argument", **more))
    with importer.b.function(name, arguments) as function:
        for value, leaf in zip(function.body.arguments, inputs):
            value.hint = leaf.name
        closed = jax.extend.core.ClosedJaxpr(jaxpr, closed.consts)
        with importer.b.at(where):
            values = importer.inline(closed, function.body.arguments)
            ports = [port(leaf, "result", **({"feeds": str(feeds[i])} if i in feeds else {})) for i, leaf in enumerate(outputs)]
            importer.b.ret(function, values, ports)
    ir.simplify(function)
    if reader.mesh is not None:
        importer.b.module.meshes[reader.mesh.name] = reader.mesh.definition
        for p in (*function.arguments, *function.results):
            p.attributes = {k: str(v) for k, v in p.attributes.items()}
    return importer.b.module, inputs, outputs, shape


def _abstract(value):
    """An argument as its shape and type."""
    if isinstance(value, jax.ShapeDtypeStruct):
        return value
    array = value if hasattr(value, "dtype") and hasattr(value, "shape") else np.asarray(value)
    if isinstance(array, np.ndarray) and array.dtype == object:
        raise ImportFailure(f"an argument is a {type(value).__name__}; arguments are arrays, numbers or trees of them")
    return jax.ShapeDtypeStruct(array.shape, jax.dtypes.canonicalize_dtype(array.dtype) if not isinstance(array, jax.Array) else array.dtype)


def _function_location(fn) -> ir.Location | None:
    code = getattr(getattr(fn, "__wrapped__", fn), "__code__", None)
    return ir.Location(code.co_filename, code.co_firstlineno) if code else None
