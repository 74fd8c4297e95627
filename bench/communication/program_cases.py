# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps on grids, convolutions and norms along a cut dimension, for operations.py: grids of 64 x 64, images NHWC with cut rows."""

import jax
import jax.numpy as jnp
from jax import lax

ROW = 64 * 4  # bytes of a row of a grid
C = 32        # channels of norms


def padded(u):
    p = jnp.pad(u, 1)
    return 0.25 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:])


def red_black(u, f):
    i = jnp.arange(64)
    red = (i[:, None] + i) % 2 == 0
    half = lambda u, where: jnp.where(where, padded(u) - 0.25 * f, u)
    return half(half(u, red), ~red)


def heat(u):
    return u.at[1:-1, 1:-1].add(0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]))


def leapfrog(e, h):
    h = h.at[:-1].add(0.5 * (e[1:] - e[:-1]))
    return e.at[1:].add(0.5 * (h[1:] - h[:-1])), h


def poisson(x):
    k = jnp.arange(64, dtype=jnp.float32)
    c = jnp.cos(jnp.pi / 64 * (k[:, None] + 0.5) * k)
    return c @ ((c.T @ x @ c) / (1 + k[:, None] ** 2 + k ** 2)) @ c.T


def convolution(**options):
    return lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), **options)


def norm(axes, variance):
    def fn(x, scale, offset):
        centred = x - x.mean(axes, keepdims=True)
        return centred / jnp.sqrt(variance(x, centred, axes) + 1e-5) * scale + offset
    return fn


def with_gradients(fn):
    def together(*args):
        output, back = jax.vjp(fn, *args[:-1])
        return output, *back(args[-1])
    return together


def program_cases(Case):
    shape = lambda *extents: jax.ShapeDtypeStruct(extents, jnp.float32)
    grid, images, rows = shape(64, 64), shape(2, 64, 16, 8), (None, "s")
    reduced = lambda elements: 2 * elements * 4 * 7 // 8
    squares = lambda x, centred, axes: (centred ** 2).mean(axes, keepdims=True)
    var = lambda x, centred, axes: jnp.var(x, axes, keepdims=True)
    border = 16 * 8 * 4 * 2  # a row of both images

    def normed(axes, variance, x, cut, hand, why):
        outs = (cut, cut, None, None)
        return Case(with_gradients(norm(axes, variance)), [x, shape(C), shape(C), x], hand, why, cut=[cut, None, None, cut], out=outs)
    return {
        "grid: padded": Case(padded, [grid], 2 * ROW, "a row from each neighbour"),
        "grid: padded, gradient": Case(lambda u, g: jax.vjp(padded, u)[1](g)[0], [grid, grid], 2 * ROW, "the same"),
        "grid: red and black": Case(red_black, [grid, grid], 4 * ROW, "a row from each neighbour, twice"),
        "grid: interior": Case(heat, [grid], 2 * ROW, "a row from each neighbour"),
        "grid: leapfrog": Case(leapfrog, [grid, grid], 2 * ROW, "a row of each field", out=("s", "s")),
        "grid: gradient by differences": Case(lambda x: jnp.gradient(x, axis=0), [grid], 2 * ROW, "a row from each neighbour"),
        "grid: Poisson by cosines": Case(poisson, [grid], 4 * 8 * ROW * 7 // 8, "four products along rows and columns in turn: all to all"),
        "convolution by groups": Case(convolution(feature_group_count=4), [images, shape(3, 3, 2, 16)], 2 * border,
                                      "a row from each neighbour", cut=[rows, None], out=rows),
        "convolution by channels": Case(convolution(feature_group_count=8), [images, shape(5, 5, 1, 8)], 4 * border,
                                        "two rows from each neighbour", cut=[rows, None], out=rows),
        "batch norm, gradients": normed((0, 1), squares, shape(64, 16, C), "s", reduced(4 * C),
                                        "sums of x, of squares, of dy and of x dy"),
        "batch norm by var, gradients": normed((0, 1), var, shape(64, 16, C), "s", reduced(4 * C), "the same"),
        "instance norm, gradients": normed((1, 2), squares, shape(4, 32, 8, C), rows, reduced(4 * 4 * C),
                                           "the same of each image; those of scale and offset are made of them"),
    }
