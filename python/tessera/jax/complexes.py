# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex values of JAX as pairs of real ones: a jaxpr is traced again without complex types, before its import."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core as jex_core

try:  # not public, see importer.py
    from jax._src.source_info_util import user_context
except ImportError:
    user_context = None

from .. import complexes
from ..complexes import Complex
from .definitions import DEFINITIONS, traced
from .errors import ImportFailure
from .importer import subprograms, user_location

COMPLEX: dict = {}


def _complex(*names):
    """Decorator: the rule of primitives with a complex operand or result, on jax.numpy arrays."""
    def register(function):
        for name in names:
            COMPLEX[name] = function
        return function
    return register


def is_complex(aval) -> bool:
    """Whether an abstract value has complex elements."""
    return hasattr(aval, "dtype") and jnp.issubdtype(aval.dtype, jnp.complexfloating)


def part_of(aval):
    """The abstract value of the real or imaginary part."""
    return jax.ShapeDtypeStruct(aval.shape, np.zeros((), aval.dtype).real.dtype)


def _width(avals) -> int:
    return sum(1 + is_complex(aval) for aval in avals)


def has_complex(jaxpr) -> bool:
    """Whether a jaxpr, or one nested in it, computes complex values."""
    def of(eqn):
        return any(is_complex(v.aval) for v in (*eqn.invars, *eqn.outvars)) or any(map(has_complex, subprograms(eqn)))
    return any(is_complex(v.aval) for v in (*jaxpr.constvars, *jaxpr.invars)) or any(map(of, jaxpr.eqns))


def without_complex(closed):
    """A closed jaxpr with a pair of real arguments and results for each complex one, the real part first.

    Raises ImportFailure for unsupported primitives.
    """
    if not has_complex(closed.jaxpr):
        return closed
    def run(*values):
        given = iter(values)
        arguments = [Complex(next(given), next(given)) if is_complex(aval) else next(given) for aval in closed.in_avals]
        return _flat(_evaluated(closed.jaxpr, closed.consts, arguments))
    avals = [a for aval in closed.in_avals for a in ([part_of(aval)] * 2 if is_complex(aval) else [jax.ShapeDtypeStruct(aval.shape, aval.dtype)])]
    return jax.make_jaxpr(run)(*avals)


def _flat(values) -> list:
    return [part for value in values for part in ((value.real, value.imag) if isinstance(value, Complex) else (value,))]


def _split(value):
    array = np.asarray(value)
    return Complex(jnp.asarray(array.real), jnp.asarray(array.imag)) if np.iscomplexobj(array) else value


def _evaluated(jaxpr, consts, arguments):
    environment = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*map(_of_constant, consts), *arguments)))

    def read(variable):
        if isinstance(variable, jex_core.Literal):
            return _split(np.asarray(variable.val, variable.aval.dtype)) if is_complex(variable.aval) else variable.val
        return environment[variable]
    for eqn in jaxpr.eqns:
        values = [read(v) for v in eqn.invars]
        if user_context is None:
            results = _results(eqn, values)
        else:
            with user_context(eqn.source_info.traceback, name_stack=eqn.source_info.name_stack):
                results = _results(eqn, values)
        environment.update(zip(eqn.outvars, results))
    return [read(v) for v in jaxpr.outvars]


def _of_constant(value):
    return _split(value) if is_complex(value) else value


