# RUN: %tessera_python -m tessera.launch --nproc_per_node 2 --master_port 0 %s
# REQUIRES: tessera-core, zmq
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D1-1: kvstore.create by name; the store on devices works between two processes, an unknown name lists the known ones."""

import numpy as np

from feature_case import refused
from tessera import distributed, kvstore

refused("expected one of local, dist_sync, dist_async, dist_sync_device", lambda: kvstore.create("dist_gpu"))
local = kvstore.create("local")
assert [kvstore.create(name).type for name in ("Local", "device", "local_allreduce_cpu")] == ["local"] * 3  # as MXNet spells them
local.init("w", np.zeros(2))
assert (local.pushpull("w", np.ones(2)) == 1).all() and (local.rank, local.num_workers) == (0, 1)
kv = kvstore.create("dist_sync_device")
kv.init("w", np.zeros(3))
np.testing.assert_array_equal(kv.pushpull("w", np.full(3, 1.0 + kv.rank)), np.full(3, 3.0))
assert (kv.type, kv.num_workers, kv.rank) == ("dist_sync_device", 2, distributed.get_rank())
for name in ("dist_sync", "dist_async"):
    refused("TESSERA_ROLE", lambda: kvstore.create(name))  # of a job with servers
