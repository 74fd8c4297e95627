# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`jax.shard_map`: programs that are written for each device of a mesh.

In the global view an argument gets a leading dimension per mesh axis of its spec, the number of the block, which is
sharded over that axis. The body is mapped over these dimensions (`jax.vmap`), and its collectives become operations
along them:

| collective     | operation on blocks                              | sharding of the result          |
|----------------|--------------------------------------------------|---------------------------------|
| psum, pmax ... | a reduction over the dimension                   | replicated on the axis          |
| all_gather     | the dimension becomes one of the value           | replicated on the axis          |
| psum_scatter   | a reduction, then blocks of the scattered one    | blocks over the axis            |
| all_to_all     | the dimension and blocks of another one swap     | blocks over the axis            |
| ppermute       | runs of blocks are sliced, or reversed           | blocks over the axis            |
| axis_index     | the index along the dimension                    |                                 |

So the compiler's plan has the collectives that the program calls, unless it knows better.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core as jex_core
from jax.interpreters import batching

from ..sharding import Open, Replicate, Shard, Sharding
from .errors import ImportFailure
from .importer import user_location
from .registry import rule
from .rewriting import evaluated, mentions, program_of, rewritten


def without_shard_maps(closed):
    """A closed jaxpr in the global view. Raises ImportFailure for collectives that have no rule."""
    return rewritten(closed, {"shard_map": _global}) if mentions(closed.jaxpr, ("shard_map",)) else closed


def _global(eqn, *values):
    p = eqn.params
    if "in_specs" not in p:
        raise ImportFailure("'shard_map' of this version of JAX is not supported; use JAX 0.7 or later", user_location(eqn))
    mesh, inner = p["mesh"], p.get("newly_manual_axes", p.get("manual_axes", frozenset()))
    manual = [axis for axis in mesh.axis_names if axis in inner]
    jaxpr, consts = program_of(eqn)
    arguments, axes_in = [], []
    for value, spec in zip(values, p["in_specs"]):
        axes_in.append(_axes(spec))
        arguments.append(_blocks(value, spec, mesh, manual))
    axes_out = [_axes(spec) for spec in p["out_specs"]]

    def mapped(*blocks):
        results = evaluated(jaxpr, consts, blocks, _body(mesh))
        return [_equal(x, [axis for axis in manual if axis not in axes], mesh) for x, axes in zip(results, axes_out)]
    for axis in reversed(manual):
        mapped = jax.vmap(mapped, tuple(0 if axis in axes else None for axes in axes_in), [0 if axis in axes else None for axes in axes_out],
                          axis_name=axis, axis_size=mesh.shape[axis])
    return [_joined(x, spec, mesh, manual) for x, spec in zip(mapped(*arguments), p["out_specs"])]


def _entries(spec) -> list[tuple]:
    """The axes of each dimension of a PartitionSpec."""
    return [() if entry is None else entry if isinstance(entry, tuple) else (entry,) for entry in spec]


def _axes(spec) -> list:
    return [axis for entry in _entries(spec) for axis in entry]


