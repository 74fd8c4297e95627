# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A mixture of experts by GShard's einsum dispatch, top 1."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding

from .common import F, P, Prog, S, all_reduce, gather, mesh_of, sgd


@dataclasses.dataclass
class Moe:
    groups: int = 8
    tokens: int = 128
    width: int = 512
    experts: int = 8
    capacity: int = 32
    hidden: int = 2048


def moe(c, pin=None):
    """pin: None, "once" (dispatched and combined values constrained), "twice" (GShard's recipe: by group, then by expert)."""
    mesh = mesh_of(e=8)
    params = dict(gate=S((c.width, c.experts), F), wi=S((c.experts, c.width, c.hidden), F), wo=S((c.experts, c.hidden, c.width), F))
    specs = dict(gate=P(), wi=P("e"), wo=P("e"))

    def constrain(x, *spec):
        return lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec))) if pin else x

    def loss(p, x, y):
        probabilities = jax.nn.softmax(jnp.einsum("gsm,me->gse", x, p["gate"]))
        chosen = jax.nn.one_hot(jnp.argmax(probabilities, -1), c.experts, dtype=F)
        position = jnp.cumsum(chosen, axis=1) * chosen - chosen
        kept = chosen * (position < c.capacity)
        place = jax.nn.one_hot(jnp.sum(position, -1).astype(jnp.int32), c.capacity, dtype=F)
        dispatch = kept[..., None] * place[:, :, None, :]
        combine = dispatch * jnp.max(probabilities, -1)[..., None, None]
        inputs = jnp.einsum("gsec,gsm->egcm", dispatch, x)
        if pin == "twice":
            inputs = constrain(inputs, None, "e")
        inputs = constrain(inputs, "e")
        hidden = jax.nn.relu(jnp.einsum("egcm,emh->egch", inputs, p["wi"]))
        outputs = constrain(jnp.einsum("egch,ehm->egcm", hidden, p["wo"]), "e")
        if pin == "twice":
            outputs = constrain(outputs, None, "e")
        return jnp.mean((constrain(jnp.einsum("gsec,egcm->gsm", combine, outputs), "e") - y) ** 2)

    exchanged = 4 * c.experts * c.capacity * c.width * c.groups // 8
    ref = dict(count=4, wire_bytes=3 * gather(exchanged, 8) + all_reduce(4 * c.width * c.experts + 4, 8),
               how="all-to-all: dispatch, combine, the gradient of combine (what is dispatched is data); gate gradient all-reduce")
    data = S((c.groups, c.tokens, c.width), F)
    return Prog(sgd(loss), (params, data, data), (specs, P("e"), P("e")), mesh, out=(specs, P()), ref=ref)
