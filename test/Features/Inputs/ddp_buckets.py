# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D0-11: buckets in the order in which the backward pass makes gradients, of bucket_cap_mb each; writes the step as an artifact."""

import os
import sys

from ddp_case import *
from tessera import DistributedDataParallel

dist.init_process_group()
nn.init.seed(0)
net = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(512, 512, bias=False), nn.relu)])
x = np.zeros((64, 512), np.float32)
for cap in (0, 2, 3, 25):
    wrapped, step, optimizer = DistributedDataParallel(net, bucket_cap_mb=cap), stepper(optim.SGD(0.1)), optim.SGD(0.1)
    state = optimizer.init(wrapped)
    say(f"bucket_cap_mb={cap}:", [c["bytes"] >> 20 for c in step.explain(wrapped, state, x, x)["collectives"]])
    if cap == 2 and dist.get_rank() == 0:
        step.lower(wrapped, state, x, x).compile(os.path.join(sys.argv[1], "step.tsra"))
