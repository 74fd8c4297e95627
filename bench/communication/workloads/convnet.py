# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two convolutions with pools and a classifier: batch cut, or height cut with halos."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax

from .common import F, P, Prog, S, all_reduce, gather, mesh_of, sgd


@dataclasses.dataclass
class Convnet:
    batch: int = 64
    size: int = 32
    channels: tuple = (3, 16, 32)
    classes: int = 10


def convnet(c, spatial):
    a0, a1, a2 = c.channels
    flat = (c.size // 4) ** 2 * a2
    params = dict(c1=S((3, 3, a0, a1), F), b1=S((a1,), F), c2=S((3, 3, a1, a2), F), b2=S((a2,), F), w=S((flat, c.classes), F), b=S((c.classes,), F))
    specs = jax.tree.map(lambda _: P(), params)

    def stage(x, kernel, bias):
        x = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return lax.reduce_window(jax.nn.relu(x + bias), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def loss(p, x, y):
        x = stage(stage(x, p["c1"], p["b1"]), p["c2"], p["b2"])
        logits = x.reshape(x.shape[0], -1) @ p["w"] + p["b"]
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(y, c.classes), -1))

    kernels = 4 * (9 * a0 * a1 + a1 + 9 * a1 * a2 + a2)
    n, s = c.batch, c.size
    if spatial:
        # Halo rows: forward the inputs of both convolutions, backward the gradient of the second one's output (the first
        # one's input is data). The classifier contracts over cut rows; its gradient is gathered, since it is annotated whole.
        halo = 4 * n * (2 * s * a0 + 2 * (s // 2) * a1 + 2 * (s // 2) * a2)
        ref = dict(count=9, wire_bytes=halo + all_reduce(4 * n * c.classes, 8) + all_reduce(kernels, 8) + gather(4 * flat * c.classes, 8),
                   how="6 halo permutes, logits all-reduce, kernel gradients all-reduce, all-gather of the classifier's gradient")
    else:
        total = kernels + 4 * (flat * c.classes + c.classes)
        ref = dict(count=1, wire_bytes=all_reduce(total + 4, 8), how="one fused gradient all-reduce")
    mesh = mesh_of(h=8) if spatial else mesh_of(d=8)
    data = (P(None, "h"), P()) if spatial else (P("d"), P("d"))
    return Prog(sgd(loss), (params, S((n, s, s, a0), F), S((n,), jnp.int32)), (specs, *data), mesh, out=(specs, P()), ref=ref)
