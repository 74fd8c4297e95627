# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D3-12: cell.shard and ops.shard mark inputs and results; a call is one compiled program, what is outside stays eager; arity, device and
level are checked; shard(f)(x) is f(x)."""

import numpy as np

import tessera as ts
from feature_case import refused
from tessera import nn

x = np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32)
w = np.random.default_rng(1).standard_normal((8, 4)).astype(np.float32)
calls = []


def inside(x, w):
    calls.append("recorded")
    return nn.relu(x @ w) + 1


for level in (0, 1, 2):
    f = ts.shard(inside, ((4, 1), None), ((2, 2),), level=level)
    calls.clear()
    y = f(x, w)
    outside = y * 2  # eager
    recorded = len(calls)
    np.testing.assert_allclose(y.numpy(), np.maximum(x @ w, 0) + 1, rtol=1e-4)
    np.testing.assert_allclose(outside.numpy(), 2 * (np.maximum(x @ w, 0) + 1), rtol=1e-4)
    f(x, w)
    assert len(calls) == recorded, "a second call is the compiled program"
    assert y.local_shape == (8, 2)
cell = nn.Linear(8, 4)
np.testing.assert_allclose(cell.shard(((4, 1),))(x).numpy(), cell(x).numpy(), rtol=1e-4, atol=1e-5)
np.testing.assert_allclose(ts.ops.shard(inside, ((4, 1), None))(x, w).numpy(), inside(ts.asarray(x), ts.asarray(w)).numpy(), rtol=1e-4)
refused("in_strategy of 'inside' has 1 tuples for 2 inputs", lambda: ts.shard(inside, ((4, 1),))(x, w))
refused("out_strategy of 'inside' has 2 tuples for 1 results", lambda: ts.shard(inside, ((4, 1), None), ((1, 1), (1, 1)))(x, w))
assert np.allclose(np.asarray(ts.shard(inside, ((4, 1), None), device="CPU")(x, w)), np.asarray(inside(x, w)), atol=1e-4)
refused("backend cuda", lambda: ts.shard(inside, ((4, 1), None), device="GPU")(x, w))  # one process a GPU
refused("unknown device 'Ascend' of shard(inside); expected one of threads, cpu, cuda, gpu", lambda: ts.shard(inside, ((4, 1), None), device="Ascend"))
refused("level 3 of shard(inside)", lambda: ts.shard(inside, ((4, 1), None), level=3))
refused("level -1", lambda: ts.shard(inside, ((4, 1), None), level=-1))
