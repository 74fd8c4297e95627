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
| ppermute       | runs of blocks are sliced                        | blocks over the axis            |
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

def _primitive(name, shape, batch=None, keeps_blocks=False):
    """A primitive with parameter `axes`, and `batch(x, d, axis, size, **params)` for an axis of them, its `rule`.

    shape: of the result, from that of the operand and the parameters. Parameter `numbers`: dimensions of the operand.
    keeps_blocks: the result has the dimensions that wait, too.
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
        x = jnp.moveaxis(x, d, waiting)
        return primitive.bind(x, axes=axes, numbers=tuple(n + 1 for n in numbers), **p), waiting if keeps_blocks else 0
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


def _blocks_batched(primitive, finish):
    """The rule of a collective whose result has blocks over the axes, too: the dimensions that wait become those of the result."""
    def batched(x, d, axis, size, *, axes, numbers, mesh, pending, over, **p):
        x = jnp.broadcast_to(x, (size, *x.shape)) if d is None else jnp.moveaxis(x, d, 0)
        pending, numbers = (axis, *pending), tuple(n + 1 for n in numbers)
        if rest := tuple(a for a in axes if a != axis):
            return primitive.bind(x, axes=rest, numbers=numbers, mesh=mesh, pending=pending, over=over, **p), 0
        n = len(pending)
        order = [pending.index(axis) for axis in over]  # from the order of the collective
        x = finish(jnp.permute_dims(x, (*order, *range(n, x.ndim))), tuple(number - n for number in numbers), n, **p)
        x = jnp.permute_dims(x, (*[over.index(axis) for axis in pending], *range(n, x.ndim)))
        return _place(x, mesh, {axis: i for i, axis in enumerate(pending)}), 0
    return batched


def _shape_with_blocks(change):
    """change(shape, numbers, n): of a block, for n devices."""
    def shape(shape, *, numbers, pending, mesh, over, **_):
        n = len(pending)
        return *shape[:n], *change(shape[n:], tuple(number - n for number in numbers), math.prod(mesh.shape[axis] for axis in over))
    return shape


def _divided(shape, dim, n):
    return (*shape[:dim], shape[dim] // n, *shape[dim + 1:])


def _split(x, dim, sizes):
    """The dimension as several leading ones and what is left."""
    x = x.reshape((*x.shape[:dim], *sizes, x.shape[dim] // math.prod(sizes), *x.shape[dim + 1:]))
    return jnp.moveaxis(x, range(dim, dim + len(sizes)), range(len(sizes)))


def _scattered(x, numbers, n):
    """x: [sources..., block]."""
    return _split(lax.reduce_sum(x, tuple(range(n))), numbers[0], x.shape[:n])


_scatter_p = _primitive("tessera_scatter", _shape_with_blocks(lambda shape, numbers, n: _divided(shape, numbers[0], n)), keeps_blocks=True)
_scatter_p.rule = _blocks_batched(_scatter_p, _scattered)


def _exchanged(x, numbers, n):
    """x: [sources..., block]. Both dimensions exist: one is divided, the other one multiplied."""
    split, joined = numbers
    x = _split(x, n + split, x.shape[:n])  # [destinations..., sources..., block]
    x = jnp.moveaxis(x, range(n, 2 * n), range(n + joined, 2 * n + joined))
    return x.reshape((*x.shape[:n + joined], -1, *x.shape[2 * n + joined + 1:]))


def _exchanged_shape(shape, numbers, n):
    split, joined = numbers
    return tuple(m * n if i == joined else m for i, m in enumerate(_divided(shape, split, n)))


_exchange_p = _primitive("tessera_exchange", _shape_with_blocks(_exchanged_shape), keeps_blocks=True)
_exchange_p.rule = _blocks_batched(_exchange_p, _exchanged)


def _permuted(x, numbers, n, pairs):
    """x: [sources..., block]; the pairs have positions in all axes together."""
    sizes, x = x.shape[:n], x.reshape((-1, *x.shape[n:]))
    source, runs = {to: at for at, to in pairs}, []
    for to in range(x.shape[0]):
        at = source.get(to)
        if runs and (at is None) == (runs[-1][0] is None) and (at is None or runs[-1][1] == at):
            runs[-1][1] += 1
        else:
            runs.append([at, at + 1] if at is not None else [None, 1])
    parts = [jnp.zeros((end, *x.shape[1:]), x.dtype) if at is None else lax.slice_in_dim(x, at, end) for at, end in runs]
    return (lax.concatenate(parts, 0) if len(parts) > 1 else parts[0]).reshape((*sizes, *x.shape[1:]))


_permute_p = _primitive("tessera_permute", lambda shape, **_: shape, keeps_blocks=True)
_permute_p.rule = _blocks_batched(_permute_p, _permuted)


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
    axes = _named(eqn)
    values = [_scatter_p.bind(x, axes=axes, numbers=(at,), mesh=mesh, pending=(), over=axes) for x in values]
    return values if tiled else [lax.squeeze(x, (at,)) for x in values]


@_collective("all_to_all")
def _(mesh, eqn, *values):
    axes, numbers = _named(eqn), (eqn.params["split_axis"], eqn.params["concat_axis"])
    return [_exchange_p.bind(x, axes=axes, numbers=numbers, mesh=mesh, pending=(), over=axes) for x in values]


@_collective("ppermute")
def _(mesh, eqn, *values):
    pairs = tuple(tuple(pair) for pair in eqn.params["perm"])
    axes = tuple(sorted(_named(eqn), key=mesh.axis_names.index))  # pairs are of the mesh's order, whichever the axes are named in
    return [_permute_p.bind(x, axes=axes, numbers=(), mesh=mesh, pending=(), over=axes, pairs=pairs) for x in values]


@_collective("pvary", "pbroadcast", "preduced", "mesh_cast", "copy_p")
def _(mesh, eqn, *values):
    if eqn.primitive.name == "pbroadcast":
        axis, = _single(eqn)
        pairs = tuple((eqn.params["source"], to) for to in range(mesh.shape[axis]))
        return [_permute_p.bind(x, axes=(axis,), numbers=(), mesh=mesh, pending=(), over=(axis,), pairs=pairs) for x in values]
    return list(values)


@_collective("axis_index")
def _(mesh, eqn):
    return [lax.axis_index(_named(eqn))]

