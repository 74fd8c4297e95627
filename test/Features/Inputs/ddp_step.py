# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D0-10: each rank computes on its part, gradients are means: ranks stay equal, and equal one process with the joined batch."""

from ddp_case import *
from tessera import DistributedDataParallel

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
X, Y = X[:len(X) // size * size], Y[:len(Y) // size * size]  # batches of one shape
net = DistributedDataParallel(model(seed=rank), device_ids=[dist.get_local_rank()])
net = train(net, X[rank::size], Y[rank::size], 10)
say("equal bits:", len(set(on_all(digest(net.parameters())))) == 1)
check_same(net, train(model(seed=0), X, Y, 10), 10)
say("equal to one process")

# A loss that is not a mean over the batch: the gradient is still the mean of the ranks' gradients.
net = train(DistributedDataParallel(model()), X[rank::size], Y[rank::size], 1, optim.SGD(0.01), loss=lambda net, x, y: ts.sum(ts.square(net(x) - y)))
plain = train(model(), X, Y, 1, optim.SGD(0.01 / size), loss=lambda net, x, y: ts.sum(ts.square(net(x) - y)))
check_same(net, plain)
say("mean of sums")

# The last layer of rank 1 differs: all ranks raise an error.
other = nn.Sequential(nn.Linear(8, 16), nn.gelu, nn.Linear(16, 5 if rank == 1 else 4))
try:
    DistributedDataParallel(other)
except ts.ArgumentError as error:
    said = on_all(str(error).split("error: ")[1])
    say(len(said), *set(said))

# All ranks reject batches of different shapes.
try:
    train(DistributedDataParallel(model()), X[:4 + rank], Y[:4 + rank])
except ts.ArgumentError as error:
    said = on_all(str(error).split("error: ")[1])
    say(len(set(said)), said[0])
