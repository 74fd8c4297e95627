# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Factorizations of real matrices (batch, m, n), as loops over columns, in LAPACK's conventions for signs and pivots.

As in tessera.jax.linalg, but of a batch at once: a batch that is cut over devices stays so.
"""

from __future__ import annotations

import math

import numpy as np

from .. import ops
from ..control import fori_loop

_BLOCK = 64  # rows of a triangular matrix that is solved or factorized in one loop


def transposed(a):
    """Matrices [batch, m, n] as [batch, n, m]."""
    return ops.swapaxes(a, 1, 2)


def _column(a, k):
    return ops.reshape(ops.dynamic_slice(a, [0, 0, k], (a.shape[0], a.shape[1], 1)), a.shape[:2])


def _row(a, k):
    return ops.reshape(ops.dynamic_slice(a, [0, k, 0], (a.shape[0], 1, a.shape[2])), (a.shape[0], a.shape[2]))


def _element(x, k):
    """x[:, k] of (batch, n), as (batch, 1)."""
    return ops.dynamic_slice(x, [0, k], (x.shape[0], 1))


def _with_column(a, column, k):
    return ops.dynamic_update_slice(a, ops.expand_dims(column, 2), [0, 0, k])


def _with_row(a, row, k):
    return ops.dynamic_update_slice(a, ops.expand_dims(row, 1), [0, k, 0])


def _times(a, x):
    """The product of (batch, m, n) and (batch, n)."""
    return ops.einsum("bij,bj->bi", a, x)


def _outer(x, y):
    return ops.expand_dims(x, 2) * ops.expand_dims(y, 1)


def _numbers(n):
    return ops.arange(n, dtype="int64")


def eye(a, m, n=None):
    """Unit matrices (batch, m, n) for the batch of a."""
    n = m if n is None else n
    return ops.zeros((a.shape[0], m, n), a.dtype) + ops.eye(m, n, dtype=a.dtype)


def solve_lower(a, b, unit=False):
    """x of a x = b, (batch, n, n) and (batch, n, k), of which only the lower triangle is read; unit: its diagonal is 1."""
    n = a.shape[1]
    if n > _BLOCK:
        half = n // 2
        first = solve_lower(a[:, :half, :half], b[:, :half], unit)
        return ops.concat([first, solve_lower(a[:, half:, half:], b[:, half:] - a[:, half:, :half] @ first, unit)], 1)
    below, diagonal = ops.tril(a, -1), ops.diagonal(a, 0, 1, 2)

    def step(i, x):
        rest = _row(b, i) - ops.einsum("bj,bjk->bk", _row(below, i), x)
        return _with_row(x, rest if unit else rest / _element(diagonal, i), i)
    return fori_loop(n, step, ops.zeros_like(b)) if b.size else b


def solve(a, b, upper=False, unit=False):
    """x of a x = b for a triangular matrix."""
    if not upper:
        return solve_lower(a, b, unit)
    return ops.flip(solve_lower(ops.flip(a, (1, 2)), ops.flip(b, 1), unit), 1)


def cholesky(a):
    """The lower factor; NaN in the matrices that are not positive definite."""
    lower = _cholesky(a)
    good = ops.all(ops.greater(ops.diagonal(lower, 0, 1, 2), 0), 1)
    return ops.where(ops.reshape(good, (-1, 1, 1)), lower, math.nan)


def _cholesky(a):
    n = a.shape[1]
    if n > _BLOCK:
        half = n // 2
        first = _cholesky(a[:, :half, :half])
        below = transposed(solve_lower(first, transposed(a[:, half:, :half])))
        last = _cholesky(a[:, half:, half:] - below @ transposed(below))
        return ops.concat([ops.concat([first, ops.zeros((a.shape[0], half, n - half), a.dtype)], 2), ops.concat([below, last], 2)], 1)
    numbers = _numbers(n)

    def step(j, lower):
        column = _column(a, j) - _times(lower, _row(lower, j))
        pivot = _element(column, j)
        root = ops.where(ops.greater(pivot, 0), ops.sqrt(pivot), math.nan)
        return _with_column(lower, ops.where(numbers > j, column / root, ops.where(numbers == j, root, 0.0)), j)
    return fori_loop(n, step, ops.zeros_like(a)) if a.size else a


def lu(a, pivot=True):
    """(L and U in one matrix, the row that each step swaps with its own, the permutation of rows); pivots (batch, k) count from 0."""
    batch, m, n = a.shape
    rows, columns, k = _numbers(m), _numbers(n), min(m, n)
    order = ops.zeros((batch, m), "int64") + rows

    def step(k, state):
        a, pivots, order = state
        if pivot:
            at = ops.argmax(ops.where(rows >= k, ops.abs(_column(a, k)), -1.0), 1, True).astype("int64")
            here, there = ops.equal(rows, k), ops.equal(rows, at)
            line = ops.zeros((batch, 1, n), "int64") + ops.expand_dims(at, 2)
            other, own = ops.take_along_axis(a, line, 1, "clip"), ops.expand_dims(_row(a, k), 1)
            a = ops.where(ops.expand_dims(here, 1), other, ops.where(ops.expand_dims(there, 2), own, a))
            order = ops.where(here, ops.take_along_axis(order, at, 1, "clip"), ops.where(there, _element(order, k), order))
            pivots = ops.dynamic_update_slice(pivots, at, [0, k])
        column = _column(a, k)
        head = _element(column, k)
        column = ops.where(ops.logical_and(rows > k, ops.not_equal(head, 0)), column / ops.where(ops.equal(head, 0), 1.0, head), column)
        a = _with_column(a, column, k)
        return a - _outer(ops.where(rows > k, column, 0.0), ops.where(columns > k, _row(a, k), 0.0)), pivots, order
    pivots = ops.zeros((batch, k), "int64") + _numbers(k)
    return fori_loop(k, step, (a, pivots, order)) if a.size else (a, pivots, order)


def permutation(pivots, n):
    """The order of rows (batch, n) after the swaps of `pivots`, which count from 0."""
    numbers = _numbers(n)

    def step(k, order):
        at = _element(pivots, k)
        own, other = _element(order, k), ops.take_along_axis(order, at, 1, "clip")
        return ops.where(ops.equal(numbers, k), other, ops.where(ops.equal(numbers, at), own, order))
    order = ops.zeros((pivots.shape[0], n), "int64") + numbers
    return fori_loop(pivots.shape[1], step, order) if pivots.size else order


def rows_of(a, order):
    """Rows of a in an order (batch, rows)."""
    return ops.take_along_axis(a, ops.zeros((*order.shape, a.shape[2]), "int64") + ops.expand_dims(order, 2), 1, "clip")


def solve_lu(packed, order, b, adjoint=False):
    """x of a x = b, or a^T x = b, from the factors of a and their order of rows."""
    if not adjoint:
        return solve(packed, solve_lower(packed, rows_of(b, order), True), upper=True)
    x = solve(transposed(packed), solve_lower(transposed(packed), b), upper=True, unit=True)
    return rows_of(x, ops.argsort(order, 1))


def _reflector(x, k, numbers):
    """(beta, tau, v) of the reflection that maps the elements of x from k on to beta in element k; v has 1 there, 0 before."""
    alpha = _element(x, k)
    rest = ops.where(numbers > k, x, 0.0)
    scale = ops.max(ops.abs(rest), 1, True)
    safe = ops.where(ops.equal(scale, 0), 1.0, scale)
    below = safe * ops.sqrt(ops.sum(ops.square(rest / safe), 1, True))
    trivial = ops.equal(below, 0)
    length = ops.hypot(alpha, below)
    beta = ops.where(trivial, alpha, ops.where(ops.less(alpha, 0), length, -length))
    tau = ops.where(trivial, 0.0, (beta - alpha) / ops.where(trivial, 1.0, beta))
    v = ops.where(ops.equal(numbers, k), 1.0, rest / ops.where(trivial, 1.0, alpha - beta))
    return beta, tau, v


def geqrf(a):
    """(R above the diagonal and reflections below, their factors)."""
    batch, m, n = a.shape
    rows, columns, k = _numbers(m), _numbers(n), min(m, n)

    def step(k, state):
        a, taus = state
        beta, tau, v = _reflector(_column(a, k), k, rows)
        later = ops.where(columns > k, ops.einsum("bi,bij->bj", v, a), 0.0)
        a = a - _outer(tau * v, later)
        column = ops.where(rows > k, v, ops.where(ops.equal(rows, k), beta, _column(a, k)))
        return _with_column(a, column, k), ops.dynamic_update_slice(taus, tau, [0, k])
    taus = ops.zeros((batch, k), a.dtype)
    return fori_loop(k, step, (a, taus)) if a.size else (a, taus)


def householder_product(a, taus):
    """The first columns of the product of reflections, (batch, m, n)."""
    rows, count = _numbers(a.shape[1]), taus.shape[1]

    def step(i, q):
        k = count - 1 - i
        v = ops.where(rows > k, _column(a, k), ops.where(ops.equal(rows, k), 1.0, 0.0))
        return q - _outer(_element(taus, k) * v, ops.einsum("bi,bij->bj", v, q))
    start = eye(a, a.shape[1], a.shape[2])
    return fori_loop(count, step, start) if count else start


def qr(a, full=False):
    """(q, r): q has as many columns as a, or with `full` is square; r has as many rows as q columns."""
    m, n = a.shape[1:]
    packed, taus = geqrf(a)
    width = m if full else min(m, n)
    reflections = ops.pad(packed, [(0, 0), (0, 0), (0, width - n)]) if width > n else packed[:, :, :width]
    return householder_product(reflections, taus), ops.triu(packed[:, :width])


# Jacobi rotations: columns are in two halves; in each round those at the same place of both are rotated, then all but the
# first move on by one place, so that each meets all others in n - 1 rounds and is back in its place (Brent and Luk, 1985).

def _sweeps(a):
    """Convergence is quadratic, after a number of sweeps that grows as the logarithm of the size."""
    return 6 + math.ceil(math.log2(max(2, a.shape[2]))) + (2 if a.dtype.itemsize == 8 else 0)


def _moved(first, second, axis):
    n = first.shape[axis]
    if n == 1:
        return first, second
    cut = lambda x, low, high: x[(slice(None),) * axis + (slice(low, high),)]
    return (ops.concat([cut(first, 0, 1), cut(second, 0, 1), cut(first, 1, n - 1)], axis),
            ops.concat([cut(second, 1, n), cut(first, n - 1, n)], axis))


def _rotations(p, q, beside):
    """(c, s), (batch, 1, pairs), of the rotations that make [[p, beside], [beside, q]] diagonal."""
    none = ops.equal(beside, 0)
    tau = (q - p) / (2 * ops.where(none, 1.0, beside))
    t = ops.where(ops.greater_equal(tau, 0), 1.0, -1.0) / (ops.abs(tau) + ops.hypot(ops.ones_like(tau), tau))
    t = ops.where(none, 0.0, t)
    c = ops.rsqrt(1 + t * t)
    return ops.expand_dims(c, 1), ops.expand_dims(t * c, 1)


def _turned(first, second, c, s):
    return first * c - second * s, first * s + second * c


def eigh(a):
    """(values in ascending order, vectors) of symmetric matrices; NaN for those that are not finite."""
    batch, n, _ = a.shape
    half = (n + 1) // 2
    start = ops.pad(a, [(0, 0), (0, 2 * half - n), (0, 2 * half - n)])
    vectors = eye(a, n, 2 * half)

    def turn(_, state):
        a, left, right = state
        tl, tr, bl, br = a[:, :half, :half], a[:, :half, half:], a[:, half:, :half], a[:, half:, half:]
        c, s = _rotations(*[ops.diagonal(x, 0, 1, 2) for x in (tl, br, tr)])
        left, right = _turned(left, right, c, s)
        (tl, tr), (bl, br) = _turned(tl, tr, c, s), _turned(bl, br, c, s)
        c, s = transposed(c), transposed(s)
        (tl, bl), (tr, br) = _turned(tl, bl, c, s), _turned(tr, br, c, s)
        (tl, tr), (bl, br) = _moved(tl, tr, 2), _moved(bl, br, 2)
        (tl, bl), (tr, br) = _moved(tl, bl, 1), _moved(tr, br, 1)
        return ops.concat([ops.concat([tl, tr], 2), ops.concat([bl, br], 2)], 1), *_moved(left, right, 2)
    a, left, right = fori_loop(_sweeps(a) * (2 * half - 1), turn, (start, vectors[:, :, :half], vectors[:, :, half:]))
    values, vectors = ops.diagonal(a, 0, 1, 2)[:, :n], ops.concat([left, right], 2)[:, :, :n]
    order = ops.argsort(values, 1)
    good = ops.all(ops.isfinite(values), 1, True)
    vectors = ops.take_along_axis(vectors, ops.zeros((batch, n, n), "int64") + ops.expand_dims(order, 1), 2, "clip")
    return ops.where(good, ops.take_along_axis(values, order, 1, "clip"), math.nan), ops.where(ops.expand_dims(good, 2), vectors, math.nan)


def svd(a, full=False):
    """(u, s, v) with a = u diag(s) v^T, the largest value first; of wide matrices by their transpose."""
    if a.shape[1] < a.shape[2]:
        v, s, u = svd(transposed(a), full)
        return u, s, v
    batch, m, n = a.shape
    half, eps = (n + 1) // 2, float(np.finfo(str(a.dtype)).eps)
    scale = ops.max(ops.abs(a), (1, 2), True)
    good = ops.isfinite(scale)
    scale = ops.where(ops.logical_and(good, ops.greater(scale, 0)), scale, 1.0)
    columns, vectors = ops.pad(a / scale, [(0, 0), (0, 0), (0, 2 * half - n)]), eye(a, n, 2 * half)

    def turn(_, state):
        first, second, left, right = state
        total = lambda x: ops.sum(x, 1)
        c, s = _rotations(total(first * first), total(second * second), total(first * second))
        return *_moved(*_turned(first, second, c, s), 2), *_moved(*_turned(left, right, c, s), 2)
    state = columns[:, :, :half], columns[:, :, half:], vectors[:, :, :half], vectors[:, :, half:]
    first, second, left, right = fori_loop(_sweeps(a) * (2 * half - 1), turn, state)
    columns, vectors = ops.concat([first, second], 2)[:, :, :n], ops.concat([left, right], 2)[:, :, :n]
    values = ops.sqrt(ops.sum(ops.square(columns), 1))
    order = ops.argsort(values, 1, True)
    along = lambda x: ops.take_along_axis(x, ops.zeros(x.shape, "int64") + ops.expand_dims(order, 1), 2, "clip")
    columns, vectors, values = along(columns), along(vectors), ops.take_along_axis(values, order, 1, "clip")
    kept = ops.expand_dims(ops.greater(values, values[:, :1] * eps), 1)
    units = ops.where(kept, columns / ops.where(kept, ops.expand_dims(values, 1), 1.0), 0.0)
    # Reflections of orthogonal columns of length 1 give these up to their sign, and a basis of the rest.
    u, r = qr(units, full)
    sign = ops.expand_dims(ops.diagonal(r, 0, 1, 2), 1)
    sign = ops.where(ops.less(sign, -0.5), -1.0, 1.0)
    u = ops.concat([u[:, :, :n] * sign, u[:, :, n:]], 2) if u.shape[2] > n else u * sign
    values = values * ops.reshape(scale, (batch, 1))
    bad = lambda x: ops.where(ops.reshape(good, (batch,) + (1,) * (x.ndim - 1)), x, math.nan)
    return bad(u), bad(values), bad(vectors)
