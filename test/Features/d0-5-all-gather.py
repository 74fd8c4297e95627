# RUN: %tessera_python -m tessera.launch --nproc_per_node 4 --master_port 0 %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D0-5: all ranks have the concatenation of the parts; sizes that do not fit are errors."""

import numpy as np

import tessera.distributed as dist
from feature_case import refused

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()

whole = np.arange(8, dtype=np.int64).reshape(4, 2) * 3
parts = [np.empty(2, np.int64) for _ in range(size)]
dist.all_gather(parts, whole[rank].copy())
np.testing.assert_array_equal(np.stack(parts), whole)
out = np.empty(8, np.int64)
dist.all_gather_into_tensor(out, whole[rank].copy())
np.testing.assert_array_equal(out, whole.ravel())
refused("7", lambda: dist.all_gather_into_tensor(np.empty(7, np.int64), whole[rank].copy()))
refused("3", lambda: dist.all_gather(parts[:3], whole[rank].copy()))
refused("the ranks of the group make different calls", lambda: dist.all_gather_into_tensor(np.empty(4 * (1 + rank)), np.zeros(1 + rank)))
dist.barrier()
dist.destroy_process_group()
