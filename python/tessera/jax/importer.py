# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Walks a jaxpr and builds operations with the rule of each primitive."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import numpy as np
from jax.extend import core as jex_core

try:  # not public, but JAX has no public way to tell its own frames from the user's
    from jax._src.source_info_util import user_frames
except ImportError:
    user_frames = None

from .. import ir
from ..source import is_of_library, is_of_package, standing_at
from . import elements
from .errors import ImportFailure
from .registry import RULES
from .shardings import ShardingReader


def user_location(eqn, around: ir.Location | None = None) -> ir.Location | None:
    """The line of the user's program that an equation comes from.

    JAX knows the lines of a `jit` inside only from there on: if they are of libraries it is `around`, the line of the call.
    A line of a library, if there is no other; None if there is none.
    """
    try:
        found = _innermost(eqn.source_info.traceback)
    except (AttributeError, TypeError):
        found = None
    return around if around is not None and (found is None or is_of_library(found.file) and not is_of_library(around.file)) else found


@functools.lru_cache(maxsize=64)
def _innermost(traceback) -> ir.Location | None:
    """The innermost frame outside of JAX and, if possible, of other installed packages, down to the call of the importer."""
    found = None
    for frame in user_frames(traceback):
        if is_of_package(frame.file_name):
            break
        if found is None or not is_of_library(frame.file_name):
            found = frame
        if not is_of_library(frame.file_name):
            break
    return ir.Location(found.file_name, found.start_line, found.start_column + 1) if found else None


def subprograms(eqn):
    """The jaxprs in the parameters of an equation."""
    for value in eqn.params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, jex_core.ClosedJaxpr):
                yield item.jaxpr
            elif isinstance(item, jex_core.Jaxpr):
                yield item


def check_primitives(jaxpr) -> None:
    """Raises one ImportFailure that names every unsupported primitive."""
    unknown: dict[str, ir.Location | None] = {}

    def visit(jaxpr, around):
        for eqn in jaxpr.eqns:
            name, location = eqn.primitive.name, user_location(eqn, around)
            if name not in RULES:
                unknown.setdefault(name, location)
            elif name not in NO_PROGRAM_INSIDE:
                for inner in subprograms(eqn):
                    visit(inner, location)

    visit(jaxpr, None)
    if unknown:
        (first, location), *others = unknown.items()
        more = "".join(f"; also '{name}'" + (f" at {place.file}:{place.line}" if place else "") for name, place in others)
        raise ImportFailure(f"primitive '{first}' is not supported{more}", location)


# Primitives whose jaxpr only combines two numbers, which the rule derives from the name.
NO_PROGRAM_INSIDE = {"scatter-add", "scatter_add", "scatter-sub", "scatter_sub", "scatter-mul", "scatter_mul", "scatter_min", "scatter_max"}


