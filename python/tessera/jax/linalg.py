# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Factorizations and solvers, as loops over columns, in LAPACK's conventions for signs, pivots and failures."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .definitions import definition, over_batches

_BLOCK = 64  # of a triangular matrix that is solved or factorized in one loop


def _adjoint(a):
    return jnp.conj(jnp.swapaxes(a, -1, -2))


def _column(a, k):
    return lax.dynamic_index_in_dim(a, k, 1, keepdims=False)


def _row(a, k):
    return lax.dynamic_index_in_dim(a, k, 0, keepdims=False)


def _with_column(a, column, k):
    return lax.dynamic_update_index_in_dim(a, column, k, 1)


def _with_row(a, row, k):
    return lax.dynamic_update_index_in_dim(a, row, k, 0)


def _squared(x):
    return (x.real ** 2 + x.imag ** 2) if jnp.iscomplexobj(x) else x * x


# Triangular matrices.

def _substitute(a, b):
    """Solves a x = b for a lower triangular matrix with 1 on its diagonal, and the factor of each row given apart."""
    a, diagonal = a
    n = a.shape[0]

    def step(i, x):
        rest = _row(b, i) - _row(a, i) @ x
        return _with_row(x, rest / diagonal[i] if diagonal is not None else rest, i)
    return lax.fori_loop(0, n, step, jnp.zeros_like(b))


def solve_lower(a, b, unit_diagonal=False):
    """x of a x = b, of which only the lower triangle of a is read; by halves down to blocks of _BLOCK rows."""
    n = a.shape[0]
    if n <= _BLOCK:
        return _substitute((jnp.tril(a, -1), None if unit_diagonal else jnp.diagonal(a)), b)
    half = n // 2
    first = solve_lower(a[:half, :half], b[:half], unit_diagonal)
    return jnp.concatenate([first, solve_lower(a[half:, half:], b[half:] - a[half:, :half] @ first, unit_diagonal)])


@definition("triangular_solve")
def _(eqn, a, b):
    p = eqn.params

    def solve(a, b):
        a = jnp.conj(a) if p["conjugate_a"] else a
        a, lower = (a.T, not p["lower"]) if p["transpose_a"] else (a, p["lower"])
        if not p["left_side"]:
            a, lower, b = a.T, not lower, b.T
        x = solve_lower(a, b, p["unit_diagonal"]) if lower else solve_lower(a[::-1, ::-1], b[::-1], p["unit_diagonal"])[::-1]
        return x if p["left_side"] else x.T
    return over_batches(solve, 2, 2)(a, b)


def _cholesky(a):
    n = a.shape[0]
    if n > _BLOCK:
        half = n // 2
        first = _cholesky(a[:half, :half])
        below = _adjoint(solve_lower(first, _adjoint(a[half:, :half])))
        last = _cholesky(a[half:, half:] - below @ _adjoint(below))
        return jnp.concatenate([jnp.concatenate([first, jnp.zeros((half, n - half), a.dtype)], 1), jnp.concatenate([below, last], 1)])
    numbers = jnp.arange(n)

    def step(j, lower):
        column = _column(a, j) - lower @ jnp.conj(_row(lower, j))
        pivot = column[j].real
        root = jnp.where(pivot > 0, jnp.sqrt(pivot), jnp.nan)  # NaN: not positive definite
        return _with_column(lower, jnp.where(numbers > j, column / root, jnp.where(numbers == j, root, 0)).astype(a.dtype), j)
    return lax.fori_loop(0, n, step, jnp.zeros_like(a))


@definition("cholesky")
def _(eqn, a):
    """NaN in all elements if a matrix is not positive definite."""
    def factor(a):
        lower = _cholesky(a)
        return jnp.where(jnp.all(jnp.diagonal(lower).real > 0), lower, jnp.nan)
    return over_batches(factor, 2)(a)


@definition("cholesky_update")
def _(eqn, r, z):
    """The upper factor of r^T r + z z^T: a rotation for each row."""
    def step(k, state):
        r, z = state
        row = _row(r, k)
        x, y = row[k], z[k]
        length = jnp.where(y == 0, 1, jnp.hypot(x, y))
        c, s = jnp.where(y == 0, 1, x / length), jnp.where(y == 0, 0, -y / length)
        return _with_row(r, c * row - s * z, k), c * z + s * row
    return lax.fori_loop(0, z.shape[0], step, (r, z))[0]


