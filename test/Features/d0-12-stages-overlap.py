# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D0-12: with micro-batches stage 1 is on batch k + 1 while stage 2 is on batch k: in the schedule of each mesh, and on the modelled timeline,
where two stages compute for longer than the step lasts (layers compute for longer than their activations travel)."""

import numpy as np

import tessera as ts
from tessera import nn, optim

nn.init.seed(0)
x = np.zeros((16384, 1024), np.float32)


def timeline(schedule):
    pipe = ts.pipeline([layer for _ in range(4) for layer in (nn.Linear(1024, 1024), ts.tanh)], stages=2, microbatches=8, schedule=schedule)
    optimizer = optim.SGD(0.1)

    def step(pipe, state, x, y):
        value, gradients = pipe.value_and_grad(lambda net, x, y: nn.mse_loss(net(x), y))(pipe, x, y)
        return *optimizer.update(pipe, gradients, state), value
    return ts.explain(step, pipe, optimizer.init(pipe), x, x)["pipeline"]


made, one = timeline("1f1b"), timeline("sequential")
first, second = (mesh["order"].split() for mesh in made["meshes"])
for k in range(7):  # the first stage has sent batch k + 1 before it waits for the gradient of batch k
    assert first.index(f"F{k + 1}") < first.index(f"B{k}"), first
    assert second.index(f"B{k}") < second.index(f"F{k + 1}"), second


def at_a_time(timeline):
    return sum(mesh["modelled_busy_seconds"] for mesh in timeline["meshes"]) / timeline["modelled_seconds"]


assert at_a_time(made) > 1.7 > 1.6 > at_a_time(one), (at_a_time(made), at_a_time(one))
