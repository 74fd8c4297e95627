# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D3-2, D3-3, D3-4: parallel_mode and search_mode of MindSpore's context: "auto_parallel" searches the strategies of a program by that mode,
"semi_auto_parallel" propagates those given."""

import numpy as np

import tessera as ts
from feature_case import refused
from tessera import ProcessMesh, Shard

mesh = ProcessMesh([0, 1, 2, 3], ["d"])
x, w = np.ones((64, 32), np.float32), np.ones((32, 16), np.float32)


def step(x, w):
    return ts.tanh(ts.shard_tensor(x, mesh, [Shard(0)]) @ w)


def searched():
    report = ts.jit(step).explain(x, w)
    return report.get("search", {}).get("mode")


for mode in ("sharding_propagation", "dynamic_programming", "recursive_programming"):
    ts.set_auto_parallel_context(parallel_mode="auto_parallel", search_mode=mode)
    assert searched() == mode, searched()
    np.testing.assert_allclose(np.asarray(ts.jit(step)(x, w)), np.tanh(x @ w), rtol=1e-6)
    ts.set_auto_parallel_context(parallel_mode="semi_auto_parallel")
    assert searched() is None, searched()
ts.reset_auto_parallel_context()
ts.set_auto_parallel_context(parallel_mode="auto_parallel")
assert ts.get_auto_parallel_context("parallel_mode") == "auto_parallel" and searched() == "recursive_programming"
ts.reset_auto_parallel_context()
assert searched() is None
refused("unknown parallel_mode 'data_parallel'; expected one of semi_auto_parallel, auto_parallel", lambda: ts.set_auto_parallel_context(parallel_mode="data_parallel"))
refused("unknown search_mode 'data_paralel'; expected one of", lambda: ts.set_auto_parallel_context(search_mode="data_paralel"))