@definition("symmetric_product")
def _(eqn, a, c):
    return eqn.params["alpha"] * (a @ jnp.swapaxes(a, -1, -2)) + eqn.params["beta"] * c


# LU factorization.

def _magnitude(x):
    return abs(x.real) + abs(x.imag) if jnp.iscomplexobj(x) else abs(x)


def _swapped(a, i, j):
    first, second = _row(a, i), _row(a, j)
    return _with_row(_with_row(a, second, i), first, j)


def _lu_panel(a):
    """Of a few columns: L and U in one matrix, the row that each step swaps with its own, and the permutation of rows."""
    m, n = a.shape
    rows, columns = jnp.arange(m), jnp.arange(n)

    def step(k, state):
        a, pivots, order = state
        at = jnp.argmax(jnp.where(rows >= k, _magnitude(_column(a, k)), -1)).astype(jnp.int32)
        a, order = _swapped(a, k, at), _swapped(order, k, at)
        column, pivot = _column(a, k), a[k, k]
        column = jnp.where((rows > k) & (pivot != 0), column / pivot, column)
        a = _with_column(a, column, k)
        a = a - jnp.where(rows > k, column, 0)[:, None] * jnp.where(columns > k, _row(a, k), 0)[None]
        return a, lax.dynamic_update_index_in_dim(pivots, at, k, 0), order
    return lax.fori_loop(0, min(m, n), step, (a, jnp.zeros(min(m, n), jnp.int32), jnp.arange(m, dtype=jnp.int32)))


def _lu(a):
    """By panels of _BLOCK columns."""
    m, n = a.shape
    pivots, order = [], jnp.arange(m, dtype=jnp.int32)
    for k in range(0, min(m, n), _BLOCK):
        end = min(k + _BLOCK, min(m, n))
        panel, swaps, moved = _lu_panel(a[k:, k:end])
        pivots.append(swaps + k)
        if k or end < n:
            below, order = a[k:][moved], jnp.concatenate([order[:k], order[k:][moved]])
            rest = below[:, end:]
            top = solve_lower(panel[:end - k], rest[:end - k], unit_diagonal=True)
            rest = jnp.concatenate([top, rest[end - k:] - panel[end - k:] @ top])
            a = jnp.concatenate([a[:k], jnp.concatenate([below[:, :k], panel, rest], 1)])
        else:
            a, order = panel, moved
    return a, jnp.concatenate(pivots) if pivots else jnp.zeros(0, jnp.int32), order


@definition("lu")
def _(eqn, a):
    return over_batches(_lu, 2)(a)


@definition("lu_pivots_to_permutation")
def _(eqn, pivots):
    n = eqn.params["permutation_size"]

    def permutation(pivots):
        return lax.fori_loop(0, pivots.shape[0], lambda i, order: _swapped(order, i, pivots[i]), jnp.arange(n, dtype=jnp.int32))
    return over_batches(permutation, 1)(pivots)


# Householder reflections 1 - tau v v^H.

def _reflector(x, k, numbers):
    """(beta, tau, v) of the reflection that maps the elements of x from k on to beta in element k; v has 1 there, 0 before."""
    alpha = jnp.where(numbers == k, x, 0).sum()
    rest = jnp.where(numbers > k, x, 0)
    scale = jnp.max(abs(rest), initial=0)
    safe = jnp.where(scale == 0, 1, scale)
    below = safe * jnp.sqrt(_squared(rest / safe).sum())
    length = jnp.hypot(abs(alpha), below)
    trivial = (below == 0) & (jnp.imag(alpha) == 0)
    beta = jnp.where(jnp.real(alpha) < 0, length, -length)
    beta = jnp.where(trivial, jnp.real(alpha), beta)
    divisor = jnp.where(trivial, 1, beta)
    tau = jnp.where(trivial, 0, (beta - alpha) / divisor).astype(x.dtype)
    v = jnp.where(numbers == k, 1, rest / jnp.where(trivial, 1, alpha - beta))
    return beta.astype(x.dtype), tau, v.astype(x.dtype)


