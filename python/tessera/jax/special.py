# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special functions, by the series that XLA uses, and other elementwise primitives that are programs of simpler ones."""

from __future__ import annotations

import functools
import math

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

from .definitions import definition, in_single

# Lanczos, A precision approximation of the gamma function, 1964: g = 7, 9 terms.
_G = 7
_BASE = 0.99999999999980993227684700473478
_LANCZOS = (676.520368121885098567009190444019, -1259.13921672240287047156078755283, 771.3234287776530788486528258894,
            -176.61502916214059906584551354, 12.507343278686904814458936853, -0.13857109526572011689554707, 9.984369578019570859563e-6,
            1.50563273514931155834e-7)


def lgamma(x):
    """log |gamma(x)|; below 0.5 by reflection."""
    reflected = x < 0.5
    z = jnp.where(reflected, -x, x - 1)
    total = _BASE + sum(c / (z + (i + 1)) for i, c in enumerate(_LANCZOS))
    t = z + (_G + 0.5)
    log_t = math.log(_G + 0.5) + jnp.log1p(z / (_G + 0.5))
    above = math.log(2 * math.pi) / 2 + (z + 0.5 - t / log_t) * log_t + jnp.log(total)
    rest = abs(x) - jnp.floor(abs(x))
    sine = jnp.log(jnp.sin(math.pi * jnp.where(rest > 0.5, 1 - rest, rest)))
    below = jnp.where(jnp.isfinite(sine), math.log(math.pi) - sine - above, -sine)
    return jnp.where(jnp.isinf(x), jnp.inf, jnp.where(reflected, below, above))


def digamma(x):
    """The derivative of log gamma; NaN at its poles."""
    reflected = x < 0.5
    z = jnp.where(reflected, -x, x - 1)
    slope = -sum(c / jnp.square(z + (i + 1)) for i, c in enumerate(_LANCZOS))
    total = _BASE + sum(c / (z + (i + 1)) for i, c in enumerate(_LANCZOS))
    log_t = math.log(_G + 0.5) + jnp.log1p(z / (_G + 0.5))
    above = log_t + slope / total - _G / (z + (_G + 0.5))
    angle = math.pi * (x + abs(jnp.floor(x + 0.5)))
    below = above - math.pi * jnp.cos(angle) / jnp.sin(angle)
    return jnp.where((x <= 0) & (x == jnp.floor(x)), jnp.nan, jnp.where(reflected, below, above))


_EULER_MACLAURIN = (12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9, 7.47242496e10, -2.950130727918164224e12,
                    1.1646782814350067249e14, -4.5979787224074726105e15, 1.8152105401943546773e17, -7.1661652561756670113e18)


def zeta(x, q):
    """The Hurwitz zeta function, the sum of (q + i)^-x: nine terms and the Euler-Maclaurin formula, as Cephes computes it."""
    total, a, term = q ** -x, q, jnp.zeros_like(q)
    done = jnp.zeros(x.shape, bool)
    eps = jnp.finfo(x.dtype).eps
    small = lambda term, total: abs(term) < abs(total) * eps
    for i in range(9):
        a = a + 1
        term = a ** -x
        total = jnp.where(done, total, total + term)
        done |= small(term, total)
    rest = total + term * a / (x - 1) - term / 2
    factor, k, finished = jnp.ones_like(x), 0, done
    for divisor in _EULER_MACLAURIN:
        factor, term = factor * (x + k), term / a
        part = factor * term / divisor
        rest = jnp.where(finished, rest, rest + part)
        finished |= small(part, rest)
        factor, term, k = factor * (x + k + 1), term / a, k + 2
    result = jnp.where(done, total, rest)
    whole = (q <= 0) & (q == jnp.floor(q))
    even = (x == jnp.floor(x)) & (x % 2 == 0)
    result = jnp.where((q < 0) & (x != jnp.floor(x)), jnp.nan, result)
    result = jnp.where(whole, jnp.where(even, jnp.inf, jnp.nan), result)
    return jnp.where(x == 1, jnp.inf, jnp.where((x < 1) | jnp.isnan(x) | jnp.isnan(q), jnp.nan, result))


def polygamma(n, x):
    """The n-th derivative of digamma."""
    sign = jnp.where(n % 2 == 0, -1, 1).astype(x.dtype)
    result = jnp.where(n == 0, digamma(x), sign * jnp.exp(lgamma(n + 1)) * zeta(n + 1, x))
    return jnp.where((n < 0) | (n != jnp.floor(n)), jnp.nan, result)


