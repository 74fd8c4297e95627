# RUN: %tessera_python -m tessera.launch --nproc_per_node 4 --master_port 0 %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D0-2: part i of the source's tensor goes to rank i, also if parts are uneven; a list without one part per rank is an error on all."""

import numpy as np

import tessera.distributed as dist
from feature_case import refused

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()

whole = np.arange(12, dtype=np.float32)
out = np.empty(3, np.float32)
dist.scatter(out, list(np.split(whole, size)) if rank == 1 else None, src=1)
np.testing.assert_array_equal(out, whole[3 * rank:3 * rank + 3])
# 10 elements in 3, 3, 3 and 1
counts = [3, 3, 3, 1]
whole = np.arange(10, dtype=np.int32)
out = np.empty(counts[rank], np.int32)
dist.scatter(out, list(np.split(whole, [3, 6, 9])) if rank == 0 else None, src=0, counts=counts)
np.testing.assert_array_equal(out, whole[3 * rank:3 * rank + counts[rank]])
out = np.empty(3, np.float32)
refused("3", lambda: dist.scatter(out, [np.zeros(3, np.float32)] * 3 if rank == 0 else None, src=0))
dist.barrier()
dist.destroy_process_group()