def _geqrf(a):
    m, n = a.shape
    rows, columns = jnp.arange(m), jnp.arange(n)

    def step(k, state):
        a, taus = state
        beta, tau, v = _reflector(_column(a, k), k, rows)
        later = jnp.where(columns > k, jnp.conj(v) @ a, 0)
        a = a - jnp.conj(tau) * v[:, None] * later[None]
        column = _column(a, k)
        return _with_column(a, jnp.where(rows > k, v, jnp.where(rows == k, beta, column)), k), lax.dynamic_update_index_in_dim(taus, tau, k, 0)
    return lax.fori_loop(0, min(m, n), step, (a, jnp.zeros(min(m, n), a.dtype)))


@definition("geqrf")
def _(eqn, a):
    return over_batches(_geqrf, 2)(a)


def _geqp3(a):
    """With the column of the largest rest first; the order counts from 0."""
    m, n = a.shape
    rows, columns = jnp.arange(m), jnp.arange(n)

    def step(k, state):
        a, order, taus = state
        rest = jnp.where(rows[:, None] >= k, _squared(a), 0).sum(0)
        at = jnp.argmax(jnp.where(columns >= k, rest, -1))
        a, order = _swapped(a.T, k, at).T, _swapped(order, k, at)
        beta, tau, v = _reflector(_column(a, k), k, rows)
        later = jnp.where(columns > k, jnp.conj(v) @ a, 0)
        a = a - jnp.conj(tau) * v[:, None] * later[None]
        column = _column(a, k)
        a = _with_column(a, jnp.where(rows > k, v, jnp.where(rows == k, beta, column)), k)
        return a, order, lax.dynamic_update_index_in_dim(taus, tau, k, 0)
    return lax.fori_loop(0, min(m, n), step, (a, jnp.arange(n, dtype=jnp.int32), jnp.zeros(min(m, n), a.dtype)))


def _vectors(a, k, rows):
    """The vector of reflection k, from below the diagonal."""
    return jnp.where(rows > k, _column(a, k), jnp.where(rows == k, 1, 0)).astype(a.dtype)


def _householder_product(a, taus):
    m, n = a.shape
    rows, count = jnp.arange(m), taus.shape[0]

    def step(i, q):
        k = count - 1 - i
        v = _vectors(a, k, rows)
        return q - taus[k] * v[:, None] * (jnp.conj(v) @ q)[None]
    return lax.fori_loop(0, count, step, jnp.eye(m, n, dtype=a.dtype))


@definition("householder_product")
def _(eqn, a, taus):
    return over_batches(_householder_product, 2, 1)(a, taus)


@definition("ormqr")
def _(eqn, a, taus, c):
    """Products with Q or its adjoint, a reflection after the other."""
    left, transpose = eqn.params["left"], eqn.params["transpose"]

    def product(a, taus, c):
        rows, count = jnp.arange(a.shape[0]), taus.shape[0]

        def step(i, c):
            k = count - 1 - i if left != transpose else i
            v, tau = _vectors(a, k, rows), jnp.conj(taus[k]) if transpose else taus[k]
            return c - tau * (v[:, None] * (jnp.conj(v) @ c)[None] if left else (c @ v)[:, None] * jnp.conj(v)[None])
        return lax.fori_loop(0, count, step, c)
    return over_batches(product, 2, 1, 2)(a, taus, c)


def _qr(a, full_matrices, pivoting=False):
    m, n = a.shape
    k = min(m, n)
    if pivoting:
        packed, order, taus = _geqp3(a)
    else:
        packed, taus = _geqrf(a)
    width = m if full_matrices else k
    q = jnp.pad(packed, ((0, 0), (0, width - n))) if width > n else packed[:, :width]
    q, r = _householder_product(q, taus), jnp.triu(packed[:width])
    return (q, r, order) if pivoting else (q, r)


@definition("qr")
def _(eqn, a):
    return over_batches(lambda a: _qr(a, eqn.params["full_matrices"], eqn.params.get("pivoting", False)), 2)(a)


