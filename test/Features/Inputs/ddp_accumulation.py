# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D2-11: N ranks are N micro-batches on one device; with batch normalization the statistics differ."""

from ddp_case import *
from tessera import DistributedDataParallel

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()


@ts.jit
def step(net, state, x, y):
    _, gradients = optim.accumulated(ts.value_and_grad(loss), size)(net, x, y)
    return optim.SGD(0.1, momentum=0.9).update(net, gradients, state)


for norm in (False, True):
    # Micro-batch i has the rows i, i + size, ...: those of rank i.
    net = train(DistributedDataParallel(model(norm=norm), broadcast_buffers=False), X[rank::size], Y[rank::size], 5, optim.SGD(0.1, momentum=0.9))
    one = model(norm=norm)
    state = optim.SGD(0.1, momentum=0.9).init(one)
    for _ in range(5):
        one, state = step(one, state, X, Y)
    wrong = differ(net, one)
    say("batch normalization" if norm else "no buffers", "differ:", [name for name in wrong if "running" not in name], "statistics:",
        [name for name in wrong if "running" in name])
