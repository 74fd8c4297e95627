# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special functions, by the series that XLA uses, and other elementwise primitives that are programs of simpler ones."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np
from jax import lax

try:  # not public; without them the primitives are refused
    from jax._src.lax import special as internal
except ImportError:
    internal = None
try:
    from jax._src.random.core import _gamma_impl
except ImportError:
    try:
        from jax._src.random import _gamma_impl
    except ImportError:
        _gamma_impl = None

from .. import special
from .definitions import definition, in_single


def erf_inv(x):
    """Of f64."""
    return special.erf_inv(jnp, x, lax.erf_inv, lax.erf, lax.erfc)


for _name in ("lgamma", "digamma", "zeta", "polygamma", "bessel_i0e", "bessel_i1e"):
    definition(_name)(lambda eqn, *xs, f=getattr(special, _name): in_single(lambda *xs: f(jnp, *xs))(*xs))


# Programs of JAX.

def _of_jax(primitive, function):
    if function is not None:
        definition(primitive)(lambda eqn, *xs: in_single(lambda *xs: function(*xs, dtype=xs[0].dtype))(*xs))


for _name in ("igamma", "igammac", "igamma_grad_a", "random_gamma_grad", "regularized_incomplete_beta"):
    _of_jax(_name, getattr(internal, f"{_name}_impl", None))
if _gamma_impl is not None:
    @definition("random_gamma")
    def _(eqn, key, a):
        return _gamma_impl(key, a, log_space=eqn.params["log_space"], use_vmap=True)


def mulhi(x, y):
    """The high half of the product of 64-bit integers."""
    low = np.uint64(0xFFFFFFFF)
    (a, b), (c, d) = [(v >> 32, v & low) for v in (x.astype(np.uint64), y.astype(np.uint64))]
    middle = (b * d >> 32) + (a * d & low) + (b * c & low)
    high = (a * c + (a * d >> 32) + (b * c >> 32) + (middle >> 32)).astype(x.dtype)
    return high - jnp.where(x < 0, y, 0) - jnp.where(y < 0, x, 0) if jnp.issubdtype(x.dtype, jnp.signedinteger) else high


@definition("reduce_precision")
def _(eqn, x):
    """Rounds the mantissa to nearest even; larger exponents become infinite, smaller ones 0."""
    exponent, mantissa, info = eqn.params["exponent_bits"], eqn.params["mantissa_bits"], jnp.finfo(x.dtype)
    word = np.dtype(f"uint{info.bits}").type
    bits = lax.bitcast_convert_type(x, word)
    dropped = info.nmant - mantissa
    if dropped > 0:
        unit = word(1 << dropped)
        bits = (bits + (unit // 2 - 1) + (bits >> dropped & 1)) & ~word(unit - 1)
    if exponent < info.nexp:
        sign, field = word(1 << (info.bits - 1)), word((1 << info.nexp) - 1 << info.nmant)
        middle, largest = (1 << (info.nexp - 1)) - 1, (1 << (exponent - 1)) - 1
        power = bits & field
        bits = jnp.where(power > word(middle + largest << info.nmant), bits & sign | field, bits)
        bits = jnp.where(power <= word(middle - largest << info.nmant), bits & sign, bits)
    return jnp.where(jnp.isnan(x), x, lax.bitcast_convert_type(bits, x.dtype))


def _of_bits(x):
    """As unsigned integers of the same width."""
    return lax.bitcast_convert_type(x, np.dtype(f"uint{8 * x.dtype.itemsize}"))


def between_widths(x, target):
    """The bits of x as elements of another width, the lowest ones first."""
    width, bits = jnp.dtype(target).itemsize, _of_bits(x)
    word = np.dtype(f"uint{8 * width}")
    if width < x.dtype.itemsize:
        parts = jnp.stack([(bits >> bits.dtype.type(8 * width * i)).astype(word) for i in range(x.dtype.itemsize // width)], -1)
        return lax.bitcast_convert_type(parts, target)
    total = functools.reduce(jnp.bitwise_or, [bits[..., i].astype(word) << word.type(8 * x.dtype.itemsize * i) for i in range(bits.shape[-1])])
    return lax.bitcast_convert_type(total, target)
