# RUN: %tessera_python -m tessera.launch --nproc_per_node 3 --master_port 0 %s
# REQUIRES: tessera-core, zmq
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D1-4: a softmax over shards of classes by push of Max, then of Sum, equals that of one process; push before init, and an unknown
operation, are errors; gradient compression keeps the rest."""

import numpy as np

from feature_case import refused
from tessera import kvstore

kv = kvstore.create("dist_sync_device")
logits = np.random.default_rng(3).standard_normal((4, 12)) * 5
mine = np.split(logits, 3, axis=1)[kv.rank]
kv.init("top", np.zeros(4), param_only=True)
kv.init("sum", np.zeros(4), param_only=True)
top = kv.pushpull("top", mine.max(axis=1), op=kvstore.Max)
exponentials = np.exp(mine - top[:, None])
total = kv.pushpull("sum", exponentials.sum(axis=1), op=kvstore.Sum)
whole = np.exp(logits - logits.max(axis=1, keepdims=True))
whole /= whole.sum(axis=1, keepdims=True)
np.testing.assert_allclose(exponentials / total[:, None], np.split(whole, 3, axis=1)[kv.rank], rtol=1e-12)
assert kv.pushpull("sum", np.full(4, float(kv.rank)), op=kvstore.Min)[0] == 0
refused("'nothing'", lambda: kv.push("nothing", np.zeros(2)))
refused("op", lambda: kv.push("top", np.zeros(4), op="median"))
