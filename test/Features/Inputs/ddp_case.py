# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared by the scripts of data parallelism between processes."""

import hashlib

import numpy as np

import tessera as ts
import tessera.distributed as dist
from tessera import nn, optim
from tessera.testing import difference

RANDOM = np.random.default_rng(0)
X, Y = RANDOM.standard_normal((16, 8)).astype(np.float32), RANDOM.standard_normal((16, 4)).astype(np.float32)


def model(seed=0, norm=False):
    nn.init.seed(seed)
    return nn.Sequential(nn.Linear(8, 16), *([nn.BatchNorm(16)] if norm else []), nn.gelu, nn.Linear(16, 4))


def loss(net, x, y):
    return nn.mse_loss(net(x), y)


def stepper(optimizer, loss=loss, **options):
    @ts.jit(**options)
    def step(net, state, x, y):
        value, gradients = ts.value_and_grad(loss)(net, x, y)
        return *optimizer.update(net, gradients, state), value
    return step


def train(net, x, y, steps=5, optimizer=None, **options):
    """The net after steps on one batch."""
    optimizer = optimizer or optim.Adam(0.01)
    step, state = stepper(optimizer, **options), optimizer.init(net)
    for _ in range(steps):
        net, state, _ = step(net, state, x, y)
    return net


def inner(net):
    return getattr(net, "module", net)


def check_same(actual, expected, steps=1):
    """Fails unless parameters and buffers are equal within the tolerance of all checks."""
    state = inner(actual).state_dict()
    for name, value in inner(expected).state_dict().items():
        wrong = difference(state[name], value, steps)
        assert wrong is None, f"{name}: {wrong}"


def differ(actual, expected):
    """Names of values that differ beyond the tolerance."""
    state = inner(actual).state_dict()
    return [name for name, value in inner(expected).state_dict().items() if difference(state[name], value) is not None]


def on_all(value):
    """Every rank's value."""
    said = [None] * dist.get_world_size()
    dist.all_gather_object(said, value)
    return said


def digest(tensors):
    """The bits of tensors."""
    return hashlib.sha1(b"".join(tensor.numpy().tobytes() for tensor in tensors)).hexdigest()


def say(*words):
    if dist.get_rank() == 0:
        print(*words, flush=True)
