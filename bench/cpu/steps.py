# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps of bench/communication on one device and on eight virtual ones, in Tessera and in JAX."""

from __future__ import annotations

import os
import sys

import jax
import numpy as np

import tessera

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "communication"))
from workloads import SMALL, SUITE  # noqa: E402
from workloads.common import shardings  # noqa: E402

NAMES = ["mlp_dp", "mlp_tp", "mlp_dptp", "gpt_block_tp", "conv_dp"]


def contenders(name, devices, small):
    """(Tessera's step, JAX's step), with states that stay on the devices."""
    program = (SMALL if small else SUITE)[name]()
    random = np.random.default_rng(0)

    def value(spec):
        if np.issubdtype(spec.dtype, np.integer):
            return random.integers(0, 8, spec.shape, dtype=spec.dtype)
        return (0.1 * random.standard_normal(spec.shape)).astype(spec.dtype)
    args = jax.tree.map(value, program.args)
    one = devices == 1
    imported = tessera.from_jax(program.fn, program.args, None if one else program.specs, None if one else program.out,
                                mesh=None if one else program.mesh)
    session = tessera.load(imported.compile())._session
    for index, leaf in enumerate(jax.tree.leaves(args)):
        session.set(index, leaf)
    if one:
        compiled, state = jax.jit(program.fn, donate_argnums=0), jax.device_put(args, jax.devices()[0])
    else:
        placed = shardings(program.mesh, program.specs)
        where = {} if program.out is None else dict(out_shardings=shardings(program.mesh, program.out))
        compiled, state = jax.jit(program.fn, donate_argnums=0, **where), jax.device_put(args, placed)
    state = list(state)

    def theirs():
        state[0], loss = compiled(*state)
        jax.block_until_ready((state[0], loss))
    return session.step, theirs