@definition("hessenberg")
def _(eqn, a):
    def reduce(a):
        n = a.shape[0]
        rows, columns = jnp.arange(n), jnp.arange(n)

        def step(k, state):
            a, taus = state
            beta, tau, v = _reflector(_column(a, k), k + 1, rows)
            a = a - tau * jnp.where(rows >= 0, a @ v, 0)[:, None] * jnp.conj(v)[None]
            a = a - jnp.conj(tau) * v[:, None] * jnp.where(columns > k, jnp.conj(v) @ a, 0)[None]
            column = _column(a, k)
            column = jnp.where(rows > k + 1, v, jnp.where(rows == k + 1, beta, column))
            return _with_column(a, column, k), lax.dynamic_update_index_in_dim(taus, tau, k, 0)
        return lax.fori_loop(0, n - 1, step, (a, jnp.zeros(n - 1, a.dtype)))
    return over_batches(reduce, 2)(a)


@definition("tridiagonal")
def _(eqn, a):
    """Reflections from both sides; for the upper triangle those of the matrix read backwards."""
    lower = eqn.params["lower"]

    def reduce(a):
        n = a.shape[0]
        given, a = a, a if lower else a[::-1, ::-1]
        a = jnp.tril(a) + _adjoint(jnp.tril(a, -1))
        rows = jnp.arange(n)

        def step(k, state):
            a, packed, taus = state
            beta, tau, v = _reflector(_column(a, k), k + 1, rows)
            w = tau * (a @ v)
            w = w - tau * (jnp.conj(w) @ v) / 2 * v
            a = a - v[:, None] * jnp.conj(w)[None] - w[:, None] * jnp.conj(v)[None]
            column = jnp.where(rows > k + 1, v, jnp.where(rows == k + 1, beta, _column(a, k)))
            return a, _with_column(packed, column, k), lax.dynamic_update_index_in_dim(taus, tau, k, 0)
        a, packed, taus = lax.fori_loop(0, n - 1, step, (a, a, jnp.zeros(n - 1, a.dtype)))
        packed = packed.at[n - 1, n - 1].set(a[n - 1, n - 1])
        diagonal, beside = jnp.diagonal(packed).real, jnp.diagonal(packed, -1).real
        if not lower:
            packed, diagonal, beside, taus = packed[::-1, ::-1], diagonal[::-1], beside[::-1], taus[::-1]
        kept = jnp.tril(packed) + jnp.triu(given, 1) if lower else jnp.triu(packed) + jnp.tril(given, -1)
        return kept, diagonal, beside, taus
    return over_batches(reduce, 2)(a)


@definition("tridiagonal_solve")
def _(eqn, lower, diagonal, upper, b):
    """Elimination that swaps neighboring rows where the lower one has the larger pivot; NaN for a singular matrix."""
    def solve(lower, diagonal, upper, b):
        n = diagonal.shape[0]
        upper = jnp.where(jnp.arange(n) == n - 1, 0, upper)

        def eliminate(row, following):
            d, u, x = row
            l, e, w, y = following
            stays = _magnitude(d) >= _magnitude(l)
            factor = jnp.where(stays, l / d, d / l)
            done = [jnp.where(stays, *pair) for pair in ((d, l), (u, e), (jnp.zeros_like(w), w), (x, y))]
            return (jnp.where(stays, e - factor * u, u - factor * e), jnp.where(stays, w, -factor * w), jnp.where(stays, y - factor * x, x - factor * y)), done
        last, rows = lax.scan(eliminate, (diagonal[0], upper[0], b[0]), (lower[1:], diagonal[1:], upper[1:], b[1:]))
        pivots, above, second, right = [jnp.concatenate([part, end[None]]) for part, end in zip(rows, (last[0], last[1], jnp.zeros_like(last[1]), last[2]))]

        def substitute(known, row):
            first, after = known
            d, u, w, x = row
            value = (x - u * first - w * after) / d
            return (value, first), value
        _, x = lax.scan(substitute, (jnp.zeros_like(b[0]),) * 2, (pivots, above, second, right), reverse=True)
        return jnp.where(jnp.any(pivots == 0), jnp.nan, x)
    return over_batches(solve, 1, 1, 1, 2)(lower, diagonal, upper, b)


