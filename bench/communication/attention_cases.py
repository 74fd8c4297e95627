# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention whose sequence is cut over 8 devices, for operations.py. B = 2, heads of 64 elements, 1024 positions, 128 per device."""

import jax
import jax.numpy as jnp
from jax import lax

B, S, E, DEVICES = 2, 1024, 64, 8
SEQUENCE = (None, "s")


def attention(sees=None):
    def fn(q, k, v):
        k, v = (jnp.repeat(x, q.shape[2] // k.shape[2], 2) for x in (k, v))
        a = jnp.einsum("bqhe,bkhe->bhqk", q, k) * E ** -0.5
        if sees is not None:
            a = jnp.where(sees(jnp.arange(q.shape[1])[:, None], jnp.arange(k.shape[1])[None]), a, -1e30)
        return jnp.einsum("bhqk,bkhe->bqhe", jax.nn.softmax(a, -1), v)
    return fn


def decoding(q, k, v, position):
    """One query per sequence, of which the first `position` keys are valid."""
    a = jnp.einsum("bqhe,bkhe->bhqk", q, k) * E ** -0.5
    a = jnp.where(jnp.arange(k.shape[1]) <= position, a, -1e30)
    return jnp.einsum("bhqk,bkhe->bqhe", jax.nn.softmax(a, -1), v)


def ring(q, k, v):
    """Causal attention by hand: in each step a block of queries sees one block of keys, then keys and values roll on."""
    blocks = lambda x: x.reshape(B, DEVICES, S // DEVICES, *x.shape[2:])
    q, k, v = blocks(q), blocks(k), blocks(v)
    here, at = jnp.arange(DEVICES), jnp.arange(S // DEVICES)
    largest = jnp.full((B, DEVICES, q.shape[3], S // DEVICES), -1e30)
    total, output = jnp.zeros_like(largest), jnp.zeros_like(q)
    rows = lambda x: x.transpose(0, 1, 3, 2)[..., None]
    for step in range(DEVICES):
        m, n = (block[:, None] * (S // DEVICES) + at for block in (here, (here - step) % DEVICES))
        a = jnp.einsum("bcqhe,bckhe->bchqk", q, k) * E ** -0.5
        a = jnp.where((m[:, :, None] >= n[:, None])[:, None], a, -1e30)
        top = jnp.maximum(largest, a.max(-1))
        weights, scale = jnp.exp(a - top[..., None]), jnp.exp(largest - top)
        total, largest = total * scale + weights.sum(-1), top
        output = output * rows(scale) + jnp.einsum("bchqk,bckhe->bcqhe", weights, v)
        k, v = jnp.roll(k, 1, 1), jnp.roll(v, 1, 1)
    return (output / rows(total)).reshape(B, S, *output.shape[3:])


def window_of_blocks(q, k, v, size=64):
    """Causal attention of blocks of queries to their own and the block before, as for windows by hand."""
    blocks = lambda x: x.reshape(B, S // size, size, *x.shape[2:])
    before = lambda x: jnp.pad(x, ((0, 0), (1, 0), (0, 0), (0, 0), (0, 0)))[:, :-1]
    q, (k, v) = blocks(q), (jnp.concatenate([before(blocks(x)), blocks(x)], 2) for x in (k, v))
    m, n = jnp.arange(size)[:, None], jnp.arange(2 * size) - size
    seen = (n <= m) & (n > m - size) & ((jnp.arange(S // size)[:, None, None] > 0) | (n >= 0))
    a = jnp.where(seen[:, None], jnp.einsum("bcqhe,bckhe->bchqk", q, k) * E ** -0.5, -jnp.inf)
    return jnp.einsum("bchqk,bckhe->bcqhe", jax.nn.softmax(a, -1), v).reshape(B, S, *q.shape[3:])


def with_gradients(fn):
    def together(q, k, v, gradient):
        output, back = jax.vjp(fn, q, k, v)
        return output, *back(gradient)
    return together


def attention_cases(Case):
    shape = lambda *extents: jax.ShapeDtypeStruct(extents, jnp.float32)
    heads = lambda n, length=S: shape(B, length, n, E)
    part = lambda n: B * S // DEVICES * n * E * 4  # bytes of a device's part of n heads
    causal = lambda m, n: m >= n
    to_heads = part(8) * 7 // 8

    def least(q, kv):
        """Groups of g devices exchange sequence for batch and heads; their keys and values come from the n / g - 1 other groups."""
        return min(2 * (part(q) + part(kv)) * (g - 1) // g + 2 * (DEVICES // g - 1) * part(kv)
                   for g in (1, 2, 4, 8) if B * kv % g == 0)

    halo = lambda n, rows: 2 * B * rows * n * E * 4  # of key and value
    table = {}

    def add(name, fn, q, kv, hand, why):
        """Forward, and with gradients, which move as many bytes again."""
        table[name] = Case(fn, [heads(q), heads(kv), heads(kv)], hand, why, cut=[SEQUENCE] * 3, out=SEQUENCE)
        table[f"{name}, gradients"] = Case(with_gradients(fn), [heads(q), heads(kv), heads(kv), heads(q)], 2 * hand,
                                           "as much again", cut=[SEQUENCE] * 4, out=SEQUENCE)

    add("attention", attention(), 8, 8, 4 * to_heads, "query, key, value and output change sequence for heads: 7/8 of a part each")
    add("causal", attention(causal), 8, 8, 4 * to_heads, "the same")
    add("6 heads", attention(causal), 6, 6, least(6, 6), "heads do not divide: four change sequence for batch and heads, key and value of the other four")
    add("12 heads on 4", attention(causal), 12, 4, least(12, 4), "query, key, value and output change sequence for batch and heads")
    add("window of 128", attention(lambda m, n: (m >= n) & (m - n < 128)), 6, 6, halo(6, 127), "127 keys and values from the neighbor")
    add("window, shared keys", attention(lambda m, n: (m >= n) & (m - n < 300)), 8, 2, halo(2, 299), "299 keys and values of two heads")
    add("16 on both sides", attention(lambda m, n: abs(m - n) <= 16), 8, 8, halo(8, 32), "16 keys and values from each neighbor")
    add("window of blocks", window_of_blocks, 6, 6, halo(6, 64), "a block of keys and values from the neighbor")
    add("chunks of 64", attention(lambda m, n: (m >= n) & (m // 64 == n // 64)), 6, 6, 0, "a part has two chunks")
    add("window of 512", attention(lambda m, n: (m >= n) & (m - n < 512)), 8, 8, 4 * to_heads, "to heads: less than 511 keys and values")
    for name, sees, queries in (("ring", None, S), ("causal ring", causal, S), ("ring, 500 queries", None, 500),
                                ("causal ring, 512 of 1024", lambda m, n: m + 512 >= n, 512)):
        shapes = [heads(6, queries), heads(6), heads(6)]
        table[f"{name} of 6 heads"] = Case(attention(sees), shapes, 2 * 7 * part(6), "key and value of 7 others, one after the other",
                                           cut=[SEQUENCE] * 3, out=SEQUENCE, attention_sequence="ring")
        table[f"{name} of 6 heads, gradients"] = Case(
            with_gradients(attention(sees)), [*shapes, heads(6, queries)], 4 * 7 * part(6), "these, and their gradients home",
            cut=[SEQUENCE] * 4, out=SEQUENCE, attention_sequence="ring")
    add("ring by rolls", ring, 6, 6, 2 * 7 * part(6), "key and value of 7 others, a roll each")
    rows = lambda n: 2 * B * n * (E + 2) * 4 * 7 // 8
    whole, cache = (None,), (None, "s")
    position = jax.ShapeDtypeStruct((), jnp.int32)
    for name, kv in (("decoding", 8), ("decoding, shared keys", 2)):
        table[name] = Case(
            lambda q, k, v, i, kv=kv: decoding(q, *(jnp.repeat(x, 8 // kv, 2) for x in (k, v)), i),
            [heads(8, 1), heads(kv), heads(kv), position], rows(8),
            "a cache cut over the sequence: largest, sum and output of each row, added by all", cut=[None, cache, cache, None], out=None)
    table["16 queries, keys cut"] = Case(attention(), [heads(8, 16), heads(8), heads(8)], rows(8 * 16), "the same of 16 rows",
                                         cut=[None, cache, cache], out=None)
    return table
