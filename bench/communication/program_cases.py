# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps on grids, convolutions and norms along a cut dimension, for operations.py: grids of 64 x 64, images NHWC with cut rows."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec as P

ROW = 64 * 4  # bytes of a row of a grid
C = 32        # channels of norms


def padded(u):
    p = jnp.pad(u, 1)
    return 0.25 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:])


def points(u):
    """Steps with all 27 neighbors, by rolls."""
    around = [(i, j, k) for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1)]
    return lax.fori_loop(0, 10, lambda _, u: sum(jnp.roll(u, by, (0, 1, 2)) / (1 + i) for i, by in enumerate(around)), u)


def fourth_order(u):
    """Steps with second differences of fourth order along all dimensions, by rolls."""
    difference = lambda u, d: 16 * (jnp.roll(u, 1, d) + jnp.roll(u, -1, d)) - jnp.roll(u, 2, d) - jnp.roll(u, -2, d) - 30 * u
    return lax.fori_loop(0, 10, lambda _, u: u + 0.01 * sum(difference(u, d) for d in range(3)), u)


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


def transposed():
    return lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def resized(shape, method):
    return lambda u: jax.image.resize(u, shape, method)


def second_difference(u):
    distance = jnp.abs(jnp.arange(64)[:, None] - jnp.arange(64))
    return jnp.where(distance == 0, -2.0, jnp.where(distance == 1, 1.0, 0.0)) @ u


def lifted(a):
    """A level of the 5/3 wavelet: averages and details."""
    even, odd = a[0::2], a[1::2]
    detail = odd - 0.5 * (even + jnp.concatenate([even[1:], even[-1:]]))
    return even + 0.25 * (detail + jnp.concatenate([detail[:1], detail[:-1]])), detail


def frames(s, w):
    return s[jnp.arange(0, 4096 - 255, 128)[:, None] + jnp.arange(256)] * w


def frames_of_table(s, w):
    return s[np.arange(0, 4096 - 255, 128)[:, None] + np.arange(256)] * w


def frames_by_slices(s, w):
    return jax.vmap(lambda start: lax.dynamic_slice_in_dim(s, start, 256))(jnp.arange(31) * 128) * w


def recurrence(xs, w):
    return lax.scan(lambda h, x: (jnp.tanh(h @ w + x), h), jnp.zeros(64), xs)[1]


def nine_points(mode):
    """A sum over neighbors in rows and columns, of a grid that is continued beyond its ends."""
    def fn(u):
        p = jnp.pad(u, 1, mode=mode)
        return sum(p[i:i + 64, j:j + 64] * (1 + i + 3 * j) for i in range(3) for j in range(3))
    return fn


def continued(mode):
    """A convolution of images that are continued beyond their ends."""
    return lambda x, w: lax.conv_general_dilated(jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), mode=mode), w, (1, 1), "VALID",
                                                 dimension_numbers=("NHWC", "HWIO", "NHWC"))


def group_norm(x, groups=2):
    """Of images NCHW, by a reshape that merges channels of a group, rows and columns."""
    y = x.reshape(len(x), groups, -1)
    centred = y - y.mean(2, keepdims=True)
    return (centred * lax.rsqrt((centred ** 2).mean(2, keepdims=True) + 1e-5)).reshape(x.shape)


def windows(x, w):
    """Attention within windows of 4 x 4 elements, whose number is merged with that of the images."""
    y = (x @ w).reshape(-1, 2, 4, 2, 4, 12).transpose(0, 1, 3, 2, 4, 5).reshape(-1, 16, 12)
    q, k, v = jnp.split(y, 3, -1)
    return ((jax.nn.softmax(q @ k.swapaxes(1, 2)) @ v) ** 2).mean()


def u_net(x, down, up, out):
    """A level of a U-Net: a convolution with stride 2 and back, joined with its input."""
    dims = ("NCHW", "OIHW", "NCHW")
    down, up, out = 0.1 * down, 0.1 * up, 0.1 * out
    small = jax.nn.silu(group_norm(lax.conv_general_dilated(x, down, (2, 2), ((1, 1), (1, 1)), dimension_numbers=dims)))
    large = lax.conv_transpose(small, up, (2, 2), "VALID", dimension_numbers=dims)
    return lax.conv_general_dilated(jnp.concatenate([x, large], 1), out, (1, 1), "SAME", dimension_numbers=dims)


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


