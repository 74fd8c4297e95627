# RUN: %tessera_python -m tessera.launch --nproc_per_node 4 --master_port 0 %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D0-7: rank i has chunk i of the reduction; its all_gather is bitwise equal to the all_reduce; an indivisible size is an error."""

import numpy as np

import tessera.distributed as dist
from feature_case import refused

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()

for dtype in (np.int32, np.int64, np.float32):
    for op in ("sum", "max", "prod"):
        x = ((np.arange(12) * (rank + 2)) % 7 - 3).astype(dtype)
        part, whole, again = np.empty(3, dtype), x.copy(), np.empty(12, dtype)
        dist.reduce_scatter_tensor(part, x, op=op)
        dist.all_reduce(whole, op=op)
        np.testing.assert_array_equal(part, whole[3 * rank:3 * rank + 3])
        dist.all_gather_into_tensor(again, part)
        assert again.tobytes() == whole.tobytes()
out = np.empty(2)
dist.reduce_scatter(out, [np.full(2, float(10 * i + rank)) for i in range(size)])
assert (out == 40 * rank + 6).all()
refused("10", lambda: dist.reduce_scatter_tensor(np.empty(3), np.zeros(10)))
dist.barrier()
dist.destroy_process_group()