# Chebyshev coefficients of Cephes: exp(-x) I1(x) / x on [0, 8], exp(-x) I1(x) sqrt(x) on [8, inf).
_I1E_NEAR = (2.77791411276104639959e-18, -2.11142121435816608115e-17, 1.55363195773620046921e-16, -1.10559694773538630805e-15,
             7.60068429473540693410e-15, -5.04218550472791168711e-14, 3.22379336594557470981e-13, -1.98397439776494371520e-12,
             1.17361862988909016308e-11, -6.66348972350202774223e-11, 3.62559028155211703701e-10, -1.88724975172282928790e-9,
             9.38153738649577178388e-9, -4.44505912879632808065e-8, 2.00329475355213526229e-7, -8.56872026469545474066e-7,
             3.47025130813767847674e-6, -1.32731636560394358279e-5, 4.78156510755005422638e-5, -1.61760815825896745588e-4,
             5.12285956168575772895e-4, -1.51357245063125314899e-3, 4.15642294431288815669e-3, -1.05640848946261981558e-2,
             2.47264490306265168283e-2, -5.29459812080949914269e-2, 1.02643658689847095384e-1, -1.76416518357834055153e-1,
             2.52587186443633654823e-1)
_I1E_FAR = (7.51729631084210481353e-18, 4.41434832307170791151e-18, -4.65030536848935832153e-17, -3.20952592199342395980e-17,
            2.96262899764595013876e-16, 3.30820231092092828324e-16, -1.88035477551078244854e-15, -3.81440307243700780478e-15,
            1.04202769841288027642e-14, 4.27244001671195135429e-14, -2.10154184277266431302e-14, -4.08355111109219731823e-13,
            -7.19855177624590851209e-13, 2.03562854414708950722e-12, 1.41258074366137813316e-11, 3.25260358301548823856e-11,
            -1.89749581235054123450e-11, -5.58974346219658380687e-10, -3.83538038596423702205e-9, -2.63146884688951950684e-8,
            -2.51223623787020892529e-7, -3.88256480887769039346e-6, -1.10588938762623716291e-4, -9.76109749136146840777e-3,
            7.78576235018280120474e-1)


def _chebyshev(x, coefficients):
    b0 = b1 = b2 = jnp.zeros_like(x)
    for c in coefficients:
        b0, b1, b2 = x * b0 - b1 + c, b0, b1
    return (b0 - b2) / 2


def bessel_i1e(x):
    """exp(-|x|) I1(x)."""
    y, double = abs(x), x.dtype == jnp.float64
    near = y * _chebyshev(y / 2 - 2, _I1E_NEAR if double else _I1E_NEAR[12:])
    far = _chebyshev(32 / y - 2, _I1E_FAR if double else _I1E_FAR[18:]) / jnp.sqrt(y)
    return jnp.sign(x) * jnp.where(y <= 8, near, far)


def erf_inv(x):
    """Of f64: from the value of f32, or of the asymptotic series near 1, by Newton's method on what is left to 1."""
    rest = 1 - abs(x)
    depth = -jnp.log(jnp.clip(rest, 1e-300, 0.1))
    y = jnp.where(rest > 1e-6, lax.erf_inv(x.astype(jnp.float32)).astype(x.dtype),
                  jnp.sign(x) * jnp.sqrt(depth - jnp.log(math.pi * depth) / 2))
    for _ in range(4):
        error = jnp.where(rest > 0.5, lax.erf(y) - x, jnp.sign(x) * (rest - lax.erfc(abs(y))))
        y = y - error * (math.sqrt(math.pi) / 2) * jnp.exp(jnp.square(y))
    return jnp.where(rest > 0, y, jnp.where(rest == 0, jnp.sign(x) * jnp.inf, jnp.nan))


for _name, _function in dict(lgamma=lgamma, digamma=digamma, zeta=zeta, polygamma=polygamma, bessel_i1e=bessel_i1e).items():
    definition(_name)(lambda eqn, *xs, f=in_single(_function): f(*xs))


# Programs of JAX.

def _of_jax(primitive, function):
    if function is not None:
        definition(primitive)(lambda eqn, *xs: in_single(lambda *xs: function(*xs, dtype=xs[0].dtype))(*xs))


for _name in ("igamma", "igammac", "igamma_grad_a", "random_gamma_grad", "regularized_incomplete_beta"):
    _of_jax(_name, getattr(internal, f"{_name}_impl", None))
if hasattr(internal, "bessel_i0e_impl"):
    definition("bessel_i0e")(lambda eqn, x: internal.bessel_i0e_impl(x))
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