# Eigenvalues and singular values by Jacobi rotations. Rows or columns are in two halves; in each round those at the same
# place of both are rotated, then all but the first move on by one place, so that each meets all others in n - 1 rounds
# and is back in its place (Brent and Luk, 1985).

_SWEEPS = 30


def _moved(first, second, axis):
    cut = lambda x, low, high: lax.slice_in_dim(x, low, high, axis=axis)
    n = first.shape[axis]
    if n == 1:
        return first, second
    return (lax.concatenate([cut(first, 0, 1), cut(second, 0, 1), cut(first, 1, n - 1)], axis),
            lax.concatenate([cut(second, 1, n), cut(first, n - 1, n)], axis))


def _rotations(p, q, beside):
    """(c, s) of the rotations that make [[p, beside], [conj(beside), q]] diagonal."""
    size = abs(beside)
    none = size == 0
    phase = jnp.where(none, 1, beside / jnp.where(none, 1, size))
    tau = (q - p) / (2 * jnp.where(none, 1, size))
    t = jnp.where(tau >= 0, 1, -1) / (abs(tau) + jnp.sqrt(1 + tau * tau))
    t = jnp.where(none, 0, t)
    c = lax.rsqrt(1 + t * t)
    return c, t * c * phase


def _turned(first, second, c, s):
    """Columns after their rotation; c and s are rows."""
    return first * c - second * jnp.conj(s), first * s + second * c


def _eigh(a):
    n = a.shape[0]
    half = (n + 1) // 2
    a = jnp.pad(a, ((0, 2 * half - n),) * 2)
    vectors = jnp.eye(n, 2 * half, dtype=a.dtype)
    limit = jnp.finfo(a.dtype).eps ** 2 * _squared(a).sum() / max(n, 1)

    def halves(a):
        return a[:half, :half], a[:half, half:], a[half:, :half], a[half:, half:]

    def turn(_, state):
        a, left, right = state
        tl, tr, bl, br = halves(a)
        c, s = _rotations(jnp.diagonal(tl).real, jnp.diagonal(br).real, jnp.diagonal(tr))
        left, right = _turned(left, right, c, s)
        (tl, tr), (bl, br) = _turned(tl, tr, c, s), _turned(bl, br, c, s)
        rows = [x.T for x in (*_turned(tl.T, bl.T, c, jnp.conj(s)), *_turned(tr.T, br.T, c, jnp.conj(s)))]
        tl, bl, tr, br = rows
        (tl, tr), (bl, br) = _moved(tl, tr, 1), _moved(bl, br, 1)
        (tl, bl), (tr, br) = _moved(tl, bl, 0), _moved(tr, br, 0)
        a = jnp.concatenate([jnp.concatenate([tl, tr], 1), jnp.concatenate([bl, br], 1)])
        return a, *_moved(left, right, 1)

    def sweep(state):
        count, *rest = state
        return count + 1, *lax.fori_loop(0, 2 * half - 1, turn, tuple(rest))

    def apart(state):
        count, a, *_ = state
        off = jnp.where(jnp.eye(2 * half, dtype=bool), 0, _squared(a)).sum()
        return (off > limit) & (count < _SWEEPS)
    _, a, left, right = lax.while_loop(apart, sweep, (0, a, vectors[:, :half], vectors[:, half:]))
    values, vectors = jnp.diagonal(a).real[:n], jnp.concatenate([left, right], 1)[:, :n]
    bad = ~jnp.all(jnp.isfinite(values))
    order = jnp.argsort(values)
    return jnp.where(bad, jnp.nan, vectors[:, order]), jnp.where(bad, jnp.nan, values[order])


@definition("eigh")
def _(eqn, a):
    subset = eqn.params["subset_by_index"]

    def decompose(a):
        triangle = jnp.tril(a, -1) if eqn.params["lower"] else _adjoint(jnp.triu(a, 1))
        diagonal = jnp.where(jnp.eye(a.shape[0], dtype=bool), a.real, 0)
        vectors, values = _eigh(triangle + _adjoint(triangle) + diagonal)
        return (vectors, values) if subset is None else (vectors[:, subset[0]:subset[1]], values[subset[0]:subset[1]])
    return over_batches(decompose, 2)(a)