def by_device(body, of, to):
    """A function of a tensor that is written for each device, by its blocks."""
    mesh = Mesh(jax.devices()[:8], ("s",))
    return lambda x: jax.shard_map(body, mesh=mesh, in_specs=of, out_specs=to)(x)


def ring(x):
    """Of each device: a sum over the blocks of all, which go around."""
    n = lax.axis_size("s")

    def turn(state, _):
        block, total = state
        return (lax.ppermute(block, "s", [(i, (i + 1) % n) for i in range(n)]), total + jnp.tanh(x @ block.T) @ block), None
    return lax.scan(turn, (x, jnp.zeros_like(x)), None, length=n)[0][1]


def program_cases(Case):
    shape = lambda *extents: jax.ShapeDtypeStruct(extents, jnp.float32)
    grid, images, rows = shape(64, 64), shape(2, 64, 16, 8), (None, "s")
    reduced = lambda elements: 2 * elements * 4 * 7 // 8
    squares = lambda x, centred, axes: (centred ** 2).mean(axes, keepdims=True)
    var = lambda x, centred, axes: jnp.var(x, axes, keepdims=True)
    border = 16 * 8 * 4 * 2  # bytes of a row of both images
    i32 = lambda *extents: jax.ShapeDtypeStruct(extents, jnp.int32)
    planes, down_rows = shape(2, 8, 64, 16), (None, None, "s")
    weights = [shape(8, 8, 3, 3), shape(8, 8, 2, 2), shape(8, 16, 3, 3)]

    cube, blocks = shape(64, 64, 64), Mesh(np.array(jax.devices()[:8]).reshape(2, 2, 2), ("x", "y", "z"))

    def normed(axes, variance, x, cut, hand, why):
        outs = (cut, cut, None, None)
        return Case(with_gradients(norm(axes, variance)), [x, shape(C), shape(C), x], hand, why, cut=[cut, None, None, cut], out=outs)
    return {
        "shard_map: ppermute": Case(
            by_device(lambda x: lax.ppermute(x, "s", list(enumerate((3, 7, 5, 1, 0, 6, 2, 4)))), P("s"), P("s")), [grid], 64 * 64 * 4 // 8,
            "a part, to another device"),
        "shard_map: psum_scatter": Case(
            by_device(lambda x: lax.psum_scatter(x, "s", tiled=True), P(None, "s"), P("s")), [grid], 64 * 8 * 4 * 7 // 8,
            "the blocks of the others", cut=[rows]),
        "shard_map: all_to_all": Case(
            by_device(lambda x: lax.all_to_all(x, "s", 1, 0, tiled=True), P("s"), P(None, "s")), [grid], 64 * 64 * 4 // 8 * 7 // 8,
            "the blocks of the others", out=rows),
        "shard_map: ring in a loop": Case(by_device(ring, P("s"), P("s")), [grid], 7 * 64 * 64 * 4 // 8, "the parts of the others"),
        "grid: padded": Case(padded, [grid], 2 * ROW, "a row from each neighbor"),
        "grid: padded, gradient": Case(lambda u, g: jax.vjp(padded, u)[1](g)[0], [grid, grid], 2 * ROW, "the same"),
        "grid: red and black": Case(red_black, [grid, grid], 4 * ROW, "a row from each neighbor, twice"),
        "grid: rolls of fourth order": Case(
            lambda u: 8 * (jnp.roll(u, -1, 0) - jnp.roll(u, 1, 0)) - jnp.roll(u, -2, 0) + jnp.roll(u, 2, 0), [grid], 4 * ROW,
            "two rows from each neighbor, of the first and last the other"),
        "grid: rolls by 1, 3 and 7": Case(lambda u: jnp.roll(u, 1, 0) * jnp.roll(u, 3, 0) + jnp.roll(u, 7, 0), [grid], 7 * ROW,
                                          "seven rows from the neighbor"),
        "grid: 27 points": Case(points, [cube], 10 * (34 ** 3 - 32 ** 3) * 4, "around a block of 32^3 one of 34^3, in ten steps",
                                cut=[("x", "y", "z")], out=("x", "y", "z"), mesh=blocks),
        "grid: steps of fourth order": Case(fourth_order, [cube], 10 * 4 * 64 * ROW, "two planes from each neighbor, in ten steps"),
        "grid: interior": Case(heat, [grid], 2 * ROW, "a row from each neighbor"),
        "grid: leapfrog": Case(leapfrog, [grid, grid], 2 * ROW, "a row of each field", out=("s", "s")),
        "grid: gradient by differences": Case(lambda x: jnp.gradient(x, axis=0), [grid], 2 * ROW, "a row from each neighbor"),
        "grid: Poisson by cosines": Case(poisson, [grid], 4 * 8 * ROW * 7 // 8, "four products along rows and columns in turn: all to all"),
        "grid: wrapped around": Case(nine_points("wrap"), [grid], 2 * ROW, "a row from each neighbor, of the first and last the other"),
        "grid: reflected": Case(nine_points("reflect"), [grid], 2 * ROW, "a row from each neighbor"),
        "grid: with repeated edges": Case(nine_points("edge"), [grid], 2 * ROW, "the same"),
        "grid: reflected, gradient": Case(lambda u, g: jax.vjp(nine_points("reflect"), u)[1](g)[0], [grid, grid], 2 * ROW, "the same"),
        "grid: wrapped around, gradient": Case(lambda u, g: jax.vjp(nine_points("wrap"), u)[1](g)[0], [grid, grid], 2 * ROW, "the same"),
        "convolution, reflected, gradients": Case(
            with_gradients(continued("reflect")), [images, shape(3, 3, 8, 8), images], 2 * border + 2 * border + reduced(3 * 3 * 8 * 8),
            "a row of x and of dy from each neighbor, the sum of dw", cut=[rows, None, rows], out=(rows, rows, None)),
        "convolution, with repeated edges, gradients": Case(
            with_gradients(continued("edge")), [images, shape(3, 3, 8, 8), images], 2 * border + 2 * border + reduced(3 * 3 * 8 * 8),
            "a row of x and of dy from each neighbor, the sum of dw", cut=[rows, None, rows], out=(rows, rows, None)),
        "convolution, wrapped around, gradients": Case(
            with_gradients(continued("wrap")), [images, shape(3, 3, 8, 8), images], 2 * border + 2 * border + reduced(3 * 3 * 8 * 8),
            "the same", cut=[rows, None, rows], out=(rows, rows, None)),
        "convolution, wrapped around": Case(
            continued("wrap"), [images, shape(3, 3, 8, 8)], 2 * border, "a row from each neighbor", cut=[rows, None], out=rows),
        "halves added": Case(lambda u: u[:32] + u[32:], [grid], 8 * ROW, "device 1 sends its rows to devices 2 and 3"),
        "halves, gated": Case(lambda u: u[:32] * jax.nn.sigmoid(u[32:]), [grid], 8 * ROW, "the same"),
        "thirds added": Case(lambda u: u[:21] + u[21:42] + u[42:63], [grid], 9 * ROW, "device 1 lacks nine rows"),
        "Fourier transform of rows and columns": Case(lambda u: jnp.abs(jnp.fft.fft2(u)), [grid], 2 * 64 * ROW // 8 * 7 // 8,
                                                      "rows are transformed, then two parts all to all", out="?"),
        "Fourier transform and back": Case(
            lambda u: jnp.fft.ifft2(jnp.fft.fft2(u) * jnp.arange(64)).real, [grid], 2 * 2 * 64 * ROW // 8 * 7 // 8,
            "rows are transformed, then two parts all to all, columns are transformed there and back, then the same"),
        "windows of 10 images": Case(jax.value_and_grad(windows, 1), [shape(10, 8, 8, 4), shape(4, 12)], reduced(1 + 48),
                                     "the loss and its gradient; images stay where they are", cut=["s", None], out=None),
        "group norm, rows merged with channels": Case(group_norm, [planes], reduced(2 * 4), "a mean and a variance of each group",
                                                      cut=[down_rows], out=down_rows),
        "U-Net, rows": Case(u_net, [planes, *weights], border + reduced(2 * 4) + 4 * border,
                            "a row from before, statistics, a row of both inputs from each neighbor",
                            cut=[down_rows, None, None, None], out=down_rows),
        "U-Net, rows, gradients": Case(
            with_gradients(u_net), [planes, *weights, planes], border + 4 * reduced(4) + 4 * border + 2 * border + border // 2
            + reduced(8 * 8 * 9 + 8 * 8 * 4 + 8 * 16 * 9), "the same; a row of dy from each neighbor, one of dy of half as many columns",
            cut=[down_rows, None, None, None, down_rows], out=(down_rows, down_rows, None, None, None)),
        "resize, nearest, convolved": Case(
            lambda x, w: convolution()(jax.image.resize(x, (2, 128, 32, 8), "nearest"), w), [images, shape(3, 3, 8, 8)], 2 * border,
            "a row of the small images from each neighbor", cut=[rows, None], out=rows),
        "resize, bilinear, convolved": Case(
            lambda x, w: convolution()(jax.image.resize(x, (2, 128, 32, 8), "bilinear"), w), [images, shape(3, 3, 8, 8)], 2 * border,
            "the same", cut=[rows, None], out=rows),
        "resize, nearest, gradient": Case(
            jax.grad(lambda x, y: (jax.image.resize(x, (2, 128, 32, 8), "nearest") * y).sum()), [images, shape(2, 128, 32, 8)], 0,
            "a row is the sum of its own two", cut=[rows, rows], out=rows),
        "convolution by groups": Case(convolution(feature_group_count=4), [images, shape(3, 3, 2, 16)], 2 * border,
                                      "a row from each neighbor", cut=[rows, None], out=rows),
        "convolution by channels": Case(convolution(feature_group_count=8), [images, shape(5, 5, 1, 8)], 4 * border,
                                        "two rows from each neighbor", cut=[rows, None], out=rows),
        "transposed convolution, kernel 2": Case(transposed(), [images, shape(2, 2, 8, 8)], 0, "a row makes two",
                                                 cut=[rows, None], out=rows),
        "transposed convolution, kernel 4": Case(transposed(), [images, shape(4, 4, 8, 8)], 2 * border,
                                                 "a row makes four: one from each neighbor", cut=[rows, None], out=rows),
        "transposed convolution, gradients": Case(with_gradients(transposed()), [images, shape(4, 4, 8, 8), shape(2, 128, 32, 8)],
                                                  2 * border + 4 * border + reduced(4 * 4 * 8 * 8),
                                                  "the same, a row of twice the width of dy from each neighbor, the sum of dw",
                                                  cut=[rows, None, rows], out=(rows, rows, None)),
        "resize, bilinear": Case(resized((128, 128), "bilinear"), [grid], 2 * ROW, "a row from each neighbor"),
        "resize, bilinear, gradient": Case(with_gradients(resized((128, 128), "bilinear")), [grid, shape(128, 128)],
                                           4 * ROW, "the same, and of what columns were added to, one of each neighbor",
                                           out=("s", "s")),
        "resize, cubic": Case(resized((128, 64), "cubic"), [grid], 4 * ROW, "two rows from each neighbor"),
        "resize, images to half": Case(resized((2, 32, 8, 8), "bilinear"), [images], 2 * border // 2,
                                       "a row from each neighbor, of half as many columns", cut=[rows], out=rows),
        "product with a band": Case(second_difference, [grid], 2 * ROW, "a row from each neighbor"),
        "wavelet by lifting": Case(lifted, [grid], 2 * ROW, "an even row from behind, a detail from before", out=("s", "s")),
        "frames of a signal": Case(frames, [shape(4096), shape(256)], 128 * 4, "half a frame from the next", cut=["s", None], out="?"),
        "frames by a constant table": Case(frames_of_table, [shape(4096), shape(256)], 128 * 4, "the same", cut=["s", None], out="?"),
        "frames by slices": Case(frames_by_slices, [shape(4096), shape(256)], 128 * 4, "the same", cut=["s", None], out="?"),
        "update of odd rows": Case(lambda a, u: a.at[1::2].set(u), [grid, shape(32, 64)], 0, "parts are parts"),
        "boundary values": Case(lambda a: a.at[0].set(1.0).at[-1].set(2.0), [grid], 0, "its owner writes"),
        "elements of rows": Case(lambda a, i: a[jnp.arange(64)[:, None], i], [grid, i32(64, 8)], 0, "a row is where its indices are"),
        "scan of cut rows": Case(recurrence, [shape(128, 64), shape(64, 64)], 128 * 64 * 4 * 7 // 8,
                                 "all iterations need all rows: gathered once", cut=["s", None], out=None),
        "batch norm, gradients": normed((0, 1), squares, shape(64, 16, C), "s", reduced(4 * C),
                                        "sums of x, of squares, of dy and of x dy"),
        "batch norm by var, gradients": normed((0, 1), var, shape(64, 16, C), "s", reduced(4 * C), "the same"),
        "instance norm, gradients": normed((1, 2), squares, shape(4, 32, 8, C), rows, reduced(4 * 4 * C),
                                           "the same of each image; those of scale and offset are made of them"),
    }
