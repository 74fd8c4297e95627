# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared by tests of jobs with servers. Nothing is timed: waits have generous timeouts."""

import os
import subprocess
import sys
import tempfile
import unittest

from launch_case import free_ports  # clears the environment, too

LONG = 100  # seconds until a test gives up

# Pushes 1 + rank at each step until the file `stop` exists, on which the workers agree by a maximum.
STEPS = """
import os, sys, time
import numpy as np
import tessera as ts
from tessera import kvstore
kv = kvstore.create("dist_sync", timeout=60, shard_bytes=64)
kv.init("w", np.zeros(50))
kv.init("stop", 0, param_only=True)
kv.set_optimizer(ts.optim.SGD(1.0))
while True:
    kv.push("w", np.full(50, 1.0 + kv.rank))
    w = kv.pull("w")
    assert (w == w[0]).all() or len(sys.argv) > 2, w
    print(kv.rank, kv.num_workers, kv.num_servers, kv.version("w"), -w[0], flush=True)
    stop = kv.pushpull("stop", int(os.path.exists(sys.argv[1])), op=kvstore.Max)
    kv.barrier()
    if stop:
        break
    time.sleep(0.05)
"""


class JobCase(unittest.TestCase):
    """Processes of one job. Remaining ones are killed at the end."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.port = folder.name, free_ports(1)[0]
        self.processes = []
        self.addCleanup(self.end)

    def end(self):
        for process in self.processes:
            process.kill()
            process.communicate()

    def path(self, name, text=None):
        path = os.path.join(self.folder, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def start(self, *words, environ=None):
        process = subprocess.Popen([sys.executable, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, **(environ or {})}, cwd=self.folder)
        self.processes.append(process)
        return process

    def role(self, role, *words, environ=None):
        return self.start("-m", "tessera.kvstore", role, "--port", self.port, *words, environ=environ)

    def job(self, script, workers, servers, *words, options=(), arguments=(), environ=None):
        """The scheduler, the servers, and the workers with a script."""
        path = self.path("script.py", script)
        scheduler = self.role("scheduler", "--workers", workers, "--servers", servers, "--timeout", 60, *options, environ=environ)
        return (scheduler, [self.role("server", environ=environ) for _ in range(servers)],
                [self.role("worker", path, *arguments, environ=environ) for _ in range(workers)])

    def worker(self, *arguments):
        return self.role("worker", self.path("script.py"), *arguments)

    def done(self, process, code=0):
        """Output and error of a process that ends with this exit code."""
        out, err = process.communicate(timeout=LONG)
        self.assertEqual(process.returncode, code, err)
        return out, err

    def all_done(self, *groups):
        return [self.done(process)[0] for group in groups for process in (group if isinstance(group, list) else [group])]

    def lines_until(self, process, condition):
        """Reads steps (rank, workers, servers, version, value) until one satisfies the condition; returns it."""
        for line in process.stdout:
            step = [float(word) for word in line.split()]
            if condition(step):
                return step
        process.wait(LONG)
        ended = [each for each in self.processes if each.poll()]
        self.fail("\n".join(each.communicate()[1] for each in ended))


FAST = ("--lost_after", "3")


class StepsCase(JobCase):
    """Jobs of STEPS."""

    def begin(self, workers, servers, options=FAST):
        self.stop = self.path("stop")
        job = self.job(STEPS, workers, servers, options=options, arguments=(self.stop,))
        self.lines_until(job[2][0], lambda step: step[3] >= 3)
        return job

    def finish(self, *groups):
        self.path("stop", "now")
        return self.all_done(*groups)
