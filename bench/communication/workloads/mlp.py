# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A perceptron of one hidden layer: data parallel, tensor parallel, both."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from .common import F, P, Prog, S, all_reduce, mesh_of, sgd


@dataclasses.dataclass
class Mlp:
    batch: int = 64
    width: int = 1024
    hidden: int = 4096

    @property
    def gradient(self):
        """Elements of all gradients."""
        return 2 * self.width * self.hidden + self.hidden + self.width


def mlp(c, axes, x, w1, b1, w2, b2, ref):
    params = dict(w1=S((c.width, c.hidden), F), b1=S((c.hidden,), F), w2=S((c.hidden, c.width), F), b2=S((c.width,), F))
    specs = dict(w1=w1, b1=b1, w2=w2, b2=b2)

    def loss(p, x, y):
        h = jax.nn.relu(x @ p["w1"] + p["b1"])
        return jnp.mean((h @ p["w2"] + p["b2"] - y) ** 2)
    data = S((c.batch, c.width), F)
    return Prog(sgd(loss), (params, data, data), (specs, x, x), mesh_of(**axes), out=(specs, P()), ref=ref)


def mlp_dp(c=Mlp()):
    return mlp(c, dict(d=8), P("d"), P(), P(), P(), P(),
               dict(count=1, wire_bytes=all_reduce(4 * c.gradient + 4, 8), how="one fused gradient all-reduce over 8"))


def mlp_tp(c=Mlp()):
    return mlp(c, dict(t=8), P(), P(None, "t"), P("t"), P("t", None), P(),
               dict(count=1, wire_bytes=all_reduce(4 * c.batch * c.width, 8),
                    how="Megatron: one forward all-reduce of the output; x is data, so no backward one"))


def mlp_dptp(c=Mlp()):
    quarter = 4 * ((c.gradient - c.width) // 4 + c.width)
    return mlp(c, dict(d=2, t=4), P("d"), P(None, "t"), P("t"), P("t", None), P(),
               dict(count=2, wire_bytes=all_reduce(4 * c.batch // 2 * c.width, 4) + all_reduce(quarter + 4, 2),
                    how="forward all-reduce over t of half the batch + one gradient all-reduce over d of the quarter weights"))
