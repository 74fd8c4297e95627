# RUN: %tessera_python %s
# REQUIRES: tessera-core, zmq
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D3-7: servers that are killed."""

import signal
import unittest

from kvstore_case import StepsCase


# Pulls many keys directly after a barrier, at which servers may have joined: values are available without a push.
READS = """
import os, sys, time
import numpy as np
from tessera import kvstore
kv = kvstore.create("dist_sync", timeout=30)
keys = [f"key {i}" for i in range(24)]
kv.init(keys, [np.full(3, float(i)) for i in range(24)])
kv.init("stop", 0, param_only=True)
while True:
    for i, value in enumerate(kv.pull(keys)):
        assert (value == i).all(), (i, value)
    print(kv.rank, kv.num_servers, flush=True)
    stop = kv.pushpull("stop", int(os.path.exists(sys.argv[1])), op=kvstore.Max)
    kv.barrier()
    if stop:
        break
    time.sleep(0.05)
"""


class Servers(StepsCase):
    def test_a_server_comes_and_values_are_read(self):
        scheduler, servers, workers = self.job(READS, 2, 1, arguments=(self.path("stop"),))
        for count in (2, 3):
            servers.append(self.role("server"))
            self.lines_until(workers[0], lambda step: step[1] == count)
        self.finish(scheduler, servers, workers)

    def test_a_server_is_killed(self):
        scheduler, servers, workers = self.begin(2, 3)
        servers.pop(1).kill()
        last = self.lines_until(workers[0], lambda step: step[2] == 2)
        last = self.lines_until(workers[0], lambda step: step[3] > last[3] + 2)
        self.assertEqual(last[4], 3 * last[3])  # no step is lost or made twice
        self.finish(scheduler, servers, workers)

    def test_servers_one_after_the_other(self):
        scheduler, servers, workers = self.begin(2, 2)
        servers.pop(0).kill()
        self.lines_until(workers[0], lambda step: step[2] == 1)
        servers.append(self.role("server"))
        self.lines_until(workers[0], lambda step: step[2] == 2)
        servers.pop(0).kill()
        last = self.lines_until(workers[0], lambda step: step[2] == 1)
        self.assertEqual(last[4], 3 * last[3])
        self.finish(scheduler, servers, workers)

    def test_the_last_server_is_killed(self):
        scheduler, servers, workers = self.begin(2, 1)
        servers[0].kill()
        errors = [self.done(process, 1)[1] for process in (scheduler, *workers)]
        for error in errors:
            self.assertRegex(error, r"no server with the keys is left; the last was server 0 \(host \S+, process \d+\), which was silent for 3 s")

    def test_a_server_that_stood_still_changes_nothing(self):
        scheduler, servers, workers = self.begin(2, 3)
        servers[0].send_signal(signal.SIGSTOP)
        last = self.lines_until(workers[0], lambda step: step[2] == 2)
        servers[0].send_signal(signal.SIGCONT)
        self.assertRegex(self.done(servers.pop(0), 1)[1], r"(?m)server \d .* was declared lost: it was silent for 3 s|the scheduler .* is lost")
        last = self.lines_until(workers[0], lambda step: step[3] > last[3] + 2)
        self.assertEqual(last[4], 3 * last[3])
        self.finish(scheduler, servers, workers)


if __name__ == "__main__":
    unittest.main()
