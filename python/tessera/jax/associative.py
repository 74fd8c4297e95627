# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`lax.associative_scan` as one operation.

JAX expands it to recursive slicing and interleaving of halves. During tracing, calls of `jax.lax.associative_scan` bind
a primitive instead if the function is elementwise, so that it can be imported as scalar operations; arrays that the
function repeats along dimensions of others are repeated before. Derivatives are linear recurrences,
t[i] = M[i] t[i - 1] + u[i], which are scans too: a second primitive, whose transpose is itself in reverse.
"""

from __future__ import annotations

import contextlib
import inspect
import types
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core as jex_core
from jax.interpreters import ad, batching, mlir

from ..ir import Block, TensorType, Value
from .combiners import combiner_of
from .errors import ImportFailure
from .registry import rule

_function = inspect.unwrap(lax.associative_scan)  # the one that every name of it leads to
# A copy, since the function's code changes while programs are traced.
_expanded = types.FunctionType(_function.__code__, _function.__globals__, _function.__name__, _function.__defaults__, _function.__closure__)
_scan = jex_core.Primitive("tessera_associative_scan")
_linear = jex_core.Primitive("tessera_linear_recurrence")


# Interception of lax.associative_scan.

def _stand_in(fn, elems, reverse=False, axis=0):
    """Its code runs in JAX's module, so it names what it needs by itself."""
    return __import__("tessera.jax.associative", fromlist=("associative_scan",)).associative_scan(fn, elems, reverse, axis)


@contextlib.contextmanager
def recognised():
    """Context manager: calls of `jax.lax.associative_scan`, by whatever name, bind a primitive where possible."""
    code = _function.__code__
    _function.__code__ = _stand_in.__code__
    try:
        yield
    finally:
        _function.__code__ = code


def associative_scan(fn, elems, reverse=False, axis=0):
    """Replaces lax.associative_scan; uses JAX's expansion if the function is not elementwise."""
    leaves, tree = jax.tree.flatten(elems)
    leaves = [jnp.asarray(leaf) for leaf in leaves]
    if callable(fn) and any(map(jnp.iscomplexobj, leaves)):
        return _joined(associative_scan(lambda a, b: _parts(fn(_joined(a), _joined(b))), _parts(elems), reverse, axis))
    combiner = combiner_of(fn, leaves, tree, axis)
    if combiner is None:
        return _expanded(fn, elems, reverse, axis)
    results = _scan.bind(*combiner.widened(leaves), body=combiner.body, axis=combiner.axis, reverse=bool(reverse))
    return jax.tree.unflatten(tree, combiner.narrowed(results, [leaf.shape for leaf in leaves]))


class _Parts(tuple):
    """The real and imaginary part of a complex array."""


jax.tree_util.register_pytree_node(_Parts, lambda parts: (tuple(parts), None), lambda _, parts: _Parts(parts))


def _parts(tree):
    return jax.tree.map(lambda x: _Parts((jnp.real(x), jnp.imag(x))) if jnp.iscomplexobj(x) else x, tree)


def _joined(tree):
    return jax.tree.map(lambda x: lax.complex(*x) if isinstance(x, _Parts) else x, tree, is_leaf=lambda x: isinstance(x, _Parts))


def _on_arrays(body, rank: int):
    """A jaxpr over scalars as a function of arrays of that rank."""
    function = jex_core.jaxpr_as_fun(body)
    for _ in range(rank):
        function = jax.vmap(function)
    return function


def _shifted(x, axis: int, reverse: bool):
    """The values of the previous step of the scan; zeros at the first step."""
    x = lax.slice_in_dim(x, 1, None, axis=axis) if reverse else lax.slice_in_dim(x, 0, x.shape[axis] - 1, axis=axis)
    padding = [(0, 0, 0)] * x.ndim
    padding[axis] = (0, 1, 0) if reverse else (1, 0, 0)
    return lax.pad(x, jnp.zeros((), x.dtype), padding)


def _is_first(x, axis: int, reverse: bool):
    return lax.broadcasted_iota(jnp.int32, x.shape, axis) == (x.shape[axis] - 1 if reverse else 0)


# The scan primitive.

def _evaluate_scan(*xs, body, axis, reverse):
    fn = _on_arrays(body, xs[0].ndim)
    return list(_expanded(lambda a, b: tuple(fn(*a, *b)), tuple(xs), reverse, axis))


