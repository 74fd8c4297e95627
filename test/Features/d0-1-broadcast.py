# RUN: %tessera_python -m tessera.launch --nproc_per_node 4 --master_port 0 %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D0-1: broadcast of distinct data; a source outside of the group, and shapes and types that differ, are errors on all ranks."""

import numpy as np

import tessera.distributed as dist
from feature_case import refused

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()

for src in range(size):
    for dtype in (np.float32, np.int64):
        x = (np.arange(7) + 10 * rank).astype(dtype)
        dist.broadcast(x, src=src)
        np.testing.assert_array_equal(x, np.arange(7) + 10 * src)
pair = dist.new_group([1, 3])
if rank in (1, 3):
    x = np.full(3, float(rank))
    dist.broadcast(x, src=3, group=pair)
    assert (x == 3).all()
    refused("0", lambda: dist.broadcast(x, src=0, group=pair))
refused("9", lambda: dist.broadcast(np.zeros(2), src=9))
refused("ranks 0, 1, 3: broadcast of 4 f32", lambda: dist.broadcast(np.zeros(5 if rank == 2 else 4, np.float32), src=0))
refused("rank 2: broadcast of 5 f32", lambda: dist.broadcast(np.zeros(5 if rank == 2 else 4, np.float32), src=0))
refused("rank 1: broadcast of 4 f64", lambda: dist.broadcast(np.zeros(4, np.float64 if rank == 1 else np.float32), src=0))
dist.barrier()
dist.destroy_process_group()
