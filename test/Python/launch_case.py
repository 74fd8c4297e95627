# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared by tests of the launcher. Nothing is timed: waits have generous timeouts."""

import contextlib
import io
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from tessera.launch import main

LONG = 300  # seconds until a test gives up

# Removes variables of this test's own launcher from the jobs below.
for name in list(os.environ):
    if name.startswith(("OMPI_", "PMI_", "PMIX_", "SLURM_", "TESSERA_", "TORCHELASTIC_")) or name in (
            "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"):
        del os.environ[name]

SHOW = """
import os, sys
names = "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "TESSERA_RESTART", "TESSERA_NODE_RANK"
print(*(os.environ.get(name, "-") for name in names), *sys.argv[1:])
"""
# Prints a line, then waits to be ended.
WAITS = """
import os, time
print("ready", os.environ["RANK"])
while True:
    time.sleep(1)
"""
# Rank argv[1] dies of argv[2], an exit code or a signal (negative), when argv[3] exists, if it is given; others wait.
DIES = """
import os, signal, sys, time
print("ready", os.environ["RANK"])
if os.environ["RANK"] == sys.argv[1]:
    while len(sys.argv) > 3 and not os.path.exists(sys.argv[3]):
        time.sleep(0.05)
    print("the reason", file=sys.stderr)
    how = int(sys.argv[2])
    if how < 0:
        os.kill(os.getpid(), -how)
    sys.exit(how)
while True:
    time.sleep(1)
"""


def free_ports(count):
    """Distinct ports on which no process listens."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("", 0))
    found = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return found


def marked(mark):
    """Processes that have NAME=VALUE in their environment, except zombies."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/environ", "rb") as file:
                if mark.encode() in file.read().split(b"\0"):
                    found.append(int(process))
        except OSError:
            continue
    return found


def wait_until(condition, what):
    end = time.monotonic() + LONG
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {LONG} s until {what}")
        time.sleep(0.02)


class LaunchCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(subprocess.run, ["rm", "-rf", self.folder])
        self.mark = f"LAUNCH_TEST={os.getpid()}-{self.id()}"
        self.addCleanup(self.kill_all)

    def kill_all(self):
        for process in marked(self.mark):
            os.kill(process, signal.SIGKILL)

    def script(self, text, name="script.py"):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def start(self, *words, **environment):
        """A launcher, with its output as text."""
        variables = {**os.environ, "LAUNCH_TEST": self.mark.partition("=")[2], **environment}
        return subprocess.Popen([sys.executable, "-m", "tessera.launch", *map(str, words)], env=variables, cwd=self.folder, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def launch(self, *words, **environment):
        """(exit code, lines of standard output in order of text, standard error) of a job that ends by itself."""
        process = self.start(*words, **environment)
        out, err = process.communicate(timeout=LONG)
        return process.returncode, sorted(out.splitlines()), err

    def refused(self, *words, says):
        """One line of error, and nothing starts; so this process may be the launcher."""
        before, out, err = os.getcwd(), io.StringIO(), io.StringIO()
        os.chdir(self.folder)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main(list(map(str, words)))
        finally:
            os.chdir(before)
        self.assertEqual((code, out.getvalue()), (1, ""), err.getvalue())
        self.assertEqual(len(err.getvalue().splitlines()), 1, err.getvalue())
        self.assertTrue(err.getvalue().startswith("tessera: error: "), err.getvalue())
        self.assertIn(says, err.getvalue())

    def read_ready(self, process, count):
        """Reads until so many ranks have printed that they are ready."""
        for _ in range(count):
            line = process.stdout.readline()
            self.assertIn("ready", line, process.stderr.read() if not line else line)

    def assertAllGone(self):
        wait_until(lambda: not marked(self.mark), "all processes of the job are gone")
