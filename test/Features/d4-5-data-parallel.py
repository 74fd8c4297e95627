# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D4-5: with the batch cut and parameters replicated the gradients are joined into one all-reduce, and equal those of one device."""

import numpy as np

import tessera as ts
from tessera import ProcessMesh, Replicate, Shard, shard_tensor

mesh = ProcessMesh([0, 1, 2, 3], ["dp"])
R = np.random.default_rng(0)
x, w, v = (R.standard_normal(s).astype(np.float32) for s in ((16, 8), (8, 12), (12, 4)))
loss = lambda w, v, x: ts.mean((ts.tanh(x @ w) @ v) ** 2)
step = ts.jit(lambda w, v, x: ts.grad(loss, (0, 1))(w, v, x))
alone = step(w, v, x)
placed = [shard_tensor(each, mesh, [Replicate()]) for each in (w, v)] + [shard_tensor(x, mesh, [Shard(0)])]
made = ts.jit(lambda w, v, x: tuple(shard_tensor(g, mesh, [Replicate()]) for g in ts.grad(loss, (0, 1))(w, v, x)))
for a, b in zip(made(*placed), alone):
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6)
found = made.explain(*placed)["collectives"]
assert [(c["kind"], c["group_size"]) for c in found] == [("all_reduce", 4)], found
