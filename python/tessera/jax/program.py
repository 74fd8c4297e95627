# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`from_jax`: a JAX function as a Tessera program."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.interpreters import partial_eval

from .. import ir
from ..program import Program
from ..sharding import quoted
from ..source import did_you_mean, entry, of_library, warn
from . import arguments as trees
from .associative import recognised
from .checkpoints import merged_checkpoints
from .complexes import is_complex, part_of, without_complex
from .errors import ImportFailure
from .expansion import expanded
from .importer import Importer, check_primitives, is_key
from .manual import without_shard_maps
from .shardings import ShardingReader


@entry
def to_module(fn: Callable, args: Sequence[Any], in_shardings=None, out_shardings=None, *, mesh=None,
              feeds: str | Mapping[int, int] | None = "auto", ranges: Mapping[str, tuple[int, int]] | None = None,
              name: str = "main"):
    """Imports `fn(*args)`, with the arguments of `from_jax`; name: the function's symbol.

    Returns (module, leaves of arguments, leaves of results, shape tree of results).
    """
    args = tuple(jax.tree.map(_abstract, tuple(args)))
    inputs = trees.arguments(fn, args, in_shardings)
    uncached = functools.wraps(fn)(lambda *values: fn(*values))  # a new function, because JAX caches traces by function
    with of_library("jax"), recognised():
        closed, shape = jax.make_jaxpr(uncached, return_shape=True)(*args)
    if isinstance(feeds, str):
        feeds = trees.matching_feeds(args, shape)
    feeds = trees.checked_feeds(dict(feeds or {}), len(jax.tree.leaves(shape)), len(inputs))
    outputs = trees.results(shape, out_shardings, feeds, inputs)
    where = _function_location(fn)
    with of_library("jax"):
        closed = without_complex(expanded(without_shard_maps(closed), where))
    inputs, at = _real_leaves(inputs)
    outputs, to = _real_leaves(outputs)
    feeds = {out: into for i, k in feeds.items() for out, into in zip(to[i], at[k])}
    jaxpr, _ = partial_eval.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars), instantiate=True)
    check_primitives(jaxpr)

    reader = ShardingReader(mesh)
    importer = Importer(reader)

    def port(leaf, role, **more):
        what = f"{role} '{leaf.name}'"
        type = importer.type(leaf.aval, what, where)
        attributes = {"name": quoted(leaf.name), **more}
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
    _warn_of_checkpoints(merged_checkpoints(jaxpr), where)
    if reader.mesh is not None:
        importer.b.module.meshes[reader.mesh.name] = reader.mesh.definition
        for p in (*function.arguments, *function.results):
            p.attributes = {k: str(v) for k, v in p.attributes.items()}
    return importer.b.module, inputs, outputs, shape


def _real_leaves(leaves):
    """Leaves with two, of the real and the imaginary part, for each complex one, and the places of each leaf among them."""
    real, places = [], []
    for leaf in leaves:
        parts = [dataclasses.replace(leaf, name=f"{leaf.name}.{part}", aval=part_of(leaf.aval)) for part in ("real", "imag")] \
            if is_complex(leaf.aval) else [leaf]
        places.append(range(len(real), len(real) + len(parts)))
        real += parts
    return real, places


