# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D4-13: Partial -> Replicate and Shard(0) -> Replicate of a 2x3 list of integers print before and after; the values are the input."""

import numpy as np

from tessera import Partial, ProcessMesh, Replicate, Shard, reshard, shard_tensor

mesh = ProcessMesh([0, 1], ["x"])
data = [[1, -2, 3], [4, 5, -6]]
for placement in (Partial(), Shard(0)):
    before = shard_tensor(data, mesh, [placement])
    after = reshard(before, mesh, [Replicate()])
    print(before, after, sep="\n")
    assert after.numpy().dtype == np.int64 and before.dtype == after.dtype
    np.testing.assert_array_equal(before.numpy(), data)
    for rank in (0, 1):
        np.testing.assert_array_equal(after.local_value(rank), data)
    assert repr(before) != repr(after)
