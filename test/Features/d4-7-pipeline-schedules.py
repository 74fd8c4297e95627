# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D4-7: w0 on mesh0 [0..3], w1 on mesh1 [4..7], micro-batches in F-then-B and 1F1B: sends 0->4 ... 3->7 alone, gradients of the same bits as
one after the other, and those of one device within the tolerance."""

import numpy as np

import tessera as ts
from tessera import ProcessMesh, nn
from tessera.testing import difference

R = np.random.default_rng(0)
x, y = (R.standard_normal((8, 16)).astype(np.float32) for _ in range(2))
meshes = [ProcessMesh([0, 1, 2, 3], ["d"], "mesh0"), ProcessMesh([4, 5, 6, 7], ["d"], "mesh1")]


def gradients(stages, schedule):
    nn.init.seed(0)
    pipe = ts.pipeline([nn.Linear(16, 32), nn.Linear(32, 16)], stages, microbatches=4, schedule=schedule)
    step = ts.jit(lambda pipe, x, y: pipe.value_and_grad(lambda pipe, x, y: nn.mse_loss(pipe(x), y))(pipe, x, y))
    value, gradient = step(pipe, x, y)
    report = step.explain(pipe, x, y)
    return [np.asarray(value), *[np.asarray(g) for g in gradient.parameters()]], report


plain, _ = gradients(1, "sequential")
base, _ = gradients(meshes, "sequential")
for schedule in ("gpipe", "1f1b"):
    found, report = gradients(meshes, schedule)
    assert [each.tobytes() for each in found] == [each.tobytes() for each in base], schedule
    assert all(difference(mine, one) is None for mine, one in zip(found, plain))
    moves = sorted((c["kind"], c["mesh"], c["messages"]) for c in report["collectives"])
    assert moves == [("send", "mesh0 -> mesh1", 1)] * 4 + [("send", "mesh1 -> mesh0", 1)] * 4, moves
    assert report["pipeline"]["schedule"] == schedule and report["pipeline"]["stages"] == 2
