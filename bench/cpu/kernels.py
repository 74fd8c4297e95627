# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single operations and chains: functions of JAX, which Tessera imports, with the least bytes to move and operations to execute."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

F, I, B = np.float32, np.int32, jnp.bfloat16


@dataclasses.dataclass
class Kernel:
    """fn: a function of JAX; operands: shape and type each, integers are indices below `below`. bytes and flops: the least of
    one call; window: (stride, padding, which of the three) of a convolution."""

    name: str
    fn: Callable
    operands: list[tuple[tuple[int, ...], type]]
    bytes: int
    flops: int = 0
    below: int = 0
    window: tuple[int, int, str] | None = None

    def values(self, random):
        return [random.integers(0, self.below, shape, dtype=type) if type is I else random.standard_normal(shape, F).astype(type)
                for shape, type in self.operands]


def gradient(fn, count=1):
    """Gradients of sum(fn(...) * g) by the first `count` operands; g is the last one."""
    return lambda *values: jax.vjp(lambda *some: fn(*some, *values[count:-1]), *values[:count])[1](values[-1])


def layer_norm(x, gain, bias):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * gain + bias


def bias_gelu(x, bias):
    return jax.nn.gelu(x + bias)


def cross_entropy(x, labels):
    return (jax.nn.logsumexp(x, -1) - jnp.take_along_axis(x, labels[:, None], -1)[:, 0]).mean()


def adamw(w, g, m, v):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return w - 1e-3 * (m / (jnp.sqrt(v) + 1e-8) + 0.01 * w), m, v


def attention(q, k, v):
    scores = jnp.einsum("bhsd,bhtd->bhst", q, k) * q.shape[-1] ** -0.5
    return jnp.einsum("bhst,bhtd->bhsd", jax.nn.softmax(scores, -1), v)