def _parameters(fn) -> list[str]:
    """The names of the arguments that a function takes by position; empty if they are not known."""
    try:
        return [p.name for p in inspect.signature(fn).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    except (TypeError, ValueError):
        return []


class JaxProgram(Program):
    """A program imported from JAX; arguments and results have the tree structure of the function's.

    The program itself takes and returns complex arrays as two real ones each.
    """

    def __init__(self, fn, args, in_shardings, out_shardings, **options):
        module, self.inputs, self.outputs, shape = to_module(fn, args, in_shardings, out_shardings, **options)
        self._in_tree, self._out_tree = jax.tree.structure(tuple(args)), jax.tree.structure(shape)
        self._in_types, self._out_types = ([leaf.dtype for leaf in jax.tree.leaves(tree)]
                                           for tree in (jax.tree.map(_abstract, tuple(args)), shape))
        self._words = [functools.partial(_words, dtype=leaf.aval.dtype) if is_key(leaf.aval.dtype) or not leaf.aval.shape else None
                       for leaf in self.inputs]
        self._names = _parameters(fn)
        super().__init__(str(module), getattr(fn, "__name__", "program"), verify=False)

    def _in_order(self, args, kwargs) -> tuple:
        """All arguments by position."""
        wanted, names = len(self._in_tree.children()), self._names
        for name in kwargs:
            if name not in names[:wanted]:
                raise ImportFailure(f"'{self.name}' has no argument '{name}'{did_you_mean(name, names[:wanted])}" if names else
                                    f"'{self.name}' takes arguments by position, not '{name}'")
            if name in names[:len(args)]:
                raise ImportFailure(f"'{self.name}' is given the argument '{name}' by position and by name")
        missing = [name for name in names[len(args):wanted] if name not in kwargs]
        if missing:
            raise ImportFailure(f"'{self.name}' is called without the argument '{missing[0]}'")
        return (*args, *[kwargs[name] for name in names[len(args):wanted]])

    @entry
    def __call__(self, *args, **kwargs):
        """Runs one step on virtual devices; returns global NumPy arrays in the tree of the function's results.

        Arguments may be named as the function names them. Raises ImportFailure for arguments of another structure.
        """
        args = self._in_order(args, kwargs) if kwargs else args
        leaves, tree = jax.tree.flatten(args)
        if tree != self._in_tree:
            wanted, given = len(self._in_tree.children()), len(args)
            if given != wanted:
                raise ImportFailure(f"'{self.name}' takes {wanted} argument{'s'[:wanted != 1]}, got {given}")
            number, has, needs = next((i, a, b) for i, (a, b) in enumerate(zip(tree.children(), self._in_tree.children())) if a != b)
            raise ImportFailure(f"argument {number} of '{self.name}' has the structure {_structure(has)}; the program was imported for "
                                f"{_structure(needs)}")
        given = [part for value, dtype in zip(leaves, self._in_types) for part in _parts(value, dtype)]
        results = self._run([words(v) if words else v for v, words in zip(given, self._words)])
        found = iter([_typed(r, leaf.aval.dtype) for r, leaf in zip(results, self.outputs)])
        return jax.tree.unflatten(self._out_tree, [_joined(found, dtype) for dtype in self._out_types])


def _parts(value, dtype):
    """An argument as the one or two arrays that the program takes."""
    if not jax.numpy.issubdtype(dtype, np.complexfloating):
        return [value]
    array = np.asarray(value, dtype)
    return [np.ascontiguousarray(array.real), np.ascontiguousarray(array.imag)]


def _joined(arrays, dtype):
    """A result of the function from the next one or two of the program."""
    first = next(arrays)
    if not jax.numpy.issubdtype(dtype, np.complexfloating):
        return first
    joined = np.empty(first.shape, dtype)
    joined.real, joined.imag = first, next(arrays)
    return joined


def _structure(tree) -> str:
    return str(tree).removeprefix("PyTreeDef(").removesuffix(")")


def _words(value, dtype):
    """An argument as the program takes it: numbers are converted to its type, random keys to their words."""
    if is_key(dtype):
        return np.asarray(jax.random.key_data(value))
    return np.asarray(value, dtype=dtype)


def _typed(array, dtype):
    """A result in the function's dtype: signed words become unsigned integers or keys."""
    if array.dtype == dtype:
        return array
    return jax.random.wrap_key_data(array.view(np.uint32), impl=dtype._impl.name) if is_key(dtype) else array.view(dtype)


@entry
def from_jax(fn: Callable, args: Sequence[Any], in_shardings=None, out_shardings=None, *, mesh=None,
             feeds: str | Mapping[int, int] | None = "auto", ranges: Mapping[str, tuple[int, int]] | None = None) -> JaxProgram:
    """Imports `fn(*args)` as a Program.

    args: a tuple of arrays, jax.ShapeDtypeStructs, or trees of them.
    in_shardings, out_shardings: tree prefixes of NamedSharding, PartitionSpec (on `mesh`) or None (left to the
        compiler); extents need not be divisible.
    mesh: a JAX mesh or ProcessMesh, the devices of the program. Without shardings all values are replicated on it,
        unless a search (`explain(search=...)`) shards them.
    feeds: results that become arguments of the next step, as leaf index -> leaf index; "auto": a tree of results feeds
        the argument of equal structure and types; None: none.
    ranges: name -> (lo, hi), the range [lo, hi) of random values of an integer argument.

    Raises tessera.jax.ImportFailure at the user's line for unsupported primitives, types and shardings; JAX's own
    errors are raised unchanged.
    """
    if not isinstance(args, (tuple, list)):
        raise ImportFailure(f"args of from_jax is a {type(args).__name__}, not a tuple of arguments; write (x,)")
    return JaxProgram(fn, args, in_shardings, out_shardings, mesh=mesh, feeds=feeds, ranges=ranges)


def _abstract(value):
    """An argument as a jax.ShapeDtypeStruct."""
    if is_key(getattr(value, "dtype", None)):
        return jax.ShapeDtypeStruct(value.shape, value.dtype)
    if isinstance(value, jax.ShapeDtypeStruct):  # JAX traces 64 bits as 32 unless jax_enable_x64 is set
        return value.update(dtype=jax.dtypes.canonicalize_dtype(value.dtype))
    array = value if hasattr(value, "dtype") and hasattr(value, "shape") else np.asarray(value)
    if isinstance(array, np.ndarray) and array.dtype == object:
        raise ImportFailure(f"an argument is a {type(value).__name__}; expected arrays, numbers or trees of them")
    return jax.ShapeDtypeStruct(array.shape, jax.dtypes.canonicalize_dtype(array.dtype) if not isinstance(array, jax.Array) else array.dtype)


def _warn_of_checkpoints(places, where):
    """Issues one warning for all uses of jax.checkpoint whose derivatives keep their intermediate values."""
    if places:
        first, *others = dict.fromkeys(place or where for place in places)
        more = "".join(f"; also at {place.file}:{place.line}" for place in others if place)
        warn(f"jax.checkpoint is not honored: derivatives keep intermediate values in place of recomputing them{more}", first)


def _function_location(fn) -> ir.Location | None:
    code = getattr(getattr(fn, "__wrapped__", fn), "__code__", None)
    return ir.Location(code.co_filename, code.co_firstlineno) if code else None