class Importer:
    """The context of rules: `b` is the builder, `location` that of the current equation."""

    def __init__(self, shardings: ShardingReader):
        self.b = ir.Builder()
        self.shardings = shardings
        self.location: ir.Location | None = None

    def error(self, eqn, message: str) -> ImportFailure:
        """An ImportFailure at the line of an equation."""
        return ImportFailure(message, user_location(eqn, self.location))

    def type(self, aval, what: str, location=None) -> ir.TensorType:
        """The tensor type of an abstract value; random keys are arrays of their words.

        Raises ImportFailure for unsupported types.
        """
        if is_key(getattr(aval, "dtype", None)):
            return ir.TensorType((*aval.shape, *aval.dtype._impl.key_shape), "i32")
        if not hasattr(aval, "shape") or elements.element_of(aval.dtype) is None:
            raise ImportFailure(f"{what} has type {_describe(aval)}; {elements.SUPPORTED}", location or self.location)
        for extent in aval.shape:
            if not isinstance(extent, int):
                raise ImportFailure(f"{what} has type {aval} with a symbolic extent; shapes are static", location or self.location)
        return ir.TensorType(tuple(aval.shape), elements.element_of(aval.dtype))

    def shape(self, eqn, result: int = 0) -> tuple[int, ...]:
        """The shape of a result of an equation; keys have their words as a last dimension."""
        return self.type(eqn.outvars[result].aval, f"result of '{eqn.primitive}'").shape

    def iota(self, shape, dim: int, dtype) -> ir.Value:
        """A tensor whose elements are their index along `dim`."""
        b, element = self.b, elements.element_of(dtype)
        shape = tuple(shape)
        # Built as a row and broadcast, so that readers see the row.
        row = ir.TensorType((shape[dim],), element)

        def body(_):
            if elements.is_float(dtype):
                return elements.convert(b, b.cast("arith.index_cast", b.index(0), "i32"), np.dtype("int32"), dtype)
            return b.cast("arith.index_cast", b.index(0), element)
        if shape[dim] == 1:
            value = b.constant(0, row)
        else:
            value, = b.generic([], [(b.empty(row), ir.AffineMap.identity(1))], ["parallel"], body)
        return b.broadcast(value, shape, [dim])

    def inline(self, program, values: Sequence[ir.Value]) -> list[ir.Value]:
        """The results of a jaxpr, closed or open, on values; an open one takes its constants as leading values."""
        if isinstance(program, jex_core.ClosedJaxpr):
            jaxpr = program.jaxpr
            consts = [self._constant(c, v, jaxpr) for c, v in zip(program.consts, jaxpr.constvars)]
        else:
            jaxpr, consts = program, []
        environment: dict = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *values)))
        for eqn in jaxpr.eqns:
            self._equation(eqn, environment)
        return [self._value(v, environment) for v in jaxpr.outvars]

    def _constant(self, value, variable, jaxpr) -> ir.Value:
        """An array that the program closes over; `variable` is its name in the jaxpr."""
        reader = next((eqn for eqn in jaxpr.eqns if variable in [v for v in eqn.invars if not isinstance(v, jex_core.Literal)]), None)
        location = user_location(reader, self.location) if reader else self.location
        if isinstance(value, jax.core.Tracer):
            raise ImportFailure(f"the function uses {_describe(value)}, a tracer of another transformation; pass it as an argument",
                                location or self.location)
        if is_key(getattr(value, "dtype", None)):
            value = jax.random.key_data(value)
        with self.b.at(location):
            progression = _progression(value)
            if progression is None:
                return elements.constant(self.b, value)
            dim, first, step = progression
            indices = self.iota(value.shape, dim, value.dtype)
            if (first, step) == (0, 1):
                return indices
            return self.b.pointwise([indices], value.shape, lambda i: self.b.apply(
                "arith.addi", self.b.apply("arith.muli", i, self.b.constant(step, i.type)), self.b.constant(first, i.type)))

    def _value(self, variable, environment) -> ir.Value:
        if isinstance(variable, jex_core.Literal):
            return elements.constant(self.b, _as_array(variable))
        return environment[variable]

    def _equation(self, eqn, environment):
        old, self.location = self.location, user_location(eqn, self.location)
        for variable in eqn.outvars:  # reject unsupported types before the rule runs
            self.type(variable.aval, f"result of '{eqn.primitive}'")
        if eqn.primitive.name not in RULES:  # in a jaxpr traced by a rule
            raise self.error(eqn, f"primitive '{eqn.primitive.name}' is not supported")
        with self.b.at(self.location), standing_at(self.location):
            values = [self._value(v, environment) for v in eqn.invars]
            if eqn.primitive.name in _MOVES and is_key(eqn.outvars[0].aval.dtype):
                results = self.inline(_of_words(eqn), values)
            else:
                results = RULES[eqn.primitive.name](self, eqn, *values)
            results = [results] if isinstance(results, ir.Value) else results
            for variable, value in zip(eqn.outvars, results, strict=True):
                expected = self.type(variable.aval, f"result of '{eqn.primitive}'")
                if value.type != expected:
                    raise AssertionError(f"the rule of '{eqn.primitive}' made {value.type}, not {expected}")
                environment[variable] = value
        self.location = old


def _progression(value):
    """(dim, first, step) of integers equal to first + step * index along one dimension.

    None for other arrays and for small ones.
    """
    if not (hasattr(value, "dtype") and np.issubdtype(value.dtype, np.signedinteger)) or value.size < 64:
        return None
    array = np.asarray(value)
    first = int(array.flat[0])
    steps = [int(array.take(1, dim).flat[0]) - first if extent > 1 else 0 for dim, extent in enumerate(array.shape)]
    varying = [dim for dim, step in enumerate(steps) if step]
    if len(varying) != 1:
        return None
    dim, = varying
    along = first + steps[dim] * np.arange(array.shape[dim], dtype=np.int64)
    same = np.array_equal(array, np.broadcast_to(along.reshape([-1 if d == dim else 1 for d in range(array.ndim)]), array.shape))
    return (dim, first, steps[dim]) if same else None


def is_key(dtype) -> bool:
    """Whether it is a dtype of random keys."""
    return dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)


_MOVES = ("dynamic_update_slice", "gather", "scatter", "tile")  # whose rules do not take the words of keys


def _of_words(eqn):
    """The jaxpr of an operation that moves random keys, on their words: mapped over a last dimension."""
    def avals(v):
        return jax.ShapeDtypeStruct((*v.aval.shape, *v.aval.dtype._impl.key_shape), np.uint32) if is_key(v.aval.dtype) else \
            jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype)
    parameters = {**eqn.params, **({"fill_value": None} if "fill_value" in eqn.params else {})}
    axes = [-1 if is_key(v.aval.dtype) else None for v in eqn.invars]
    return jax.make_jaxpr(jax.vmap(lambda *values: eqn.primitive.bind(*values, **parameters), axes, -1))(*map(avals, eqn.invars))


def _describe(aval) -> str:
    return f"{aval.dtype}[{','.join(map(str, aval.shape))}]" if hasattr(aval, "shape") else str(aval)


def _as_array(literal):
    return np.asarray(literal.val, dtype=literal.aval.dtype)