def max_pool(x):
    return lax.reduce_window(x, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def kernels(small=False):
    """The rows; small: with tiny sizes, to check that all of them run."""
    def s(n):
        return max(4, n // 64) if small else n
    rows, columns, vocabulary, batch = s(8192), s(1024), s(50257), s(512)
    wide, table, found, depth = s(4096), s(65536), s(4096), s(512)
    heads, tokens, d = (2, 32, 16) if small else (12, 1024, 64)
    n = rows * columns * 4
    parameters = s(1 << 24)
    return [
        Kernel("softmax", lambda x: jax.nn.softmax(x, -1), [((rows, columns), F)], 2 * n),
        Kernel("layer norm", layer_norm, [((rows, columns), F), ((columns,), F), ((columns,), F)], 2 * n),
        Kernel("layer norm, gradient", gradient(layer_norm, 3), [((rows, columns), F), ((columns,), F), ((columns,), F), ((rows, columns), F)], 3 * n),
        Kernel("bias + gelu", bias_gelu, [((rows, columns), F), ((columns,), F)], 2 * n),
        Kernel("bias + gelu, gradient", gradient(bias_gelu, 2), [((rows, columns), F), ((columns,), F), ((rows, columns), F)], 3 * n),
        Kernel("cross entropy, gradient", lambda x, labels: jax.grad(cross_entropy)(x, labels), [((batch, vocabulary), F), ((batch,), I)],
               8 * batch * vocabulary, below=vocabulary),
        Kernel("AdamW", adamw, [((parameters,), F)] * 4, 28 * parameters),
        Kernel("column sum", lambda x: x.sum(0), [((rows, columns), F)], n),
        Kernel("row sum", lambda x: x.sum(1), [((rows, columns), F)], n),
        Kernel("transpose", lambda x: x.T, [((wide, wide), F)], 8 * wide * wide),
        Kernel("max pool 2x2", max_pool, [((8, s(64), s(112), s(112)), F)], 5 * 8 * s(64) * s(112) ** 2),
        Kernel("cumsum", lambda x: jnp.cumsum(x, 0), [((rows, columns), F)], 2 * n),
        Kernel("sort rows", lambda x: jnp.sort(x, -1), [((16, s(16384)), F)], 8 * 16 * s(16384)),
        Kernel("top 8 of rows", lambda x: lax.top_k(x, 8)[0], [((64, vocabulary), F)], 4 * 64 * vocabulary),
        Kernel("look-up", lambda t, i: jnp.take(t, i, 0, mode="clip"), [((table, depth), F), ((found,), I)], 8 * found * depth, below=table),
        Kernel("scatter-add", lambda t, i, u: t.at[i].add(u), [((table, 64), F), ((found,), I), ((found, 64), F)], 512 * table, below=table),
        Kernel("attention", attention, [((8, heads, tokens, d), F)] * 3, 16 * 8 * heads * tokens * d, 4 * 8 * heads * tokens * tokens * d),
        Kernel("attention, gradient", gradient(attention, 3), [((8, heads, tokens, d), F)] * 4, 28 * 8 * heads * tokens * d,
               14 * 8 * heads * tokens * tokens * d),
        *products(small), *convolutions(small),
    ]


def products(small):
    shapes = [(512, 512, 512), (1024, 1024, 4096), (64, 4096, 1024), (1024, 4096, 1024), (8192, 768, 768)]
    found = []
    for m, k, n in shapes:
        if small:
            m, k, n = m // 16, k // 16, n // 16
        size = 4 * (m * k + k * n + m * n)
        found.append(Kernel(f"product {m}x{k}x{n}", lambda a, b: a @ b, [((m, k), F), ((k, n), F)], size, 2 * m * k * n))
    m, k, n = (64, 64, 64) if small else (1024, 1024, 1024)
    size = 4 * (m * k + k * n + m * n)
    found.append(Kernel(f"product {m}x{k}x{n}, right transposed", lambda a, b: a @ b.T, [((m, k), F), ((n, k), F)], size, 2 * m * k * n))
    found.append(Kernel(f"product {m}x{k}x{n}, left transposed", lambda a, b: a.T @ b, [((k, m), F), ((k, n), F)], size, 2 * m * k * n))
    for m, k, n in [(1024, 1024, 1024), (64, 4096, 1024)]:
        if small:
            m, k, n = m // 16, k // 16, n // 16
        found.append(Kernel(f"product {m}x{k}x{n}, bf16", lambda a, b: a @ b, [((m, k), B), ((k, n), B)], 2 * (m * k + k * n + m * n), 2 * m * k * n))
    return found


def convolutions(small):
    # batch, channels, extent, features, window, stride
    shapes = [(2, 16, 8, 16, 3, 1)] if small else [(8, 64, 56, 64, 3, 1), (8, 64, 56, 128, 3, 2), (8, 256, 14, 256, 3, 1), (8, 512, 7, 512, 3, 1),
                                                   (8, 256, 14, 1024, 1, 1), (8, 3, 224, 64, 7, 2)]
    found = []
    for n, c, extent, o, k, stride in shapes:
        pad, places = k // 2, (extent + 2 * (k // 2) - k) // stride + 1
        x, w, y = (n, c, extent, extent), (o, c, k, k), (n, o, places, places)

        def forward(x, w, stride=stride, pad=pad):
            return lax.conv_general_dilated(x, w, (stride, stride), [(pad, pad)] * 2)
        by_input = lambda x, w, g, f=forward: jax.vjp(lambda x: f(x, w), x)[1](g)[0]
        by_weights = lambda x, w, g, f=forward: jax.vjp(lambda w: f(x, w), w)[1](g)[0]
        size, flops = 4 * sum(map(np.prod, (x, w, y))), 2 * int(np.prod(y)) * c * k * k
        for of, fn, more in (("forward", forward, []), ("by input", by_input, [(y, F)]), ("by weights", by_weights, [(y, F)])):
            name = f"convolution {c}x{extent}x{extent} to {o}, {k}x{k}, stride {stride}, {of}"
            found.append(Kernel(name, fn, [(x, F), (w, F), *more], int(size), flops, window=(stride, pad, of)))
    return found
