# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear algebra: rules of torch.linalg, with derivatives in closed form that reuse the factors.

Giles, Collected matrix derivative results for forward and reverse mode, 2008; the conventions at non-differentiable points
are PyTorch's. A matrix that cannot be factorized gives NaN or infinite values, and 0 in `info`: programs raise no errors
that depend on values.
"""

from __future__ import annotations

import math

import numpy as np

from .. import ops
from ..control import custom_gradient, fori_loop
from ..ops.base import broadcast_shapes
from . import factorizations as kernels
from .factorizations import rows_of, solve, solve_lu, transposed
from .registry import rule


def _flat(a, rank=2):
    """a with its leading dimensions as one."""
    return ops.reshape(a, (math.prod(a.shape[:a.ndim - rank]), *a.shape[a.ndim - rank:]))


def _like(x, a):
    """x with the leading dimensions of a matrix a in place of its first one."""
    return ops.reshape(x, (*a.shape[:-2], *x.shape[1:]))


def _info(a):
    return ops.zeros(a.shape[:-2], "int32")


def _with_derivative(function, backward):
    """backward(arguments, results, cotangents) -> cotangents of the floating-point arguments."""
    def call(*arguments):
        return custom_gradient(function, backward)(*arguments)
    return call


def _halved(x):
    """The lower triangle with half of the diagonal."""
    return ops.tril(x) - x * _unit(x) / 2


def _unit(x):
    return ops.eye(x.shape[-1], dtype=x.dtype)


def _cholesky_back(arguments, results, cotangents):
    (lower,), (g,) = results, cotangents
    middle = _halved(transposed(lower) @ ops.tril(g))
    half = solve(transposed(lower), middle, upper=True)  # L^-T middle L^-1
    whole = transposed(solve(transposed(lower), transposed(half), upper=True))
    return (whole + transposed(whole)) / 2,


_cholesky = _with_derivative(kernels.cholesky, _cholesky_back)


@rule("linalg_cholesky_ex.default")
def _(a, upper=False, check_errors=False):
    flat = _flat(a)
    lower = _cholesky(transposed(flat) if upper else flat)
    return _like(transposed(lower) if upper else lower, a), _info(a)


@rule("cholesky.default")
def _(a, upper=False):
    lower = _cholesky(transposed(_flat(a)) if upper else _flat(a))
    return _like(transposed(lower) if upper else lower, a)


@rule("_linalg_check_errors.default")
def _(*_, **__):
    return None


# Systems of equations.

def _triangular(upper, unit):
    def backward(arguments, results, cotangents):
        (a, _), (x,), (g,) = arguments, results, cotangents
        right = solve(transposed(a), g, not upper, unit)
        outer = -(right @ transposed(x))
        k = 1 if unit else 0
        return ops.triu(outer, k) if upper else ops.tril(outer, -k), right
    return _with_derivative(lambda a, b: solve(a, b, upper, unit), backward)


def _pair(a, b):
    """Matrices with the batch dimensions of both."""
    batch = broadcast_shapes("solve", [a.shape[:-2], b.shape[:-2]])
    return [ops.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b)]


def _solve_triangular(a, b, upper, left=True, unit=False):
    if not left:
        return ops.swapaxes(_solve_triangular(ops.swapaxes(a, -1, -2), ops.swapaxes(b, -1, -2), not upper, True, unit), -1, -2)
    a, b = _pair(a, b)
    return _like(_triangular(upper, unit)(_flat(a), _flat(b)), a)


@rule("linalg_solve_triangular.default")
def _(a, b, upper, left=True, unitriangular=False):
    return _solve_triangular(a, b, upper, left, unitriangular)


@rule("triangular_solve.default")
def _(b, a, upper=True, transpose=False, unitriangular=False):
    whole = ops.swapaxes(a, -1, -2) if transpose else a
    return _solve_triangular(whole, b, upper != transpose, True, unitriangular), _pair(a, b)[0]


@rule("cholesky_solve.default")
def _(b, factor, upper=False):
    other = ops.swapaxes(factor, -1, -2)
    first, second = (other, factor) if upper else (factor, other)
    return _solve_triangular(second, _solve_triangular(first, b, False), True)


@rule("cholesky_inverse.default")
def _(factor, upper=False):
    half = _solve_triangular(ops.swapaxes(factor, -1, -2) if upper else factor, _unit(factor), False)
    return ops.swapaxes(half, -1, -2) @ half


def _lu_solve_back(arguments, results, cotangents):
    (_, _, packed, order), (x,), (g,) = arguments, results, cotangents
    right = solve_lu(packed, order, g, adjoint=True)
    return -(right @ transposed(x)), right, ops.zeros_like(packed)


_solve_by_lu = _with_derivative(lambda a, b, packed, order: solve_lu(packed, order, b), _lu_solve_back)


def _factors(a):
    """L and U in one matrix without derivatives, pivots and the order of rows."""
    return kernels.lu(ops.stop_gradient(a))


def _solved(a, b):
    """(x of a x = b, factors, pivots): matrices with one batch dimension."""
    packed, pivots, order = _factors(a)
    return _solve_by_lu(a, b, packed, order), packed, pivots


@rule("_linalg_solve_ex.default")
def _(a, b, left=True, check_errors=False):
    vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])
    b = ops.expand_dims(b, b.ndim) if vector else b
    whole, right = (a, b) if left or vector else (ops.swapaxes(a, -1, -2), ops.swapaxes(b, -1, -2))
    whole, right = _pair(whole, right)
    x, packed, pivots = _solved(_flat(whole), _flat(right))
    x = _like(x, whole)
    x = ops.squeeze(x, -1) if vector else x if left else ops.swapaxes(x, -1, -2)
    return x, _like(packed, whole), _like(pivots + 1, whole).astype("int32"), _info(whole)


@rule("linalg_inv_ex.default")
def _(a, check_errors=False):
    flat = _flat(a)
    return _like(_solved(flat, kernels.eye(flat, flat.shape[1]))[0], a), _info(a)


def _log_det_back(arguments, results, cotangents):
    (a, packed, order), (_, _, g) = arguments, cotangents[-3:] if len(cotangents) == 3 else (None, None, cotangents[-1])
    inverse = solve_lu(packed, order, kernels.eye(a, a.shape[1]))
    return transposed(inverse) * ops.reshape(g, (-1, 1, 1)), ops.zeros_like(packed)


def _sign(packed, pivots):
    swaps = ops.sum(ops.not_equal(pivots, ops.arange(pivots.shape[1], dtype="int64")).astype("int64"), 1)
    return ops.where(ops.equal(ops.remainder(swaps, 2), 0), 1.0, -1.0).astype(packed.dtype)


def _det_back(arguments, results, cotangents):
    """det(a) a^-T, by the cofactors of matrices that are singular: those of U are products without a pivot."""
    (a, packed, order, _), (value,), (g,) = arguments, results, cotangents
    n = a.shape[1]
    diagonal = ops.diagonal(packed, 0, 1, 2)
    tiny = ops.max(ops.abs(diagonal), 1, True) * float(np.finfo(str(a.dtype)).eps) ** 2
    nudged = ops.where(ops.equal(diagonal, 0), ops.where(ops.greater(tiny, 0), tiny, float(np.finfo(str(a.dtype)).tiny) ** 0.25), diagonal)
    packed = ops.where(_unit(a).astype("bool"), ops.expand_dims(nudged, 1), packed)
    exact = ops.where(ops.equal(value, 0), _sign_of(order) * ops.prod(nudged, 1), value)
    inverse = solve_lu(packed, order, kernels.eye(a, n))
    return transposed(inverse) * ops.reshape(g * exact, (-1, 1, 1)), ops.zeros_like(packed), ops.zeros_like(_sign_of(order))


def _sign_of(order):
    """1 or -1 of a permutation (batch, n): by its inversions."""
    n = order.shape[1]
    pairs = ops.greater(ops.expand_dims(order, 2), ops.expand_dims(order, 1))
    later = ops.triu(ops.ones((n, n), "int64"), 1)
    return ops.where(ops.equal(ops.remainder(ops.sum(pairs.astype("int64") * later, (1, 2)), 2), 0), 1.0, -1.0)


@rule("_linalg_det.default")
def _(a):
    flat = _flat(a)
    packed, pivots, order = _factors(flat)
    det = _with_derivative(lambda a, packed, order, sign: sign * ops.prod(ops.diagonal(packed, 0, 1, 2), 1), _det_back)
    return _like(det(flat, packed, order, _sign(packed, pivots)), a), _like(packed, a), _like(pivots + 1, a).astype("int32")


@rule("_linalg_slogdet.default")
def _(a):
    flat = _flat(a)
    packed, pivots, order = _factors(flat)
    diagonal = ops.diagonal(packed, 0, 1, 2)
    log = _with_derivative(lambda a, packed, order: ops.sum(ops.log(ops.abs(ops.diagonal(packed, 0, 1, 2))), 1), _log_det_back)
    sign = _sign(packed, pivots) * ops.prod(ops.sign(diagonal), 1)
    return _like(sign, a), _like(log(flat, packed, order), a), _like(packed, a), _like(pivots + 1, a).astype("int32")


# Factors.

def _lu_back(arguments, results, cotangents):
    (packed, order), g = results[:2], cotangents[0]
    lower, upper = ops.tril(packed, -1) + _unit(packed), ops.triu(packed)
    middle = ops.tril(transposed(lower) @ ops.tril(g, -1), -1) + ops.triu(ops.triu(g) @ transposed(upper))
    left = solve(transposed(lower), middle, upper=True, unit=True)
    whole = transposed(solve(upper, transposed(left), upper=True))  # left U^-T
    return rows_of(whole, ops.argsort(order, 1)),


def _lu(a, pivot):
    """(packed factors, pivots, order). The derivative of a matrix that is not square is that of the loop."""
    def function(a):
        packed, pivots, order = kernels.lu(a, pivot)
        return packed, order, pivots
    packed, order, pivots = (_with_derivative(function, _lu_back) if a.shape[1] == a.shape[2] else function)(a)
    return packed, pivots, order


@rule("linalg_lu_factor_ex.default")
def _(a, pivot=True, check_errors=False):
    packed, pivots, _ = _lu(_flat(a), pivot)
    return _like(packed, a), _like(pivots + 1, a).astype("int32"), _info(a)


def _unpacked(packed, order, a):
    m, n = packed.shape[1:]
    k = min(m, n)
    lower = ops.tril(packed[:, :, :k], -1) + ops.eye(m, k, dtype=packed.dtype)
    matrix = ops.equal(ops.reshape(ops.arange(m, dtype="int64"), (m, 1)), ops.expand_dims(order, 1)).astype(packed.dtype)
    return _like(matrix, a), _like(lower, a), _like(ops.triu(packed[:, :k]), a)


@rule("linalg_lu.default")
def _(a, pivot=True):
    packed, _, order = _lu(_flat(a), pivot)
    return _unpacked(packed, order, a)


@rule("lu_unpack.default")
def _(packed, pivots, unpack_data=True, unpack_pivots=True):
    order = kernels.permutation(_flat(pivots, 1).astype("int64") - 1, packed.shape[-2])
    return _unpacked(_flat(packed), order, packed)


@rule("linalg_lu_solve.default")
def _(packed, pivots, b, left=True, adjoint=False):
    """The derivative is that of the two triangular systems."""
    if not left:
        x = ops.swapaxes(b, -1, -2)
        batch, x = _pair(packed, x)
    else:
        batch, x = _pair(packed, b)
    pivots = ops.broadcast_to(pivots, (*batch.shape[:-2], pivots.shape[-1]))
    order = kernels.permutation(_flat(pivots, 1).astype("int64") - 1, packed.shape[-1])
    flat, x = _flat(batch), _flat(x)
    if adjoint == left:
        x = _triangular(True, True)(transposed(flat), _triangular(False, False)(transposed(flat), x))
        x = rows_of(x, ops.argsort(order, 1))
    else:
        x = _triangular(True, False)(flat, _triangular(False, True)(flat, rows_of(x, order)))
    x = _like(x, batch)
    return x if left else ops.swapaxes(x, -1, -2)


def _mirrored(x):
    """The lower triangle, and its transpose above."""
    return ops.tril(x) + transposed(ops.tril(x, -1))


def _qr_back(arguments, results, cotangents):
    (a,), (q, r), (gq, gr) = arguments, results, cotangents
    m, n = a.shape[1:]
    if m < n:  # the columns beyond a square are q^T times those of a
        gq, gr, rest = gq + a[:, :, m:] @ transposed(gr[:, :, m:]), gr[:, :, :m], q @ gr[:, :, m:]
        r = r[:, :, :m]
    middle = r @ transposed(gr) - transposed(gq) @ q
    whole = gq + q @ _mirrored(middle)
    first = transposed(solve(r, transposed(whole), upper=True))  # whole R^-T
    return (first if m >= n else ops.concat([first, rest], 2)),


@rule("linalg_qr.default")
def _(a, mode="reduced"):
    full, flat = mode == "complete" and a.shape[-2] > a.shape[-1], _flat(a)
    # The derivative of a complete q, which PyTorch does not have, is that of the loop.
    q, r = kernels.qr(flat, True) if full else _with_derivative(kernels.qr, _qr_back)(flat)
    return _like(q, a) if mode != "r" else ops.zeros((0,), a.dtype), _like(r, a)


@rule("geqrf.default")
def _(a):
    packed, taus = kernels.geqrf(_flat(a))
    return _like(packed, a), _like(taus, a)


@rule("linalg_householder_product.default", "orgqr.default")
def _(a, taus):
    return _like(kernels.householder_product(_flat(a), _flat(taus, 1)), a)


# Eigenvalues and singular values.

def _reciprocals(row):
    """1 / (row[j] - row[i]), 0 on the diagonal: infinite for equal values, whose vectors are arbitrary."""
    gap = ops.expand_dims(row, 1) - ops.expand_dims(row, 2)
    unit = ops.eye(row.shape[1], dtype="bool")
    return ops.where(unit, 0.0, 1 / ops.where(unit, 1.0, gap))


def _eigh_back(arguments, results, cotangents):
    (values, vectors), (gv, gx) = results, cotangents
    middle = (transposed(vectors) @ gx) * _reciprocals(values)
    return vectors @ (middle + _unit(middle) * ops.expand_dims(gv, 1)) @ transposed(vectors),


def _eigenvalues_back(arguments, results, cotangents):
    (_, vectors), gv = results, cotangents[0]
    return (vectors * ops.expand_dims(gv, 1)) @ transposed(vectors),


@rule("_linalg_eigh.default")
def _(a, triangle="L", vectors=True):
    """The cotangent of eigenvalues alone does not divide by their distances."""
    lower = triangle.upper() == "L"

    def function(a):
        part = ops.tril(a, -1) if lower else ops.swapaxes(ops.triu(a, 1), 1, 2)
        return kernels.eigh(part + transposed(part) + a * _unit(a))
    values, found = _with_derivative(function, _eigh_back if vectors else _eigenvalues_back)(_flat(a))
    return _like(values, a), _like(found, a) if vectors else ops.zeros((0,), a.dtype)


def _svd_back(arguments, results, cotangents):
    (a,), (u, s, v), (gu, gs, gv) = arguments, results, cotangents
    m, n = a.shape[1:]
    k = min(m, n)
    u, v, gu, gv = u[:, :, :k], v[:, :, :k], gu[:, :, :k], gv[:, :, :k]
    row, column, gaps = ops.expand_dims(s, 1), ops.expand_dims(s, 2), _reciprocals(s * s)
    skew = lambda x: x - transposed(x)
    ut, vt = transposed(u), transposed(v)
    middle = skew(ut @ gu) * gaps * row + column * (skew(vt @ gv) * gaps) + _unit(gaps) * ops.expand_dims(gs, 1)
    whole = u @ middle @ vt
    if m > k:
        part = gu / row
        whole = whole + (part - u @ (ut @ part)) @ vt
    if n > k:
        part = gv / row
        whole = whole + u @ transposed(part - v @ (vt @ part))
    return whole,


def _singular_values_back(arguments, results, cotangents):
    (u, _, v), gs = results, cotangents[1]
    k = gs.shape[1]
    return (u[:, :, :k] * ops.expand_dims(gs, 1)) @ transposed(v[:, :, :k]),


@rule("_linalg_svd.default")
def _(a, full_matrices=False, compute_uv=True, driver=None):
    u, s, v = _with_derivative(lambda a: kernels.svd(a, full_matrices and compute_uv),
                               _svd_back if compute_uv else _singular_values_back)(_flat(a))
    none = ops.zeros((0,), a.dtype)
    return (_like(u, a), _like(s, a), _like(transposed(v), a)) if compute_uv else (none, _like(s, a), none)


def _pinv_back(arguments, results, cotangents):
    (a, *_), (p,), (g,) = arguments, results, cotangents
    pt, gt = transposed(p), transposed(g)
    rows, columns = gt - a @ (p @ gt), gt - (gt @ p) @ a
    return -(pt @ g @ pt) + rows @ p @ pt + pt @ p @ columns,


@rule("linalg_pinv.atol_rtol_tensor")
def _(a, atol=None, rtol=None, hermitian=False):
    flat = _flat(a)
    limit = lambda t: ops.reshape(ops.broadcast_to(t, a.shape[:-2]), (-1, 1)).astype(a.dtype)
    fixed = ops.zeros((flat.shape[0], 1), a.dtype) if atol is None else limit(atol)
    usual = max(a.shape[-2:]) * float(np.finfo(str(a.dtype)).eps)
    share = ops.where(ops.greater(fixed, 0), 0.0, usual) if rtol is None else limit(rtol)
    u, s, v = kernels.svd(ops.stop_gradient(flat))
    kept = ops.greater(s, ops.maximum(fixed, share * s[:, :1]))
    inverse = v @ (ops.expand_dims(ops.where(kept, 1 / ops.where(kept, s, 1.0), 0.0), 2) * transposed(u))
    value = custom_gradient(lambda a, inverse: inverse, lambda a, r, c: (*_pinv_back(a, r, c), ops.zeros_like(a[1])))
    return _like(value(flat, inverse), a)


# Matrix exponential.

_SQUARINGS = 24


def _exponential(a):
    """By its Taylor series after divisions by 2 until the norm is below 1/2, and as many squarings."""
    norm = ops.max(ops.sum(ops.abs(a), 2), 1)
    count = ops.clip(ops.ceil(ops.log2(ops.maximum(norm, 1e-30))) + 1, 0, _SQUARINGS)
    count = ops.reshape(count, (-1, 1, 1))
    x, unit = a * ops.exp(-math.log(2) * count), _unit(a)
    total = unit + ops.zeros_like(a)
    for i in range(16 if a.dtype.itemsize == 8 else 9, 0, -1):  # Horner
        total = unit + (x @ total) / i

    def step(i, total):
        return ops.where(ops.less(i.astype(a.dtype), count), total @ total, total)
    return fori_loop(_SQUARINGS, step, total)


def _exponential_back(arguments, results, cotangents):
    """The upper right block of exp([[a^T, g], [0, a^T]]) (Mathias, 1996)."""
    (a,), (g,) = arguments, cotangents
    n, at = a.shape[1], transposed(a)
    both = ops.concat([ops.concat([at, g], 2), ops.concat([ops.zeros_like(a), at], 2)], 1)
    return _exponential(both)[:, :n, n:],


@rule("linalg_matrix_exp.default")
def _(a):
    return _like(_with_derivative(_exponential, _exponential_back)(_flat(a)), a) if a.size else a