def _svd(a, full_matrices):
    """For at least as many rows as columns: (u, s, v), by rotations of the columns until they are orthogonal."""
    m, n = a.shape
    half = (n + 1) // 2
    padded, vectors = jnp.pad(a, ((0, 0), (0, 2 * half - n))), jnp.eye(n, 2 * half, dtype=a.dtype)
    eps, real = jnp.finfo(a.dtype).eps, a.real.dtype
    scale = jnp.max(abs(a), initial=0)
    scale = jnp.where((scale == 0) | ~jnp.isfinite(scale), 1, scale)
    none = (eps ** 2 * _squared(a / scale).sum()).astype(real)  # columns of this square are zero up to rounding

    def turn(_, state):
        worst, first, second, left, right = state
        p, q, beside = _squared(first).sum(0), _squared(second).sum(0), (jnp.conj(first) * second).sum(0)
        angle = abs(beside) / jnp.sqrt(jnp.where(p * q == 0, 1, p * q))
        worst = jnp.maximum(worst, jnp.max(jnp.where((p > none) & (q > none), angle, 0)))
        c, s = _rotations(p, q, beside)
        return worst, *_moved(*_turned(first, second, c, s), 1), *_moved(*_turned(left, right, c, s), 1)

    def sweep(state):
        count, _, *rest = state
        return count + 1, *lax.fori_loop(0, 2 * half - 1, turn, (jnp.zeros((), real), *rest))

    def apart(state):
        count, worst, *_ = state
        return (worst > 4 * eps) & (count < _SWEEPS)
    padded = padded / scale
    start = (0, jnp.ones((), real), padded[:, :half], padded[:, half:], vectors[:, :half], vectors[:, half:])
    _, _, first, second, left, right = lax.while_loop(apart, sweep, start)
    columns, vectors = [jnp.concatenate(pair, 1)[:, :n] for pair in ((first, second), (left, right))]
    values = jnp.sqrt(_squared(columns).sum(0))
    order = jnp.argsort(-values)
    columns, vectors, values = columns[:, order], vectors[:, order], values[order]
    kept = values > eps * values[:1]
    units = jnp.where(kept, columns / jnp.where(kept, values, 1), 0)
    # Reflections of orthogonal columns of length 1 give these up to their sign, and a basis of the rest.
    u, r = _qr(units, full_matrices)
    sign = jnp.diagonal(r)
    sign = jnp.where(abs(sign) > 0.5, sign / jnp.where(abs(sign) > 0.5, abs(sign), 1), 1)
    u = jnp.concatenate([u[:, :n] * sign, u[:, n:]], 1) if u.shape[1] > n else u * sign
    bad = ~jnp.all(jnp.isfinite(a))
    return [jnp.where(bad, jnp.nan, x) for x in (u, values * scale, vectors)]


@definition("svd")
def _(eqn, a):
    p = eqn.params
    subset = p.get("subset_by_index")

    def decompose(a):
        m, n = a.shape
        if m == 0 or n == 0:
            u, s, vh = jnp.eye(m, m if p["full_matrices"] else 0, dtype=a.dtype), jnp.zeros(0, a.real.dtype), \
                jnp.eye(n if p["full_matrices"] else 0, n, dtype=a.dtype)
        elif m >= n:
            u, s, v = _svd(a, p["full_matrices"])
            vh = _adjoint(v)
        else:
            v, s, u = _svd(_adjoint(a), p["full_matrices"])
            vh = _adjoint(v)
        if subset is not None:
            s, u, vh = s[subset[0]:subset[1]], u[:, subset[0]:subset[1]], vh[subset[0]:subset[1]]
        return (s, u, vh) if p["compute_uv"] else (s,)
    return over_batches(decompose, 2)(a)


@definition("custom_linear_solve")
def _(eqn, *values):
    """The solver that the program gives; the others are for derivatives."""
    counts, programs = eqn.params["const_lengths"], eqn.params["jaxprs"]
    first = counts.matvec + counts.vecmat
    constants, right = values[first:first + counts.solve], values[sum(counts):]
    return jax.extend.core.jaxpr_as_fun(programs.solve)(*constants, *right)
