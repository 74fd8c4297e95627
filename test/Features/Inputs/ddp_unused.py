# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D0-11: a parameter without a gradient is an error that names it, or has a gradient of zeros."""

from ddp_case import *
from tessera import DistributedDataParallel


class Half(nn.Module):
    """The second layer is never called."""

    def __init__(self):
        super().__init__()
        nn.init.seed(0)
        self.used, self.idle = nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x):
        return self.used(x)


dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
try:
    train(DistributedDataParallel(Half()), X, Y)
except ts.ArgumentError as error:
    said = on_all(str(error).split("error: ")[1])
    say(len(said), *set(said))
net = train(DistributedDataParallel(Half(), find_unused_parameters=True), X[rank::size], Y[rank::size])
check_same(net, train(Half(), X, Y), 5)
say("equal to one process")
