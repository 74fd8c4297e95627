# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batches for operations.py, cut over 8 devices: concatenated of parts, through a network of each row and apart; places of rows."""

import jax
import jax.numpy as jnp
from jax import lax

ROWS, WIDTH, HIDDEN, OUT = 256, 64, 128, 32


def network(x, w, v):
    return jax.nn.relu(x @ w / 8) @ v / 8


def guided(f):
    """Classifier-free guidance: a batch with conditions and the same without."""
    def step(x, c, *weights):
        with_condition, without = jnp.split(f(jnp.concatenate([x + c, x]), *weights), 2)
        return without + 7.5 * (with_condition - without)
    return step


def sampled(x, c, w, v):
    return lax.fori_loop(0, 20, lambda _, x: x + 0.01 * guided(network)(x, c, w, v), x)


def convolved(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def unet(x, down, up):
    """Two convolutions with a group norm, and attention over pixels between."""
    h = convolved(x, down / 6)
    groups = h.reshape(*h.shape[:3], 4, -1)
    groups = (groups - groups.mean((1, 2, 4), keepdims=True)) * lax.rsqrt(groups.var((1, 2, 4), keepdims=True) + 1e-5)
    pixels = jax.nn.silu(groups).reshape(len(h), -1, h.shape[-1])
    pixels += jax.nn.softmax(pixels @ pixels.swapaxes(1, 2) / 4) @ pixels
    return convolved(pixels.reshape(h.shape), up / 32)


def simclr(a, b, w, v):
    """Each row is to be found among all others, its pair in the other part."""
    z = network(jnp.concatenate([a, b]), w, v)
    z /= jnp.linalg.norm(z, axis=1, keepdims=True)
    scores = jnp.where(jnp.eye(len(z), dtype=bool), -1e9, z @ z.T / 0.1)
    pairs = (jnp.arange(len(z)) + len(a)) % len(z)
    return jnp.mean(jax.nn.logsumexp(scores, 1) - jnp.take_along_axis(scores, pairs[:, None], 1)[:, 0])


def retrieval(q, p, n, w, v):
    """Questions, their passages, and four other passages each, in one batch."""
    rows = len(q)
    z = network(jnp.concatenate([q, p, n.reshape(-1, WIDTH)]), w, v)
    q, p, n = z[:rows], z[rows:2 * rows], z[2 * rows:].reshape(rows, 4, -1)
    scores = jnp.concatenate([(q * p).sum(-1, keepdims=True), jnp.einsum("bd,bnd->bn", q, n)], 1)
    return -jax.nn.log_softmax(scores)[:, 0].mean()


def adversarial(real, fake, w, v):
    scores = network(jnp.concatenate([real, fake]), w, v)
    return jax.nn.softplus(-scores[:len(real)]).mean() + jax.nn.softplus(scores[len(real):]).mean()


def masked(x, place, w):
    """Some places of each row, by flat indices, as BERT gathers the tokens that it predicts."""
    length = x.shape[1]
    flat = jnp.clip(place, 0, length - 1) + jnp.arange(len(x))[:, None] * length
    return (x @ w / 8).reshape(-1, w.shape[1])[flat.reshape(-1)]


def masked_rows(x, place, w):
    """The same by repeated rows."""
    return (x @ w / 8)[jnp.repeat(jnp.arange(len(x)), place.shape[1]), place.reshape(-1)]


def batch_cases(Case):
    shape = lambda *extents, dtype=jnp.float32: jax.ShapeDtypeStruct(extents, dtype)
    sent = lambda elements: elements * 4 * 7 // 8
    reduced = lambda elements: 2 * sent(elements)
    x, c, w, v = shape(ROWS, WIDTH), shape(WIDTH), shape(WIDTH, HIDDEN), shape(HIDDEN, OUT)
    square, weights = shape(HIDDEN, WIDTH), WIDTH * HIDDEN + HIDDEN * OUT
    images, down, up = shape(16, 8, 8, 4), shape(3, 3, 4, 16), shape(3, 3, 16, 4)
    gradient = lambda loss, first: jax.grad(loss, (first, first + 1))
    tokens = [shape(ROWS, 32, WIDTH), shape(ROWS, 4, dtype=jnp.int32), shape(WIDTH, OUT)]
    own = "a device joins its rows of each part"
    return {
        "batch: guidance": Case(guided(network), [x, c, w, square], 0, own, cut=["s", None, None, None]),
        "batch: guidance, 20 steps": Case(sampled, [x, c, w, square], 0, own, cut=["s", None, None, None]),
        "batch: guidance, U-Net": Case(guided(unet), [images, shape(4), down, up], 0, own, cut=["s", None, None, None]),
        "batch: guidance, U-Net, gradients": Case(
            gradient(lambda *a: (guided(unet)(*a) ** 2).mean(), 2), [images, shape(4), down, up], reduced(2 * 9 * 4 * 16),
            "gradients of the weights", cut=["s", None, None, None], out=None),
        "batch: SimCLR, gradients": Case(gradient(simclr, 2), [x, x, w, v], 2 * sent(2 * ROWS * OUT) + reduced(weights),
                                         "rows gathered, their gradient scattered; gradients of the weights", cut=["s", "s", None, None],
                                         out=None),
        "batch: retrieval, gradients": Case(gradient(retrieval, 3), [x, x, shape(ROWS, 4, WIDTH), w, v], reduced(weights),
                                            "gradients of the weights", cut=["s", "s", "s", None, None], out=None),
        "batch: adversarial, gradients": Case(gradient(adversarial, 2), [x, x, w, v], reduced(weights), "the same",
                                              cut=["s", "s", None, None], out=None),
        "batch: places of rows, flat": Case(masked, tokens, 0, "a device has the tokens of its rows", cut=["s", "s", None]),
        "batch: places of rows, flat, gradients": Case(jax.grad(lambda *a: (masked(*a) ** 2).mean(), 2), tokens, reduced(WIDTH * OUT),
                                                       "the gradient of the weight", cut=["s", "s", None], out=None),
        "batch: places of repeated rows, gradients": Case(
            jax.grad(lambda *a: (masked_rows(*a) ** 2).mean(), 2), tokens, reduced(WIDTH * OUT), "the same", cut=["s", "s", None], out=None),
    }