def _results(eqn, values) -> list:
    name, p = eqn.primitive.name, eqn.params
    inner = list(subprograms(eqn))
    if not any(is_complex(v.aval) for v in (*eqn.invars, *eqn.outvars)) and not any(map(has_complex, inner)):
        bound = eqn.primitive.get_bind_params(p)
        functions, parameters = bound if isinstance(bound, tuple) else ((), bound)  # a tuple before JAX 0.10
        found = eqn.primitive.bind(*functions, *values, **parameters)
        return found if eqn.primitive.multiple_results else [found]
    if name in _LOOPS:
        given = [v.aval for v in eqn.invars]
        found = eqn.primitive.bind(*_flat(values), **{**p, **_LOOPS[name](p, given)})
        parts = iter(found)
        return [Complex(next(parts), next(parts)) if is_complex(v.aval) else next(parts) for v in eqn.outvars]
    if name in COMPLEX:
        found = COMPLEX[name](eqn, *values)
        return found if eqn.primitive.multiple_results else [found]
    if name in DEFINITIONS:
        program = traced(eqn)
        return _evaluated(program.jaxpr, program.consts, values)
    called = next((p[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if key in p), None)
    if called is not None:
        jaxpr, consts = (called.jaxpr, called.consts) if isinstance(called, jex_core.ClosedJaxpr) else (called, ())
        return _evaluated(jaxpr, consts, values)
    raise ImportFailure(f"primitive '{name}' of complex values is not supported", user_location(eqn))


# The parameters of loops and branches over pairs, from those over complex values.
_LOOPS = {
    "scan": lambda p, avals: dict(
        jaxpr=without_complex(p["jaxpr"]), num_consts=_width(avals[:p["num_consts"]]),
        num_carry=_width(avals[p["num_consts"]:p["num_consts"] + p["num_carry"]]),
        **({"linear": tuple(flag for flag, aval in zip(p["linear"], avals) for _ in range(1 + is_complex(aval)))} if "linear" in p else {})),
    "while": lambda p, avals: dict(
        cond_jaxpr=without_complex(p["cond_jaxpr"]), body_jaxpr=without_complex(p["body_jaxpr"]), cond_nconsts=_width(avals[:p["cond_nconsts"]]),
        body_nconsts=_width(avals[p["cond_nconsts"]:p["cond_nconsts"] + p["body_nconsts"]])),
    "cond": lambda p, avals: dict(branches=tuple(map(without_complex, p["branches"]))),
}


@_complex("add", "add_any", "broadcast_in_dim", "concatenate", "copy", "copy_p", "cumsum", "device_put", "dynamic_slice", "dynamic_update_slice",
          "expand_dims", "gather", "neg", "optimization_barrier", "pad", "reduce_sum", "reshape", "rev", "scatter", "scatter-add", "scatter_add",
          "select_n", "sharding_constraint", "slice", "split", "squeeze", "stack", "stop_gradient", "sub", "tessera_place", "tile", "transpose", "unstack")
def _(eqn, *values):
    """Operations that move or add elements act on both parts alike."""
    parameters = {**eqn.params, **({"update_jaxpr": None} if "update_jaxpr" in eqn.params else {})}
    take = lambda part: [getattr(v, part) if isinstance(v, Complex) else v for v in values]
    real, imag = (eqn.primitive.bind(*take(part), **parameters) for part in ("real", "imag"))
    return [Complex(*each) for each in zip(real, imag)] if eqn.primitive.multiple_results else Complex(real, imag)


def _pair(x) -> Complex:
    return x if isinstance(x, Complex) else Complex(x, jnp.zeros_like(x))


@_complex("complex")
def _(eqn, real, imag):
    shape = eqn.outvars[0].aval.shape
    return Complex(jnp.broadcast_to(real, shape), jnp.broadcast_to(imag, shape))  # derivatives pass scalar zeros


@_complex("real")
def _(eqn, z):
    return z.real


@_complex("imag")
def _(eqn, z):
    return z.imag


@_complex("conj")
def _(eqn, z):
    return Complex(z.real, -z.imag) if isinstance(z, Complex) else _pair(z)


@_complex("convert_element_type")
def _(eqn, z):
    if not is_complex(eqn.outvars[0].aval):
        return z.real.astype(eqn.params["new_dtype"])
    target = part_of(eqn.outvars[0].aval).dtype
    return z.each(lambda x: x.astype(target)) if isinstance(z, Complex) else _pair(jnp.asarray(z).astype(target))


@_complex("abs")
def _(eqn, z):
    return complexes.absolute(jnp, z)


@_complex("sign")
def _(eqn, z):
    length = complexes.absolute(jnp, z)
    return z.each(lambda x: jnp.where(length == 0, 0, x / jnp.where(length == 0, 1, length)))


@_complex("mul")
def _(eqn, x, y):
    return complexes.multiply(x, y)


@_complex("reduce_prod")
def _(eqn, z):
    return complexes.product(jnp, z, eqn.params["axes"])


@_complex("square")
def _(eqn, x):
    return complexes.multiply(x, x)


@_complex("div")
def _(eqn, x, y):
    return complexes.divide(x, y)


for _name, _function in {**complexes.FUNCTIONS, "logistic": complexes.logistic}.items():
    _complex(_name)(lambda eqn, z, f=_function: f(jnp, z))


@_complex("integer_pow")
def _(eqn, z):
    return complexes.power(jnp, z, eqn.params["y"])


@_complex("pow")
def _(eqn, x, y):
    return complexes.exponential(jnp, complexes.multiply(complexes.log(jnp, _pair(x)), _pair(jnp.asarray(y, part_of(eqn.outvars[0].aval).dtype)
                                                                               if not isinstance(y, Complex) else y)))


@_complex("eq")
def _(eqn, x, y):
    return (x.real == y.real) & (x.imag == y.imag)


@_complex("ne")
def _(eqn, x, y):
    return (x.real != y.real) | (x.imag != y.imag)


@_complex("dot_general")
def _(eqn, x, y):
    wanted = eqn.params["preferred_element_type"]
    parameters = {**eqn.params, "preferred_element_type": None if wanted is None else part_of(eqn.outvars[0].aval).dtype}
    return complexes.multiply(_pair(x), _pair(y), lambda x, y: eqn.primitive.bind(x, y, **parameters))


@_complex("iota")
def _(eqn):
    target = part_of(eqn.outvars[0].aval)
    return _pair(jax.lax.broadcasted_iota(target.dtype, target.shape, eqn.params["dimension"]))


@_complex("scatter-mul", "scatter_mul")
def _(eqn, z, indices, updates):
    """Of indices that are distinct: the selected elements are read, multiplied and written."""
    p, numbers, mode = eqn.params, eqn.params["dimension_numbers"], eqn.params["mode"]
    if not p["unique_indices"] and np.prod(indices.shape[:-1]) != 1:
        raise ImportFailure(f"'{eqn.primitive}' of complex values is supported for distinct indices; pass unique_indices=True", user_location(eqn))
    z, updates = _pair(z), _pair(updates)
    windows = iter([updates.real.shape[d] for d in numbers.update_window_dims])
    fixed = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    sizes = [1 if d in fixed else next(windows) for d in range(z.real.ndim)]
    places = jax.lax.GatherDimensionNumbers(numbers.update_window_dims, numbers.inserted_window_dims, numbers.scatter_dims_to_operand_dims,
                                            numbers.operand_batching_dims, numbers.scatter_indices_batching_dims)
    product = complexes.multiply(z.each(lambda x: jax.lax.gather(x, indices, places, sizes, mode=mode)), updates)
    write = lambda x, values: jax.lax.scatter(x, indices, values, numbers, mode=mode, unique_indices=True)
    return Complex(write(z.real, product.real), write(z.imag, product.imag))


@_complex("fft")
def _(eqn, z):
    lengths = eqn.params["fft_lengths"]
    rank = len(eqn.invars[0].aval.shape)
    axes, kind, count = list(range(rank - len(lengths), rank)), eqn.params["fft_type"].name, int(np.prod(lengths))
    if kind == "RFFT":
        return complexes.of_real(jnp, z, axes)
    if kind == "IRFFT":
        return complexes.to_real(jnp, z, axes, lengths[-1]) / count
    found = complexes.transform(jnp, z, axes, -1 if kind == "FFT" else 1)
    return found if kind == "FFT" else found.each(lambda part: part / count)