def _blocks(value, spec, mesh, manual):
    """A global value with its blocks along leading dimensions, one per axis of the spec, in the order of the mesh."""
    entries = _entries(spec)
    shape, owners = [], []
    for d, n in enumerate(value.shape):
        axes = entries[d] if d < len(entries) else ()
        sizes = [mesh.shape[axis] for axis in axes]
        shape += [*sizes, n // math.prod(sizes)]
        owners += [*axes, None]
    order = [owners.index(axis) for axis in manual if axis in owners] + [i for i, owner in enumerate(owners) if owner is None]
    blocks = jnp.permute_dims(value.reshape(shape), order) if len(shape) != value.ndim else value
    used = [axis for axis in manual if axis in owners]
    return _place(blocks, mesh, {axis: used.index(axis) if axis in used else None for axis in manual})


def _joined(blocks, spec, mesh, manual):
    """The inverse of _blocks."""
    entries, used = _entries(spec), [axis for axis in manual if axis in _axes(spec)]
    if not used:
        return blocks
    blocks = _place(blocks, mesh, {axis: i for i, axis in enumerate(used)})
    order, shape = [], []
    for d, n in enumerate(blocks.shape[len(used):]):
        axes = entries[d] if d < len(entries) else ()
        order += [*[used.index(axis) for axis in axes], len(used) + d]
        shape.append(n * math.prod(mesh.shape[axis] for axis in axes))
    return jnp.permute_dims(blocks, order).reshape(shape)


# Operations of the body on one device's values. Mapped over an axis, they are operations along the dimension of blocks.

def _primitive(name, shape, batch=None):
    """A primitive with parameter `axes`, and `batch(x, d, axis, size, **params)` for an axis of them, its `rule`.

    shape: of the result, from that of the operand and the parameters. Parameter `numbers`: dimensions of the operand.
    """
    primitive = jex_core.Primitive(name)
    primitive.rule = batch
    primitive.def_abstract_eval(lambda x, **p: jax.core.ShapedArray(shape(x.shape, **p), x.dtype))

    def batched(axis_data, values, dims, *, axes, numbers=(), **p):
        (x,), (d,) = values, dims
        if axis_data.name in axes:
            return primitive.rule(x, d, axis_data.name, axis_data.size, axes=axes, numbers=numbers, **p)
        if d is None:
            return primitive.bind(x, axes=axes, numbers=numbers, **p), None
        waiting = len(p.get("pending", ()))
        return primitive.bind(jnp.moveaxis(x, d, waiting), axes=axes, numbers=tuple(n + 1 for n in numbers), **p), 0
    batching.fancy_primitive_batchers[primitive] = batched
    return primitive


_place_p = jex_core.Primitive("tessera_place")
_place_p.def_abstract_eval(lambda x, **_: jax.core.ShapedArray(x.shape, x.dtype))


def _place(x, mesh, dims):
    """Constrains the sharding of x: dims has the dimension of each mesh axis, or None where x is replicated."""
    return _place_p.bind(x, mesh=mesh, dims=tuple(dims.items()))


def _place_batched(axis_data, values, batch_dims, *, mesh, dims):
    (x,), (d,) = values, batch_dims
    if d is None:
        return _place_p.bind(x, mesh=mesh, dims=dims), None
    placed = {axis: dim if dim is None else dim + (dim >= d) for axis, dim in dims}
    if axis_data.name in mesh.axis_names:
        placed[axis_data.name] = d
    return _place(x, mesh, placed), d


batching.fancy_primitive_batchers[_place_p] = _place_batched


@rule(_place_p.name)
def _(ctx, eqn, x):
    mesh, dims = eqn.params["mesh"], dict(eqn.params["dims"])
    ctx.shardings.use(mesh, "'shard_map'", ctx.location)
    placements = [Open() if axis not in dims else Replicate() if dims[axis] is None else Shard(dims[axis]) for axis in mesh.axis_names]
    return ctx.b.shard(x, Sharding(ctx.shardings.mesh, tuple(placements)))


_REDUCTIONS = {"sum": (lax.reduce_sum, lambda x, n: x * jnp.asarray(n, x.dtype)), "max": (lax.reduce_max, lambda x, n: x),
               "min": (lax.reduce_min, lambda x, n: x)}


def _pending_batched(primitive, finish):
    """The rule of a collective over several axes: their blocks wait as leading dimensions of the value for the last axis."""
    def batched(x, d, axis, size, *, axes, numbers, mesh, pending, **p):
        if d is not None:
            x, pending = jnp.moveaxis(x, d, 0), (axis, *pending)
            numbers = tuple(n + 1 for n in numbers)
        rest = tuple(a for a in axes if a != axis)
        if rest:
            return primitive.bind(x, axes=rest, numbers=numbers, mesh=mesh, pending=pending, **p), None
        x = finish(x, numbers, mesh, pending, **p)
        return x, None
    return batched


def _reduced(x, numbers, mesh, pending, kind, over):
    reduce, repeated = _REDUCTIONS[kind]
    x = reduce(x, tuple(range(len(pending)))) if pending else x
    others = [axis for axis in over if axis not in pending]
    x = repeated(x, math.prod(mesh.shape[axis] for axis in others)) if others else x
    return _place(x, mesh, dict.fromkeys(pending)) if pending else x


_reduce_p = _primitive("tessera_reduce", lambda shape, *, pending, **_: shape[len(pending):])
_reduce_p.rule = _pending_batched(_reduce_p, _reduced)


def _gathered(x, numbers, mesh, pending, over):
    """Into a dimension that exists; the first axis of `over` is the slowest one."""
    to, n = numbers[0], len(pending)
    x = _place(x, mesh, dict.fromkeys(pending)) if pending else x
    missing = [axis for axis in over if axis not in pending]
    x = jnp.broadcast_to(x, (*[mesh.shape[axis] for axis in missing], *x.shape))
    at = {axis: i for i, axis in enumerate((*missing, *pending))}
    rest = [len(at) - n + d for d in range(n, x.ndim - len(at) + n)]
    order = [*rest[:to - n], *[at[axis] for axis in over], *rest[to - n:]]
    x = jnp.permute_dims(x, order)
    return x.reshape((*x.shape[:to - n], -1, *x.shape[to - n + len(over) + 1:]))


def _gathered_shape(shape, *, numbers, pending, mesh, over, **_):
    to, extent = numbers[0], math.prod(mesh.shape[axis] for axis in over)
    return tuple(n * extent if i == to else n for i, n in enumerate(shape))[len(pending):]


_gather_p = _primitive("tessera_gather", _gathered_shape)
_gather_p.rule = _pending_batched(_gather_p, _gathered)


def _divided(shape, dim, n):
    return (*shape[:dim], shape[dim] // n, *shape[dim + 1:])


def _scatter_batched(x, d, axis, size, *, axes, numbers, mesh, extent):
    at, = numbers
    x = _REDUCTIONS["sum"][1](x, size) if d is None else lax.reduce_sum(x, (d,))
    x = jnp.moveaxis(x.reshape((*x.shape[:at], size, x.shape[at] // size, *x.shape[at + 1:])), at, 0)
    return _place(x, mesh, {axis: 0}), 0


_scatter_p = _primitive("tessera_scatter", lambda shape, *, numbers, extent, **_: _divided(shape, numbers[0], extent), _scatter_batched)


def _exchange_batched(x, d, axis, size, *, axes, numbers, mesh, extent):
    """Both dimensions exist: one is divided, the other one multiplied."""
    split, joined = numbers
    x = jnp.broadcast_to(x, (size, *x.shape)) if d is None else jnp.moveaxis(x, d, 0)
    x = x.reshape((*x.shape[:split + 1], size, x.shape[split + 1] // size, *x.shape[split + 2:]))
    x = _place(jnp.moveaxis(x, split + 1, 0), mesh, {axis: 0})  # destination, source, ...
    x = jnp.moveaxis(x, 1, joined + 1)
    return x.reshape((*x.shape[:joined + 1], -1, *x.shape[joined + 3:])), 0


def _exchanged(shape, *, numbers, extent, **_):
    split, joined = numbers
    shape = _divided(shape, split, extent)
    return tuple(n * extent if i == joined else n for i, n in enumerate(shape))


_exchange_p = _primitive("tessera_exchange", _exchanged, _exchange_batched)


def _turned(x, source):
    """The blocks of `x` in reverse, or exchanged with those at i ^ m for a power of two m; None for other permutations.

    A reversal of a dimension is one move; the runs of such a permutation would be one for each block.
    """
    n = x.shape[0]
    if sorted(source) != list(range(n)):
        return None
    if all(at == n - 1 - to for to, at in source.items()):
        return lax.rev(x, (0,))
    m = source[0]
    if m and m & (m - 1) == 0 and n % (2 * m) == 0 and all(at == to ^ m for to, at in source.items()):
        return lax.rev(x.reshape(n // (2 * m), 2, m, *x.shape[1:]), (1,)).reshape(x.shape)
    return None


def _permute_batched(x, d, axis, size, *, axes, numbers, mesh, pairs):
    x = jnp.broadcast_to(x, (size, *x.shape)) if d is None else jnp.moveaxis(x, d, 0)
    source, runs = {to: at for at, to in pairs}, []
    if (turned := _turned(x, source)) is not None:
        return _place(turned, mesh, {axis: 0}), 0
    for to in range(size):
        at = source.get(to)
        if runs and (at is None) == (runs[-1][0] is None) and (at is None or runs[-1][1] == at):
            runs[-1][1] += 1
        else:
            runs.append([at, at + 1] if at is not None else [None, 1])
    parts = [jnp.zeros((end, *x.shape[1:]), x.dtype) if at is None else lax.slice_in_dim(x, at, end) for at, end in runs]
    return _place(lax.concatenate(parts, 0) if len(parts) > 1 else parts[0], mesh, {axis: 0}), 0


_permute_p = _primitive("tessera_permute", lambda shape, **_: shape, _permute_batched)


def _equal_batched(x, d, axis, size, *, axes, numbers, mesh):
    """The value of the first block, of a value that is equal in all."""
    x = x if d is None else _place(lax.index_in_dim(x, 0, d, keepdims=False), mesh, {axis: None})
    rest = tuple(a for a in axes if a != axis)
    return _equal_p.bind(x, axes=rest, numbers=numbers, mesh=mesh) if rest else x, None


_equal_p = _primitive("tessera_equal", lambda shape, **_: shape, _equal_batched)


def _equal(x, axes, mesh):
    return _equal_p.bind(x, axes=tuple(axes), numbers=(), mesh=mesh) if axes else x


# The body's primitives.

def _body(mesh):
    """The rules of primitives inside of the body."""
    return {**{name: lambda eqn, *values, f=f: f(mesh, eqn, *values) for name, f in _COLLECTIVES.items()}, "shard_map": _global}


_COLLECTIVES: dict = {}


def _collective(*names):
    def register(function):
        for name in names:
            _COLLECTIVES[name] = function
            _COLLECTIVES[f"{name}_start"] = function
            _COLLECTIVES[f"{name}_done"] = lambda mesh, eqn, *values: list(values)
        return function
    return register


def _named(eqn, key="axis_name"):
    """The axes of a collective, as a tuple."""
    axes = eqn.params[key]
    axes = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
    if eqn.params.get("axis_index_groups") is not None:
        raise ImportFailure(f"'{eqn.primitive}' with axis_index_groups is not supported; use a mesh with more axes", user_location(eqn))
    return axes


def _single(eqn, key="axis_name"):
    axes = _named(eqn, key)
    if len(axes) != 1:
        raise ImportFailure(f"'{eqn.primitive}' over the axes {axes} is not supported; use one axis", user_location(eqn))
    return axes


@_collective("psum", "psum_invariant", "pmax", "pmin")
def _(mesh, eqn, *values):
    kind = eqn.primitive.name[1:4]
    axes = _named(eqn, "axes")
    places, axes = tuple(a for a in axes if isinstance(a, int)), tuple(a for a in axes if not isinstance(a, int))
    values = [_REDUCTIONS[kind][0](x, places) if places else x for x in values]
    return [_reduce_p.bind(x, axes=axes, numbers=(), kind=kind, mesh=mesh, pending=(), over=axes) if axes else x for x in values]


@_collective("all_gather", "all_gather_invariant", "all_gather_reduced")
def _(mesh, eqn, *values):
    axes, at = _named(eqn), eqn.params["all_gather_dimension"]
    values = values if eqn.params["tiled"] else [jnp.expand_dims(x, at) for x in values]
    return [_gather_p.bind(x, axes=axes, numbers=(at,), mesh=mesh, pending=(), over=axes) for x in values]


@_collective("reduce_scatter")
def _(mesh, eqn, *values):
    at, tiled = eqn.params["scatter_dimension"], eqn.params["tiled"]
    for axis in _named(eqn):
        values = [_scatter_p.bind(x, axes=(axis,), numbers=(at,), mesh=mesh, extent=mesh.shape[axis]) for x in values]
    return values if tiled else [lax.squeeze(x, (at,)) for x in values]


@_collective("all_to_all")
def _(mesh, eqn, *values):
    p, axes = eqn.params, _single(eqn)
    split, joined, extent = p["split_axis"], p["concat_axis"], mesh.shape[axes[0]]
    return [_exchange_p.bind(x, axes=axes, numbers=(split, joined), mesh=mesh, extent=extent) for x in values]


@_collective("ppermute")
def _(mesh, eqn, *values):
    pairs = tuple(tuple(pair) for pair in eqn.params["perm"])
    return [_permute_p.bind(x, axes=_single(eqn), numbers=(), mesh=mesh, pairs=pairs) for x in values]


@_collective("pvary", "pbroadcast", "preduced", "mesh_cast", "copy_p")
def _(mesh, eqn, *values):
    if eqn.primitive.name == "pbroadcast":
        axis, = _single(eqn)
        pairs = tuple((eqn.params["source"], to) for to in range(mesh.shape[axis]))
        return [_permute_p.bind(x, axes=(axis,), numbers=(), mesh=mesh, pairs=pairs) for x in values]
    return list(values)


@_collective("axis_index")
def _(mesh, eqn):
    return [lax.axis_index(_named(eqn))]

