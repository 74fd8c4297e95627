# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special functions of floats of 32 and 64 bits, by the series that XLA and Cephes use, for all importers.

`xp` is the library of the operands: tessera.ops, or jax.numpy for programs that JAX traces.
"""

from __future__ import annotations

import math

import numpy as np

# Lanczos, A precision approximation of the gamma function, 1964: g = 7, 9 terms.
_G = 7
_BASE = 0.99999999999980993227684700473478
_LANCZOS = (676.520368121885098567009190444019, -1259.13921672240287047156078755283, 771.3234287776530788486528258894,
            -176.61502916214059906584551354, 12.507343278686904814458936853, -0.13857109526572011689554707, 9.984369578019570859563e-6,
            1.50563273514931155834e-7)


def lgamma(xp, x):
    """log |gamma(x)|; below 0.5 by reflection."""
    reflected = x < 0.5
    z = xp.where(reflected, -x, x - 1)
    total = _BASE + sum(c / (z + (i + 1)) for i, c in enumerate(_LANCZOS))
    t = z + (_G + 0.5)
    log_t = math.log(_G + 0.5) + xp.log1p(z / (_G + 0.5))
    above = math.log(2 * math.pi) / 2 + (z + 0.5 - t / log_t) * log_t + xp.log(total)
    rest = abs(x) - xp.floor(abs(x))
    sine = xp.log(xp.sin(math.pi * xp.where(rest > 0.5, 1 - rest, rest)))
    below = xp.where(xp.isfinite(sine), math.log(math.pi) - sine - above, -sine)
    return xp.where(xp.isinf(x), math.inf, xp.where(reflected, below, above))


def digamma(xp, x):
    """The derivative of log gamma; NaN at its poles."""
    reflected = x < 0.5
    z = xp.where(reflected, -x, x - 1)
    slope = -sum(c / xp.square(z + (i + 1)) for i, c in enumerate(_LANCZOS))
    total = _BASE + sum(c / (z + (i + 1)) for i, c in enumerate(_LANCZOS))
    log_t = math.log(_G + 0.5) + xp.log1p(z / (_G + 0.5))
    above = log_t + slope / total - _G / (z + (_G + 0.5))
    angle = math.pi * (x + abs(xp.floor(x + 0.5)))
    below = above - math.pi * xp.cos(angle) / xp.sin(angle)
    return xp.where((x <= 0) & (x == xp.floor(x)), math.nan, xp.where(reflected, below, above))


_EULER_MACLAURIN = (12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9, 7.47242496e10, -2.950130727918164224e12,
                    1.1646782814350067249e14, -4.5979787224074726105e15, 1.8152105401943546773e17, -7.1661652561756670113e18)


def zeta(xp, x, q):
    """The Hurwitz zeta function, the sum of (q + i)^-x: nine terms and the Euler-Maclaurin formula, as Cephes computes it."""
    total, a, term = q ** -x, q, xp.zeros_like(q)
    done = xp.zeros(x.shape, "bool")
    eps = float(np.finfo(str(x.dtype)).eps)
    small = lambda term, total: abs(term) < abs(total) * eps
    for i in range(9):
        a = a + 1
        term = a ** -x
        total = xp.where(done, total, total + term)
        done |= small(term, total)
    rest = total + term * a / (x - 1) - term / 2
    factor, k, finished = xp.ones_like(x), 0, done
    for divisor in _EULER_MACLAURIN:
        factor, term = factor * (x + k), term / a
        part = factor * term / divisor
        rest = xp.where(finished, rest, rest + part)
        finished |= small(part, rest)
        factor, term, k = factor * (x + k + 1), term / a, k + 2
    result = xp.where(done, total, rest)
    whole = (q <= 0) & (q == xp.floor(q))
    even = (x == xp.floor(x)) & (x % 2 == 0)
    result = xp.where((q < 0) & (x != xp.floor(x)), math.nan, result)
    result = xp.where(whole, xp.where(even, math.inf, math.nan), result)
    return xp.where(x == 1, math.inf, xp.where((x < 1) | xp.isnan(x) | xp.isnan(q), math.nan, result))


def polygamma(xp, n, x):
    """The n-th derivative of digamma."""
    sign = xp.where(n % 2 == 0, -1, 1).astype(x.dtype)
    result = xp.where(n == 0, digamma(xp, x), sign * xp.exp(lgamma(xp, n + 1)) * zeta(xp, n + 1, x))
    return xp.where((n < 0) | (n != xp.floor(n)), math.nan, result)


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


# Chebyshev coefficients of Cephes: exp(-x) I0(x) on [0, 8], exp(-x) I0(x) sqrt(x) on [8, inf).
_I0E_NEAR = (-4.41534164647933937950e-18, 3.33079451882223809783e-17, -2.43127984654795469359e-16, 1.71539128555513303061e-15,
             -1.16853328779934516808e-14, 7.67618549860493561688e-14, -4.85644678311192946090e-13, 2.95505266312963983461e-12,
             -1.72682629144155570723e-11, 9.67580903537323691224e-11, -5.18979560163526290666e-10, 2.65982372468238665035e-9,
             -1.30002500998624804212e-8, 6.04699502254191894932e-8, -2.67079385394061173391e-7, 1.11738753912010371815e-6,
             -4.41673835845875056359e-6, 1.64484480707288970893e-5, -5.75419501008210370398e-5, 1.88502885095841655729e-4,
             -5.76375574538582365885e-4, 1.63947561694133579842e-3, -4.32430999505057594430e-3, 1.05464603945949983183e-2,
             -2.37374148058994688156e-2, 4.93052842396707084878e-2, -9.49010970480476444210e-2, 1.71620901522208775349e-1,
             -3.04682672343198398683e-1, 6.76795274409476084995e-1)
_I0E_FAR = (-7.23318048787475395456e-18, -4.83050448594418207126e-18, 4.46562142029675999901e-17, 3.46122286769746109310e-17,
            -2.82762398051658348494e-16, -3.42548561967721913462e-16, 1.77256013305652638360e-15, 3.81168066935262242075e-15,
            -9.55484669882830764870e-15, -4.15056934728722208663e-14, 1.54008621752140982691e-14, 3.85277838274214270114e-13,
            7.18012445138366623367e-13, -1.79417853150680611778e-12, -1.32158118404477131188e-11, -3.14991652796324136454e-11,
            1.18891471078464383424e-11, 4.94060238822496958910e-10, 3.39623202570838634515e-9, 2.26666899049817806459e-8,
            2.04891858946906374183e-7, 2.89137052083475648297e-6, 6.88975834691682398426e-5, 3.36911647825569408990e-3,
            8.04490411014108831608e-1)


def _chebyshev(xp, x, coefficients):
    b0 = b1 = b2 = xp.zeros_like(x)
    for c in coefficients:
        b0, b1, b2 = x * b0 - b1 + c, b0, b1
    return (b0 - b2) / 2


def bessel_i0e(xp, x):
    """exp(-|x|) I0(x)."""
    y, double = abs(x), str(x.dtype) == "float64"
    near = _chebyshev(xp, y / 2 - 2, _I0E_NEAR if double else _I0E_NEAR[12:])
    far = _chebyshev(xp, 32 / y - 2, _I0E_FAR if double else _I0E_FAR[18:]) / xp.sqrt(y)
    return xp.where(y <= 8, near, far)


def bessel_i1e(xp, x):
    """exp(-|x|) I1(x)."""
    y, double = abs(x), str(x.dtype) == "float64"
    near = y * _chebyshev(xp, y / 2 - 2, _I1E_NEAR if double else _I1E_NEAR[12:])
    far = _chebyshev(xp, 32 / y - 2, _I1E_FAR if double else _I1E_FAR[18:]) / xp.sqrt(y)
    return xp.sign(x) * xp.where(y <= 8, near, far)


# Numerators and denominators of Cephes: of w^2 for the middle, of 1/z for tails down to exp(-32), and beyond.
_NDTRI_P0 = (-5.99633501014107895267e1, 9.80010754185999661536e1, -5.66762857469070293439e1, 1.39312609387279679503e1,
             -1.23916583867381258016e0)
_NDTRI_Q0 = (1.0, 1.95448858338141759834e0, 4.67627912898881538453e0, 8.63602421390890590575e1, -2.25462687854119370527e2,
             2.00260212380060660359e2, -8.20372256168333339912e1, 1.59056225126211695515e1, -1.18331621121330003142e0)
_NDTRI_P1 = (4.05544892305962419923e0, 3.15251094599893866154e1, 5.71628192246421288162e1, 4.40805073893200834700e1,
             1.46849561928858024014e1, 2.18663306850790267539e0, -1.40256079171354495875e-1, -3.50424626827848203418e-2,
             -8.57456785154685413611e-4)
_NDTRI_Q1 = (1.0, 1.57799883256466749731e1, 4.53907635128879210584e1, 4.13172038254672030440e1, 1.50425385692907503408e1,
             2.50464946208309415979e0, -1.42182922854787788574e-1, -3.80806407691578277194e-2, -9.33259480895457427372e-4)
_NDTRI_P2 = (3.23774891776946035970e0, 6.91522889068984211695e0, 3.93881025292474443415e0, 1.33303460815807542389e0,
             2.01485389549179081538e-1, 1.23716634817820021358e-2, 3.01581553508235416007e-4, 2.65806974686737550832e-6,
             6.23974539184983293730e-9)
_NDTRI_Q2 = (1.0, 6.02427039364742014255e0, 3.67983563856160859403e0, 1.37702099489081330271e0, 2.16236993594496635890e-1,
             1.34204006088543189037e-2, 3.28014464682127739104e-4, 2.89247864745380683936e-6, 6.79019408009981274425e-9)


def _polynomial(x, coefficients):
    """The value of a polynomial whose first coefficient is that of the highest power."""
    total = coefficients[0]
    for c in coefficients[1:]:
        total = total * x + c
    return total


def ndtri(xp, p):
    """The point at which the standard normal distribution function is p; infinite at 0 and 1, NaN outside."""
    upper = p > 1 - math.exp(-2)
    tail = xp.where(upper, 1 - p, p)
    tail = xp.where(tail > 0, tail, 0.5)
    w = tail - 0.5
    square = w * w
    middle = -math.sqrt(2 * math.pi) * (w + w * square * (_polynomial(square, _NDTRI_P0) / _polynomial(square, _NDTRI_Q0)))
    z = xp.sqrt(-2 * xp.log(tail))
    t = 1 / z
    far, near = [t * _polynomial(t, a) / _polynomial(t, b) for a, b in ((_NDTRI_P2, _NDTRI_Q2), (_NDTRI_P1, _NDTRI_Q1))]
    x = xp.where(tail > math.exp(-2), middle, z - xp.log(z) / z - xp.where(z >= 8, far, near))
    x = xp.where(upper, x, -x)
    return xp.where(p == 0, -math.inf, xp.where(p == 1, math.inf, xp.where((p > 0) & (p < 1), x, math.nan)))


# Of (1 + 2a) exp(a^2) erfc(a) in powers of (a - 3.75) / (a + 3.75), the lowest first: Shepherd and Laframboise, Chebyshev
# approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < inf, 1981. As in lib/Codegen/CUDA/Lower/GpuAngles.cpp.
_ERFCX = (1.2375126308378275, -0.14024059858554697, 0.0035854154854644293, 0.0822767384901452, -0.10880393014174886,
          0.09230432116037748, -0.05869339858963677, 0.028362277418956406, -0.009746579558029276, 0.0017556258528952954,
          0.0002937136655913448, -0.0002901540805408417, 5.164909889268241e-05, 2.238423915508223e-05, -1.1444146237700524e-05,
          -9.73559896736775e-07, 1.751637648849062e-06, -5.7218230603224086e-08, -2.5866850716155884e-07, 2.3263508708859124e-08,
          3.8675334242222354e-08, -3.744210080962018e-09, -5.1739902140113095e-09, 3.1114333809799254e-10, 4.2514714447963895e-10)


def erfcx(xp, x):
    """exp(x^2) erfc(x)."""
    a = xp.clip(abs(x), 0, float(np.finfo(str(x.dtype)).max) / 4)  # an infinite one would be no number
    above = _polynomial((a - 3.75) / (a + 3.75), _ERFCX[::-1]) / (1 + 2 * a)
    return xp.where(x < 0, 2 * xp.exp(x * x) - above, xp.where(xp.isnan(x), x, above))


def erf_inv(xp, x, single, erf, erfc):
    """The inverse error function of f64: from the value of f32, or of the asymptotic series near 1, by Newton's method.

    single, erf, erfc: the function of f32, the error function and its complement.
    """
    rest = 1 - abs(x)
    depth = -xp.log(xp.clip(rest, 1e-300, 0.1))
    y = xp.where(rest > 1e-6, single(x.astype("float32")).astype(x.dtype), xp.sign(x) * xp.sqrt(depth - xp.log(math.pi * depth) / 2))
    for _ in range(4):
        error = xp.where(rest > 0.5, erf(y) - x, xp.sign(x) * (rest - erfc(abs(y))))
        y = y - error * (math.sqrt(math.pi) / 2) * xp.exp(xp.square(y))
    return xp.where(rest > 0, y, xp.where(rest == 0, xp.sign(x) * math.inf, math.nan))
