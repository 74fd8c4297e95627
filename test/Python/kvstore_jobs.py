# RUN: %tessera_python %s
# REQUIRES: tessera-core, zmq
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D0-8, D1-2, D1-3, D1-4, D3-7: results and errors of jobs with servers, between processes."""

import os
import subprocess
import sys
import unittest

from kvstore_case import LONG, JobCase

SYNC = """
import numpy as np
import tessera as ts
from tessera import kvstore
kv = kvstore.create("dist_sync", timeout=60, shard_bytes=256)
device = [np.random.default_rng(rank).standard_normal(1000) for rank in range(kv.num_workers)]
kv.init("g", np.zeros(1000))
total = device[0]
for each in device[1:]:
    total = total + each
assert np.array_equal(kv.pushpull("g", device[kv.rank]), total)
kv.init("top", np.zeros(()), param_only=True)
kv.init("sum", np.zeros(()), param_only=True)
kv.init("half", np.zeros(9, np.float16))
assert np.array_equal(kv.pushpull("half", device[kv.rank][:9].astype(np.float16)),
                      sum(each[:9].astype(np.float16).astype(np.float32) for each in device).astype(np.float16))
top = kv.pushpull("top", device[kv.rank].max(), op=kvstore.Max)
whole = np.concatenate(device)
assert top == whole.max()
assert np.isclose(kv.pushpull("sum", np.exp(device[kv.rank] - top).sum()), np.exp(whole - top).sum())
try:
    kv.init("bad", np.zeros(3 + kv.rank))
except kvstore.StoreError as error:
    assert "the workers initialize different keys: worker 0 key 'bad' as float64 of shape [3], worker 1" in str(error), error
else:
    raise AssertionError
kv.push("top", 1.0, op=kvstore.Max if kv.rank else kvstore.Min)
try:
    kv.pull("top")
except kvstore.StoreError as error:
    assert "the workers push to key 'top' with different ops: worker 0 with min, worker 1 with max" in str(error), error
else:
    raise AssertionError
kv.set_gradient_compression({"type": "2bit", "threshold": 0.5})
assert np.array_equal(kv.pushpull("g", np.full(1000, 0.6 if kv.rank else -0.4)), np.full(1000, 0.5 * (kv.num_workers - 1)))
kv.set_gradient_compression({"type": "none"})
# The joined batch of one process.
x, y = np.random.default_rng(9).standard_normal((60, 5)), np.random.default_rng(8).standard_normal(60)
w = np.zeros(5)
kv.init("w", w)
kv.set_optimizer(ts.optim.SGD(0.05, 0.9), scale=1 / 60)
mine = slice(kv.rank, None, kv.num_workers)
for step in range(10):
    w = kv.pull("w")
    kv.push("w", x[mine].T @ (x[mine] @ w - y[mine]))
alone, velocity = np.zeros(5), np.zeros(5)
for step in range(10):
    velocity = 0.9 * velocity + x.T @ (x @ alone - y) / 60
    alone = alone - 0.05 * velocity
assert np.allclose(kv.pull("w"), alone, rtol=1e-12, atol=1e-14)
print("same", kv.rank, kv.local_rank, flush=True)
"""

ASYNC = """
import sys, time
import numpy as np
import tessera as ts
from tessera import kvstore
kv = kvstore.create("dist_async", timeout=60, staleness=2)
kv.init("w", np.zeros(3))
kv.init("clock", np.zeros(2, np.int64), param_only=True)
kv.set_optimizer(ts.optim.SGD(1.0))
kv.barrier()
for step in range(20):
    kv.push("w", np.ones(3))
    w = -kv.pull("w")[0]
    # This worker's pushes are there, and at least as many of the slowest but two.
    assert w >= (step + 1) + max(step - 1, 0), (step, w)
    if kv.rank == 0:
        time.sleep(0.02)
kv.barrier()
assert kv.pull("w")[0] == -40, kv.pull("w")
"""


class Jobs(JobCase):
    def test_synchronous(self):
        outs = self.all_done(*self.job(SYNC, 3, 2, environ={"OMP_NUM_THREADS": "1"}))
        self.assertEqual(sorted(outs), ["", "", "", *(f"same {rank} {rank}\n" for rank in range(3))])

    def test_asynchronous(self):
        self.all_done(*self.job(ASYNC, 2, 2))

    def test_token(self):
        """With a token all connections prove it; a worker with another token is rejected."""
        token = {"TESSERA_JOB_TOKEN": "0123456789abcdef"}
        script = "from tessera import kvstore\nkv = kvstore.create('dist_sync', timeout=float(__import__('sys').argv[1]))\n" \
                 "kv.init('w', [1.0])\nprint(kv.pushpull('w', [2.0]))"
        scheduler = self.role("scheduler", "--workers", 1, "--servers", 1, environ=token)
        server = self.role("server", environ=token)
        path = self.path("script.py", script)
        for environ in ({"TESSERA_JOB_TOKEN": "another token, as long"}, {}):
            wrong = self.role("worker", path, 2, environ=environ)
            self.assertIn("waited 2 s for the scheduler at tcp://127.0.0.1", self.done(wrong, 1)[1])
        self.assertEqual(self.done(self.role("worker", path, 60, environ=token))[0], "[2.]\n")
        self.all_done(scheduler, server)

    def test_refusals(self):
        def create(**environ):
            done = subprocess.run([sys.executable, "-c", "from tessera import kvstore\nkvstore.create('dist_sync', timeout=1)"], text=True,
                                  capture_output=True, timeout=LONG, env={**os.environ, **environ})
            self.assertNotEqual(done.returncode, 0)
            return done.stderr
        self.assertIn("TESSERA_ROLE is 'wroker'; expected one of scheduler, server, worker", create(TESSERA_ROLE="wroker"))
        self.assertIn("TESSERA_ROLE is 'worker' and DMLC_ROLE is 'server'", create(TESSERA_ROLE="worker", DMLC_ROLE="server"))
        self.assertIn("neither TESSERA_ROLE nor DMLC_ROLE is set", create())
        self.assertIn(f"this worker waited 1 s for the scheduler at tcp://127.0.0.1:{self.port}; start it there",
                      create(DMLC_ROLE="worker", DMLC_PS_ROOT_PORT=str(self.port)))
        self.assertIn("DMLC_NUM_WORKER is '0'", create(DMLC_ROLE="scheduler", DMLC_NUM_WORKER="0"))
        self.assertIn("and there is no job token", create(DMLC_ROLE="worker", DMLC_PS_ROOT_URI="192.0.2.1"))
        scheduler = self.role("scheduler", "--workers", 1, "--servers", 2, "--timeout", 1)
        self.assertIn("the scheduler waited 1 s: 0 of 2 servers and 0 of 1 workers joined", self.done(scheduler, 1)[1])


if __name__ == "__main__":
    unittest.main()
