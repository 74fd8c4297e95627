# RUN: %tessera_python -m tessera.launch --nproc_per_node 4 --master_port 0 %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D0-4: the mean of four values on one rank only, and the other reductions; unknown ones and means of integers are errors."""

import numpy as np

import tessera.distributed as dist
from feature_case import refused

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()

values = np.array([[1.5, -2], [4, 8], [0.5, 3], [2, -1]])
kinds = {"sum": np.sum, "avg": np.mean, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}
for dst in range(size):
    for op, of in kinds.items():
        x = values[rank].copy()
        dist.reduce(x, dst=dst, op=op)
        np.testing.assert_array_equal(x, of(values, axis=0) if rank == dst else values[rank])
refused("median", lambda: dist.reduce(np.zeros(2), dst=0, op="median"))
refused("avg", lambda: dist.reduce(np.zeros(2, np.int32), dst=0, op="avg"))
dist.barrier()
dist.destroy_process_group()