def _scan_jvp(primals, tangents, *, body, axis, reverse):
    results = _scan.bind(*primals, body=body, axis=axis, reverse=reverse)
    xs, n = list(primals), len(primals)
    before = [_shifted(y, axis, reverse) for y in results]
    fn = _on_arrays(body, xs[0].ndim)
    floats = [i for i in range(n) if jnp.issubdtype(xs[i].dtype, jnp.floating)]
    zero = lambda x: jnp.zeros(x.shape, jax.dtypes.float0 if not jnp.issubdtype(x.dtype, jnp.inexact) else x.dtype)
    incoming = [jnp.zeros_like(x) if i in floats and isinstance(t, ad.Zero) else zero(x) if isinstance(t, ad.Zero) else t
                for i, (x, t) in enumerate(zip(xs, tangents))]
    zeros = [zero(x) for x in xs]
    _, own = jax.jvp(lambda *a: fn(*before, *a), xs, incoming)
    first = _is_first(xs[0], axis, reverse)
    added = [jnp.where(first, incoming[i], own[i]) for i in floats]
    reads = _dependences(body.jaxpr, n)
    pattern = _closed([[k in reads[r] for k in floats] for r in floats])
    columns = {}
    for k in floats:
        ones = [jnp.ones_like(x) if i == k else z for i, (x, z) in enumerate(zip(xs, zeros))]
        columns[k] = jax.jvp(lambda *a: fn(*a, *xs), before, ones)[1]
    slopes = [columns[k][r] for i, r in enumerate(floats) for j, k in enumerate(floats) if pattern[i][j]]
    moved = _recurrence(slopes, added, pattern, axis, reverse)
    out = [ad.Zero(jax.typeof(y).to_tangent_aval()) for y in results]
    for i, t in zip(floats, moved):
        out[i] = t
    return results, out


def _dependences(jaxpr, n: int) -> list[set[int]]:
    """For each output, the set of the first `n` inputs that it depends on."""
    known = {v: {i} for i, v in enumerate(jaxpr.invars[:n])}
    read = lambda v: set() if isinstance(v, jex_core.Literal) else known.get(v, set())
    for eqn in jaxpr.eqns:
        joined = set().union(*[read(v) for v in eqn.invars])
        known.update({v: joined for v in eqn.outvars})
    return [read(v) for v in jaxpr.outvars]


def _closed(pattern) -> tuple[tuple[bool, ...], ...]:
    """The transitive closure of a pattern: the positions where products of such matrices may be non-zero."""
    n = len(pattern)
    while True:
        more = [[pattern[i][j] or any(pattern[i][k] and pattern[k][j] for k in range(n)) for j in range(n)] for i in range(n)]
        if more == pattern:
            return tuple(map(tuple, more))
        pattern = more


# The linear-recurrence primitive. Operands: matrix entries at the positions of `pattern`, then vector entries.

def _compose(pattern, multiply, add, earlier, later):
    """The composition of (M, u), then (M', u'): (M' M, M' u + u')."""
    n, places = len(pattern), _places(pattern)
    first, second = dict(zip(places, earlier)), dict(zip(places, later))
    u, v = earlier[len(places):], later[len(places):]

    def total(terms):
        result, *rest = terms
        for term in rest:
            result = add(result, term)
        return result
    matrix = []
    for i, j in places:
        terms = [multiply(second[i, k], first[k, j]) for k in range(n) if (i, k) in second and (k, j) in first]
        matrix.append(total(terms) if terms else multiply(second[i, j], first[i, j]))  # both entries are zero
    vector = [total([*[multiply(second[i, k], u[k]) for k in range(n) if (i, k) in second], v[i]]) for i in range(n)]
    return [*matrix, *vector]


def _places(pattern) -> list[tuple[int, int]]:
    """The entries of the matrices, row by row."""
    return [(i, j) for i, row in enumerate(pattern) for j, there in enumerate(row) if there]


def _recurrence(slopes, added, pattern, axis, reverse) -> list:
    """The recurrence, with one primitive for the entries of each block of the matrices, so that unused ones are dropped. The
    result of a block to which only zeros are added is zero."""
    n, entries = len(pattern), dict(zip(_places(pattern), slopes))
    block = list(range(n))  # the least of its numbers
    for i, j in [*entries] * n:
        block[i] = block[j] = min(block[i], block[j])
    results = list(added)
    for first in sorted(set(block)):
        members = [i for i in range(n) if block[i] == first]
        if all(isinstance(added[i], ad.Zero) for i in members):
            continue
        part = tuple(tuple(pattern[i][j] for j in members) for i in members)
        own = [entries[members[i], members[j]] for i, j in _places(part)]
        made = _linear.bind(*own, *[ad.instantiate_zeros(added[i]) for i in members], pattern=part, axis=axis, reverse=reverse)
        for i, result in zip(members, made):
            results[i] = result
    return results


def _evaluate_linear(*values, pattern, axis, reverse):
    n = len(pattern)
    combine = lambda a, b: tuple(_compose(pattern, jnp.multiply, jnp.add, list(a), list(b)))
    return list(_expanded(combine, tuple(values), reverse, axis)[-n:])


