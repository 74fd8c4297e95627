# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D4-12: a 2x3 tensor on two ranks by Shard(0): rows; by Shard(1): columns 2 + 1; Shard(2) and beyond are errors at once."""

import numpy as np

import tessera as ts
from feature_case import refused
from tessera import ProcessMesh, Shard, shard_tensor

mesh = ProcessMesh([0, 1], ["x"])
data = np.arange(6).reshape(2, 3)
rows, columns = shard_tensor(data, mesh, [Shard(0)]), shard_tensor(data, mesh, [Shard(1)])
np.testing.assert_array_equal(rows.local_value(1), [[3, 4, 5]])
np.testing.assert_array_equal(columns.local_value(0), [[0, 1], [3, 4]])
np.testing.assert_array_equal(columns.local_value(1), [[2], [5]])
for axis in (2, 3, 100, -3):
    refused(str(axis), lambda: shard_tensor(data, mesh, [Shard(axis)]))
