# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D0-11, D2-2, D2-3: broadcasts of the constructor, statistics per rank, `.module`, the order of a script."""

import os
import sys

from ddp_case import *
from tessera import DistributedDataParallel

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
plain = model(seed=rank, norm=True)
path = os.path.join(sys.argv[1], "loaded.npz")
if rank == 0:  # only one rank loads the checkpoint
    np.savez(path, **model(seed=7, norm=True).state_dict())
    plain.load_state_dict(dict(np.load(path)))
    plain[1].running_mean = ts.asarray(np.full(16, 3, np.float32))
before = optim.Adam(0.01).init(plain)
net = DistributedDataParallel(plain, device_ids=[dist.get_local_rank()], output_device=dist.get_local_rank())
say("inner model:", net.module is plain)
say("parameters:", len(set(on_all(digest(net.parameters())))), "buffers:", len(set(on_all(digest(t for _, t in net.named_buffers())))))
say("rank 0's:", all(on_all(bool((plain[1].running_mean.numpy() == 3).all()))))
say("output:", net(X).shape, net(X).is_distributed)
try:
    optim.Adam(0.01).update(net, net, before)
except ts.ArgumentError as error:
    say(str(error).split("error: ")[1])

x, y = X[rank::size] + rank, Y[rank::size]
for mode in (True, False):
    made = train(DistributedDataParallel(model(norm=True), broadcast_buffers=mode), x, y, 3)
    # Without: the statistics of this rank's batches, with the common parameters.
    say(f"broadcast_buffers={mode}:", "parameters", len(set(on_all(digest(made.parameters())))),
        "means", len(set(on_all(digest([made.module[1].running_mean])))))
own = train(DistributedDataParallel(model(norm=True), broadcast_buffers=False), x, y, 1, optim.SGD(0.0))
check_same(own, train(model(norm=True), x, y, 1, optim.SGD(0.0)))
say("this rank's statistics")

for arguments in (dict(device_ids=[1, 1]), dict(device_ids=[0], output_device=3), dict(bucket_cap_mb=-1), dict(find_unused_parameters=1)):
    try:
        DistributedDataParallel(model(), **arguments)
    except ts.ArgumentError as error:
        say(str(error).split("error: ")[1])