def _linear_jvp(primals, tangents, *, pattern, axis, reverse):
    n = len(pattern)
    results = _linear.bind(*primals, pattern=pattern, axis=axis, reverse=reverse)
    before = [_shifted(t, axis, reverse) for t in results]
    slopes, added = primals[:-n], list(tangents[-n:])
    for (i, j), tangent in zip(_places(pattern), tangents[:-n]):
        if not isinstance(tangent, ad.Zero):
            added[i] = ad.add_tangents(added[i], tangent * before[j])
    return results, _recurrence(slopes, added, pattern, axis, reverse)


def _linear_transpose(cotangents, *values, pattern, axis, reverse):
    n = len(pattern)
    slopes = values[:-n]
    if any(ad.is_undefined_primal(m) for m in slopes):
        raise NotImplementedError("a linear recurrence is linear in its summands, not in its factors")
    by_place = {(j, i): _shifted(m, axis, not reverse) for (i, j), m in zip(_places(pattern), slopes)}  # M[i + 1], transposed
    turned = tuple(tuple(pattern[j][i] for j in range(n)) for i in range(n))
    ordered = [by_place[i, j] for i in range(n) for j in range(n) if turned[i][j]]
    back = _recurrence(ordered, cotangents, turned, axis, not reverse)
    return [None] * len(slopes) + list(back)


def _batched(primitive):
    def batch(values, dims, *, axis, **params):
        size = next(v.shape[d] for v, d in zip(values, dims) if d is not None)
        moved = [jnp.broadcast_to(v, (size, *v.shape)) if d is None else jnp.moveaxis(v, d, 0)
                 for v, d in zip(values, dims)]
        results = primitive.bind(*moved, axis=axis + 1, **params)
        return results, [0] * len(results)
    return batch


for _primitive, _evaluate, _count in ((_scan, _evaluate_scan, lambda values, _: len(values)),
                                      (_linear, _evaluate_linear, lambda _, params: len(params["pattern"]))):
    _primitive.multiple_results = True
    _primitive.def_impl(_evaluate)
    _primitive.def_abstract_eval(lambda *avals, _count=_count, **params: [
        jax.core.ShapedArray(a.shape, a.dtype) for a in avals[len(avals) - _count(avals, params):]])
    mlir.register_lowering(_primitive, mlir.lower_fun(_evaluate, multiple_results=True))
    batching.primitive_batchers[_primitive] = _batched(_primitive)
ad.primitive_jvps[_scan], ad.primitive_jvps[_linear] = _scan_jvp, _linear_jvp
ad.primitive_transposes[_linear] = _linear_transpose


# Import rules.

@rule(_scan.name)
def _(ctx, eqn, *values):
    body = eqn.params["body"]
    return ctx.b.scan(values, eqn.params["axis"], lambda earlier, later: on_scalars(ctx, body, [*earlier, *later]),
                      reverse=eqn.params["reverse"])


@rule(_linear.name)
def _(ctx, eqn, *values):
    b, pattern = ctx.b, eqn.params["pattern"]
    multiply, add = [lambda x, y, name=name: b.apply(name, x, y) for name in ("arith.mulf", "arith.addf")]
    combine = lambda earlier, later: _compose(pattern, multiply, add, earlier, later)
    return b.scan(values, eqn.params["axis"], combine, reverse=eqn.params["reverse"])[-len(pattern):]


def on_scalars(ctx, program, values: Sequence[Value]) -> list[Value]:
    """The results of a jaxpr over scalars, built as scalar operations at the end of the current block."""
    b = ctx.b
    made = Block([TensorType((), v.type) for v in values])
    with b.isolated(made):
        results = ctx.inline(program, made.arguments)
    known: dict[Value, Value] = dict(zip(made.arguments, values))

    def copy(operation, scalars):
        if operation.name == "arith.constant" and "splat" in operation.attributes:
            return b.constant(operation.attributes["splat"], getattr(operation.result.type, "element", operation.result.type))
        if operation.name == "linalg.generic":
            body, = operation.regions
            inside = {**scalars, **{a: scalars.get(v) for a, v in zip(body.arguments, operation.operands)}}
            for each in body.operations[:-1]:
                inside[each.result] = copy(each, inside)
            return inside[body.operations[-1].operands[0]]
        if operation.name == "tensor.empty":
            return None
        if operation.name.split(".")[0] not in ("arith", "math"):
            raise ImportFailure(f"'{operation.name}' in the function of 'associative_scan' is not supported; combine elements alone", ctx.location)
        element = getattr(operation.result.type, "element", operation.result.type)
        return b.op(operation.name, [scalars[v] for v in operation.operands], [element], dict(operation.attributes)).result
    for operation in made.operations:
        known[operation.result] = copy(operation, known)
    return [known[v] for v in results]
