# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D2-10: rank 0 alone saves the inner model; a job of one process loads it."""

import os
import sys

from ddp_case import *
from tessera import DistributedDataParallel

path = os.path.join(sys.argv[1], "trained.npz")
dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
if size > 1:
    # donate: the parameters are on the devices, and the other ranks do not participate in reading them.
    net = train(DistributedDataParallel(model(norm=True)), X[rank::size], Y[rank::size], 3, donate=True)
    if rank == 0:
        np.savez(path, **net.module.state_dict(), outputs=net.module.eval()(X).numpy())
        print("saved", flush=True)
else:
    saved = dict(np.load(path))
    outputs = saved.pop("outputs")
    print("equal outputs:", np.array_equal(model(seed=1, norm=True).load_state_dict(saved).eval()(X).numpy(), outputs))
