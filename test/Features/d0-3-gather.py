# RUN: %tessera_python -m tessera.launch --nproc_per_node 4 --master_port 0 %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D0-3: the destination gets the parts in the order of ranks, the others' arrays do not change; gather(scatter(x)) is x."""

import numpy as np

import tessera.distributed as dist
from feature_case import refused

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()

x = np.arange(20, dtype=np.float64) ** 2
part = np.empty(5)
dist.scatter(part, list(np.split(x, size)) if rank == 0 else None, src=0)
parts = [np.empty(5) for _ in range(size)] if rank == 2 else None
before = part.copy()
dist.gather(part, parts, dst=2)
np.testing.assert_array_equal(part, before)
if rank == 2:
    np.testing.assert_array_equal(np.concatenate(parts), x)
counts = [1, 2, 3, 4]
mine = np.full(counts[rank], rank)
parts = [np.empty(n, mine.dtype) for n in counts] if rank == 0 else None
dist.gather(mine, parts, dst=0, counts=counts)
if rank == 0:
    np.testing.assert_array_equal(np.concatenate(parts), [0, 1, 1, 2, 2, 2, 3, 3, 3, 3])
refused("3", lambda: dist.gather(part, [np.empty(5)] * 3 if rank == 0 else None, dst=0))
dist.barrier()
dist.destroy_process_group()
