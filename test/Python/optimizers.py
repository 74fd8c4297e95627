# RUN: %tessera_python %s
# REQUIRES: optax
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training by optimizers of optax, imported from JAX: some steps give JAX's parameters and states, on one device and cut."""

import unittest

from jax_case import JaxCase, jax, jnp, mesh_of, np
from jax.sharding import PartitionSpec as P
import optax

import tessera
from tessera.testing import difference


def loss(params, x, y):
    return jnp.mean((jnp.tanh(x @ params["w1"] + params["b1"]) @ params["w2"] - y) ** 2)


OPTIMIZERS = {
    "sgd": lambda: optax.sgd(0.1, momentum=0.9, nesterov=True),
    "adam": lambda: optax.adam(1e-2),
    "adamw": lambda: optax.adamw(1e-2, weight_decay=0.1),
    "adamax": lambda: optax.adamax(1e-2),
    "nadam": lambda: optax.nadam(1e-2),
    "radam": lambda: optax.radam(1e-2),
    "amsgrad": lambda: optax.amsgrad(1e-2),
    "lion": lambda: optax.lion(1e-2),
    "adafactor": lambda: optax.adafactor(1e-2, min_dim_size_to_factor=4),
    "rmsprop": lambda: optax.rmsprop(1e-2, centered=True),
    "adagrad": lambda: optax.adagrad(1e-1),
    "lamb": lambda: optax.lamb(1e-2),
    "schedule": lambda: optax.chain(optax.clip_by_global_norm(0.5), optax.adam(optax.warmup_cosine_decay_schedule(0.0, 1e-2, 2, 10))),
    "accumulated": lambda: optax.MultiSteps(optax.adam(1e-2), every_k_schedule=2),
}


class Optimizers(JaxCase):
    def trained(self, name, steps=4):
        optimizer = OPTIMIZERS[name]()

        def step(params, state, x, y):
            value, gradients = jax.value_and_grad(loss)(params, x, y)
            updates, state = optimizer.update(gradients, state, params)
            return optax.apply_updates(params, updates), state, value
        random = np.random.default_rng(0)
        normal = lambda *shape: random.standard_normal(shape).astype(np.float32) / 2
        params = {"w1": normal(6, 8), "b1": normal(8), "w2": normal(8, 4)}
        batches = [(normal(9, 6), normal(9, 4)) for _ in range(steps)]
        state = jax.tree.map(np.asarray, optimizer.init(params))
        expected = params, state
        compiled, values = jax.jit(step), []
        for x, y in batches:
            *expected, value = compiled(*expected, x, y)
            values.append(value)
        args = params, state, *batches[0]
        specs = {"w1": P(None, "x"), "b1": None, "w2": P("x", None)}, None, P("y"), P("y")
        for shardings, mesh in ((None, None), (specs, mesh_of(x=2, y=3))):
            program = tessera.from_jax(step, args, shardings, mesh=mesh)
            actual = params, state
            for (x, y), wanted in zip(batches, values):
                *actual, value = program(*actual, x, y)
                self.assertIsNone(difference(value, np.asarray(wanted), steps), f"the loss by {name}")
            for (path, a), b in zip(jax.tree_util.tree_flatten_with_path(actual)[0], jax.tree.leaves(expected)):
                wrong = difference(np.asarray(a), np.asarray(b), steps)
                self.assertIsNone(wrong, f"{jax.tree_util.keystr(path)} by {name} with {shardings}: {wrong}")


for _name in OPTIMIZERS:
    setattr(Optimizers, f"test_{_name}", lambda self, name=_name: self.trained(name))

if __name__ == "__main__":
    unittest.main()
