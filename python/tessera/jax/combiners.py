# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The function of `lax.associative_scan` as a function of scalars.

A function of arrays is one of scalars if it combines elements of the same place. Its arrays may have different shapes:
one of fewer dimensions, or of extent 1, is repeated along the dimensions of the others. Where each dimension is found by
following dimensions through the function:

    lambda l, r: (l[0] * r[0], l[1] * r[0][..., None] + r[1])    a: (T, D), b: (T, D, N); a is repeated along N
"""

from __future__ import annotations

import dataclasses

import jax
from jax import lax
from jax.extend import core as jex_core

from .complexes import without_complex
from .registry import RULES

_CALLS = ("pjit", "jit", "closed_call", "custom_jvp_call")
_PLACEMENTS = ("broadcast_in_dim", "reshape", "squeeze")


@dataclasses.dataclass
class Combiner:
    """A function of scalars, and where the dimensions of its arrays lie."""

    body: jex_core.ClosedJaxpr  # of two scalars for each array, first those of the earlier elements
    shape: tuple[int, ...]  # that of all arrays, if they are repeated
    axis: int  # the scanned dimension of that shape
    places: list[tuple[int | None, ...]]  # for each array, which dimension of `shape` each of its own is; None for extents of 1

    def widened(self, arrays):
        """The arrays, repeated to one shape."""
        def wide(x, places):
            kept = [d for d, place in enumerate(places) if place is not None]
            x = lax.squeeze(x, [d for d in range(x.ndim) if d not in kept])
            return lax.broadcast_in_dim(x, self.shape, [places[d] for d in kept])
        return [x if x.shape == self.shape else wide(x, places) for x, places in zip(arrays, self.places)]

    def narrowed(self, results, shapes):
        """The first elements of the results along dimensions in which arrays were repeated."""
        def narrow(y, places, shape):
            limits = [n if d in places else 1 for d, n in enumerate(self.shape)]
            return lax.reshape(lax.slice(y, [0] * y.ndim, limits), shape)
        return [y if shape == self.shape else narrow(y, places, shape) for y, places, shape in zip(results, self.places, shapes)]


class _OtherFunction(Exception):
    """The function combines elements of different places, or computes what has no rule for elements."""


class _Dims:
    """Dimensions of arrays, in classes of those that are the same. None is a dimension along which all elements are equal."""

    def __init__(self):
        self.parents: list[int] = []

    def new(self, shape):
        """A dimension for each of a shape."""
        ids = []
        for extent in shape:
            ids.append(None if extent == 1 else len(self.parents))
            if extent != 1:
                self.parents.append(ids[-1])
        return tuple(ids)

    def root(self, dim):
        while self.parents[dim] != dim:
            dim = self.parents[dim]
        return dim

    def join(self, dims, others):
        """The dimensions of what is computed of elements with these dimensions."""
        for a, b in zip(dims, others, strict=True):
            if a is not None and b is not None:
                a, b = sorted((self.root(a), self.root(b)))
                self.parents[b] = a
        return tuple(b if a is None else a for a, b in zip(dims, others))


def combiner_of(fn, leaves, tree, axis) -> Combiner | None:
    """The function of two pytrees of arrays as one of scalars; None if it is none. `axis` is one of the first array."""
    if not callable(fn) or not leaves or not -leaves[0].ndim <= axis < leaves[0].ndim:
        return None
    axis %= leaves[0].ndim
    arrays = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]

    def flat(*args):
        half = len(args) // 2
        return jax.tree.leaves(fn(jax.tree.unflatten(tree, args[:half]), jax.tree.unflatten(tree, args[half:])))
    try:
        program = without_complex(jax.make_jaxpr(flat)(*arrays, *arrays))
    except Exception:  # the function needs other arrays, or is wrong; JAX reports the latter later
        return None
    if program.consts or [(v.shape, v.dtype) for v in program.out_avals] != [(a.shape, a.dtype) for a in arrays]:
        return None
    try:
        shape, axis, places = _aligned(program.jaxpr, leaves, axis)
    except _OtherFunction:
        return None
    scalars = [jax.ShapeDtypeStruct((), leaf.dtype) for leaf in leaves]
    body = jax.make_jaxpr(lambda *args: _on_scalars(program.jaxpr, args))(*scalars, *scalars)
    return Combiner(body, shape, axis, places)


def _aligned(jaxpr, leaves, axis):
    dims = _Dims()
    given = [dims.new(leaf.shape) for leaf in leaves]
    for own, made in zip(given, _follow(dims, jaxpr, [*given, *given])):
        dims.join(own, made)
    roots = [[None if d is None else dims.root(d) for d in own] for own in given]
    widest = max(range(len(leaves)), key=lambda i: (sum(d is not None for d in roots[i]), leaves[i].ndim))
    position = {d: at for at, d in enumerate(roots[widest]) if d is not None}
    places = []
    for own in roots:
        kept = [d for d in own if d is not None]
        order = [position.get(d, -1) for d in kept]
        if len(own) <= axis or own[axis] is None or own[axis] != roots[0][axis] or -1 in order or any(a >= b for a, b in zip(order, order[1:])):
            raise _OtherFunction
        places.append(tuple(None if d is None else position[d] for d in own))
    return leaves[widest].shape, places[0][axis], places


def _follow(dims, jaxpr, given):
    """The dimensions of the results of a jaxpr, given those of its arguments."""
    known = dict(zip(jaxpr.invars, given))

    def of(v):
        return (None,) * len(v.aval.shape) if isinstance(v, jex_core.Literal) else known[v]
    for eqn in jaxpr.eqns:
        operands, shape = [of(v) for v in eqn.invars], eqn.outvars[0].aval.shape
        if eqn.primitive.name in _CALLS:
            results = _follow(dims, _called(eqn), operands)
        elif eqn.primitive.name in _PLACEMENTS:
            results = [_placed(eqn, operands[0], eqn.invars[0].aval.shape, shape)]
        elif _is_elementwise(eqn):
            made = (None,) * len(shape)
            for v, own in zip(eqn.invars, operands):
                if v.aval.shape:
                    made = dims.join(made, own)
            results = [made] * len(eqn.outvars)
        else:
            raise _OtherFunction
        known.update(zip(eqn.outvars, results))
    return [of(v) for v in jaxpr.outvars]


def _placed(eqn, dims, shape, target):
    """The dimensions of a reshape that adds or removes extents of 1, or of a broadcast."""
    if eqn.primitive.name == "broadcast_in_dim":
        made = [None] * len(target)
        for d, at, extent in zip(dims, eqn.params["broadcast_dimensions"], shape):
            made[at] = d if target[at] == extent else None
        return tuple(made)
    kept = [(d, n) for d, n in zip(dims, shape) if n != 1]
    if [n for _, n in kept] != [n for n in target if n != 1] or eqn.params.get("dimensions") is not None and eqn.primitive.name == "reshape":
        raise _OtherFunction
    left = iter(kept)
    return tuple(None if n == 1 else next(left)[0] for n in target)


def _called(eqn):
    inner = eqn.params.get("jaxpr") or eqn.params.get("call_jaxpr")
    if inner.consts:
        raise _OtherFunction
    return inner.jaxpr


def _is_elementwise(eqn) -> bool:
    known = RULES.get(eqn.primitive.name)
    shape = eqn.outvars[0].aval.shape
    fits = [v.aval.shape == () or len(v.aval.shape) == len(shape) and all(n in (1, whole) for n, whole in zip(v.aval.shape, shape)) for v in eqn.invars]
    return known is not None and known.__module__.endswith(".elementwise") and all(fits)


def _on_scalars(jaxpr, values):
    known = dict(zip(jaxpr.invars, values))

    def of(v):
        return v.val if isinstance(v, jex_core.Literal) else known[v]
    for eqn in jaxpr.eqns:
        operands = [of(v) for v in eqn.invars]
        if eqn.primitive.name in _CALLS:
            results = _on_scalars(_called(eqn), operands)
        elif eqn.primitive.name in _PLACEMENTS:
            results = [operands[0]]
        else:
            made = eqn.primitive.bind(*operands, **eqn.params)
            results = made if eqn.primitive.multiple_results else [made]
        known.update(zip(eqn.outvars, results))
    return [of(v) for v in jaxpr.outvars]
