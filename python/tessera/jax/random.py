# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers: keys are their words; draws have the same bits as in JAX.

Splitting, folding and drawing are programs over the words that JAX defines; they are traced and imported. Only the
block cipher (tessera.ir.random) has a separate rule.
"""

from __future__ import annotations

import importlib
import math

import jax
import numpy as np

from ..ir import AffineMap, TensorType
from ..ir.random import threefry
from ..ir.scalars import erf_inv, row_major
from . import special
from .associative import on_scalars
from .definitions import definition
from .elementwise import pointwise
from .errors import ImportFailure
from .importer import user_location
from .registry import rule


@rule("random_wrap", "random_unwrap", "random_clone")
def _(ctx, eqn, key):
    return key


def _traced(ctx, function, avals, values):
    """Traces a JAX function and inlines it on values."""
    return ctx.inline(jax.make_jaxpr(function)(*avals), values)


def _words(aval, impl):
    return jax.ShapeDtypeStruct((*aval.shape, *impl.key_shape), np.uint32)


def _each_key(function, rank):
    """A function of one key, mapped over an array of keys of that rank."""
    for _ in range(rank):
        function = jax.vmap(function)
    return function


@rule("random_seed")
def _(ctx, eqn, seed):
    aval = eqn.invars[0].aval
    return _traced(ctx, _each_key(eqn.params["impl"].seed, len(aval.shape)), [jax.ShapeDtypeStruct(aval.shape, aval.dtype)], [seed])


@rule("random_bits", "random_split")
def _(ctx, eqn, key):
    aval = eqn.invars[0].aval
    impl, shape = aval.dtype._impl, eqn.params["shape"]
    draw = (lambda k: impl.random_bits(k, eqn.params["bit_width"], shape)) if eqn.primitive.name == "random_bits" \
        else (lambda k: impl.split(k, shape))
    return _traced(ctx, _each_key(draw, len(aval.shape)), [_words(aval, impl)], [key])


@rule("random_fold_in")
def _(ctx, eqn, key, data):
    aval, other, shape = eqn.invars[0].aval, eqn.invars[1].aval, eqn.outvars[0].aval.shape
    impl = aval.dtype._impl

    def fold(key, data):
        return _each_key(impl.fold_in, len(shape))(jax.numpy.broadcast_to(key, (*shape, *impl.key_shape)), jax.numpy.broadcast_to(data, shape))
    return _traced(ctx, fold, [_words(aval, impl), jax.ShapeDtypeStruct(other.shape, other.dtype)], [key, data])


@rule("iota_2x32_shape")
def _(ctx, eqn):
    """The row-major index of each element as two words; the high word is 0."""
    b, shape = ctx.b, tuple(eqn.params["shape"])
    if int(np.prod(shape, dtype=np.int64)) >= 1 << 32:
        raise ctx.error(eqn, f"random numbers of shape {shape}: 2^32 or more elements are not supported")
    type = TensorType(shape, "i32")
    low, = b.generic([], [(b.empty(type), AffineMap.identity(len(shape)))], ["parallel"] * len(shape),
                     lambda _: row_major(b, dict(enumerate(shape))))
    return [b.constant(0, type), low]


@rule("threefry2x32")
def _(ctx, eqn, *values):
    b, shape = ctx.b, eqn.outvars[0].aval.shape
    return [b.pointwise(values, shape, lambda *words, i=i: threefry(b, *words)[i]) for i in (0, 1)]


@rule("erf_inv")
def _(ctx, eqn, x):
    b, aval = ctx.b, eqn.invars[0].aval
    if x.type.element != "f32":
        wider = special.erf_inv if x.type.element == "f64" else special.in_single(jax.lax.erf_inv)
        return _traced(ctx, wider, [jax.ShapeDtypeStruct(aval.shape, aval.dtype)], [x])
    return pointwise(ctx, eqn, [x], lambda x: erf_inv(b, x))


# Other generators. A cipher is one nest of scalar operations for each word of its results.

def _cipher(name, function):
    """Registers a primitive on words as `function` of scalars."""
    @rule(name)
    def _(ctx, eqn, *values):
        program = jax.make_jaxpr(function)(*[jax.ShapeDtypeStruct((), np.uint32)] * len(values))
        return [ctx.b.pointwise(values, v.aval.shape, lambda *words, i=i: on_scalars(ctx, program, words)[i]) for i, v in enumerate(eqn.outvars)]


for _name in ("philox4x32", "philox2x32", "threefry4x32"):
    try:  # not public; without it the primitive is refused
        _module = importlib.import_module(f"jax._src.random.{_name}")
        _cipher(_name, getattr(_module, f"_{_name}_lowering"))
    except (ImportError, AttributeError):
        _module = None
    if _name == "philox4x32":
        _philox = getattr(_module, "philox4x32_p", None)


@definition("rng_bit_generator")
def _(eqn, key):
    """XLA's generator on CPUs: the first half of the key is the cipher's key and the high half of its counter."""
    p, shape, width = eqn.params, eqn.params["shape"], 8 * np.dtype(eqn.params["dtype"]).itemsize
    if _philox is None or getattr(p["algorithm"], "name", str(p["algorithm"])) == "RNG_THREE_FRY" or key.shape != (4,) or key.dtype != np.uint32:
        raise ImportFailure("'rng_bit_generator' is supported for Philox and keys of four 32-bit words", user_location(eqn))
    count = math.prod(shape) * max(1, width // 32)
    blocks = -(-count // 4)
    low = key[2] + jax.lax.iota(np.uint32, blocks)
    high = key[3] + (low < key[2])
    words = jax.numpy.stack(_philox.bind(*jax.numpy.broadcast_arrays(key[0], key[1], low, high, key[0], key[1])), 1).reshape(-1)[:count]
    if width == 64:
        words = words.reshape(-1, 2).astype(np.uint64)
        words = words[:, 0] | words[:, 1] << np.uint64(32)
    moved = key[2] + np.uint32(blocks)
    return [jax.numpy.stack([key[0], key[1], moved, key[3] + (moved < key[2])]), words.astype(p["dtype"]).reshape(shape)]
