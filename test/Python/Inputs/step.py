# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs to import."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

mesh = jax.sharding.AbstractMesh((4,), ("d",))
w, x = jax.ShapeDtypeStruct((6, 5), jnp.float32), jax.ShapeDtypeStruct((8, 6), jnp.float32)


def step(params, x):
    gradient = jax.grad(lambda p: jnp.sum((x @ p["w"]) ** 2))(params)
    return jax.tree.map(lambda p, g: p - g / 100, params, gradient)


def described():
    return dict(fn=step, args=(dict(w=w), x), specs=(P(), P("d")), mesh=mesh)


listed = {"one": (step, (dict(w=w), x), (P(), P("d")), None, mesh)}
lookup = dict(fn=lambda x, i: x[i], args=(x, jax.ShapeDtypeStruct((3,), jnp.int32)))
wrong_axis = dict(fn=step, args=(dict(w=w), x), in_shardings=(P(), P("q")), mesh=mesh)
wrong_shapes = dict(fn=lambda x, w: x + w, args=(x, w))
