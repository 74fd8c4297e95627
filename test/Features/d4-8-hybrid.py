# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D4-8: 2x2 meshes: the move of y from one to the other is 4 sends of the local shard and no gather; z is a sum over y that is reduced, and
equals the dense one."""

import numpy as np

import tessera as ts
from tessera import ProcessMesh, Replicate, Shard, reshard, shard_tensor

first, second = ProcessMesh([[0, 1], [2, 3]], ["x", "y"]), ProcessMesh([[4, 5], [6, 7]], ["x", "y"])
R = np.random.default_rng(0)
x, w0, w1 = (R.standard_normal(s).astype(np.float32) for s in ((4, 3, 8), (8, 12), (12, 6)))
placed = (shard_tensor(x, first, [Shard(0), Replicate()]), shard_tensor(w0, first, [Replicate(), Shard(1)]),
          shard_tensor(w1, second, [Replicate(), Shard(0)]))


def step(x, w0, w1):
    y = reshard(x @ w0, second, [Shard(0), Shard(2)])
    return shard_tensor(y @ w1, second, [Shard(0), Replicate()])


made = ts.jit(step)
np.testing.assert_allclose(made(*placed).numpy(), x @ w0 @ w1, rtol=1e-3, atol=1e-4)
found = made.explain(*placed)["collectives"]
kinds = [c["kind"] for c in found]
assert sorted(kinds) == ["all_reduce", "send"], kinds
send = found[kinds.index("send")]
assert send["messages"] == 1 and send["group_size"] == 4 and send["bytes"] == 2 * 3 * 6 * 4, send
