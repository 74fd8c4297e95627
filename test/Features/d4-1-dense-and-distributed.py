# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D4-1: a distributed tensor has a global shape, a local shape, a mesh and placements, and prints them; a dense one beside it is taken as
Replicate."""

import numpy as np

import tessera as ts
from tessera import ProcessMesh, Shard, shard_tensor

mesh = ProcessMesh([0, 1], ["x"])
dense = ts.asarray(np.arange(8, dtype=np.float32).reshape(4, 2))
made = shard_tensor(dense, mesh, [Shard(0)])
assert not dense.is_distributed and made.is_distributed
assert (made.shape, made.local_shape, made.mesh, list(made.placements)) == ((4, 2), (2, 2), mesh, [Shard(0)])
np.testing.assert_array_equal(made.local_value(1), [[4, 5], [6, 7]])
text = repr(made)
assert "4, 2" in text and "Shard(0)" in text or "shard(0)" in text, text
both = ts.jit(lambda a, b: a + b)(made, dense)
np.testing.assert_array_equal(both.numpy(), 2 * dense.numpy())
assert both.local_shape == (2, 2)
