# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D1-11: the launcher sets OMP_NUM_THREADS to cores / processes; the preflight names the host and process of what is left over on a node
or sits on a device, ranks on a device that is not their own, versions of libraries that differ, and threads that do not fit. Devices are
those of an nvidia-smi made for the test."""

import os
import platform
import stat
import subprocess
import sys
import tempfile
import unittest

from tessera import preflight

SHOW = "import os; print('threads', os.environ['OMP_NUM_THREADS'])"
# nvidia-smi of a host with two devices, on the second of which process argv[1] computes.
SMI = """#!/bin/sh
case "$1" in
  --query-gpu=index,uuid) echo "0, GPU-a"; echo "1, GPU-b";;
  --query-gpu=driver_version) echo 550.1;;
  --query-gpu=index,name,memory.used) echo "0, Tesla X, 5000 MiB"; echo "1, Tesla X, 301 MiB";;
  --query-compute-apps=*) echo "%d, GPU-b, 300 MiB";;
esac
"""


def launch(*words, **environment):
    variables = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"} | environment
    return subprocess.run([sys.executable, "-m", "tessera.launch", "--master_port=0", *words], env=variables, text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def fact(host, **other):
    return {"host": host, "process": 1000, "parents": [999], "jobs": [], "devices": [], "used": [], "versions": {"numpy": "2.0"}, "cores": 8,
            "threads": 4, "port": "29500", "local_rank": 0} | other


class Threads(unittest.TestCase):
    def test_launcher_divides_the_cores(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
            script.write(SHOW)
            script.flush()
            every = len(os.sched_getaffinity(0))
            for count in (1, 2):
                out = launch(f"--nproc_per_node={count}", script.name).stdout.splitlines()
                self.assertEqual({line.split()[-1] for line in out}, {str(max(1, every // count))})
            self.assertIn("threads 7", launch(script.name, OMP_NUM_THREADS="7").stdout)

    def test_too_many_threads_are_named(self):
        done = launch("--nproc_per_node=2", "-m", "tessera.preflight", OMP_NUM_THREADS="64")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, f"host {platform.node()}: 2 processes start 128 threads on .*: OMP_NUM_THREADS is 64")


class LeftOver(unittest.TestCase):
    def test_a_rank_with_the_same_port(self):
        other = subprocess.Popen(["sleep", "100"], env={"RANK": "3", "WORLD_SIZE": "4", "MASTER_PORT": "29977", "PATH": os.environ["PATH"]})
        try:
            variables = os.environ | {"MASTER_PORT": "29977"}
            done = subprocess.run([sys.executable, "-m", "tessera.preflight"], env=variables, text=True, stdout=subprocess.PIPE, timeout=120)
        finally:
            other.kill()
            other.wait()
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"host {platform.node()}: process {other.pid} (sleep 100) is rank 3 of another job with port 29977; this job has the same port",
                      done.stdout)

    def test_a_process_on_a_device(self):
        other = subprocess.Popen(["sleep", "100"])
        try:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "nvidia-smi")
                with open(path, "w") as file:
                    file.write(SMI % other.pid)
                os.chmod(path, stat.S_IRWXU)
                found = {}
                for shown in (None, "1", "0"):
                    variables = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"} | ({"CUDA_VISIBLE_DEVICES": shown} if shown else {})
                    found[shown] = subprocess.run([sys.executable, "-m", "tessera.preflight"], env=variables, text=True,
                                                  stdout=subprocess.PIPE, timeout=120).stdout
        finally:
            other.kill()
            other.wait()
        says = f"host {platform.node()}: process {other.pid} (sleep 100) is on device 1 with 300 MiB"
        self.assertIn(says, found[None])
        self.assertIn(says, found["1"])
        self.assertNotIn(says, found["0"])  # the job does not use that device
        hidden = f"note: host {platform.node()}: device 0 has 5000 MiB in use by processes that this one does not see"
        self.assertIn(hidden, found[None])
        self.assertIn(hidden, found["0"])
        self.assertNotIn("does not see", found["1"])

    def test_a_rank_on_a_device_that_is_not_its_own(self):
        own = {"RANK": "2", "WORLD_SIZE": "4", "MASTER_PORT": "29978", "PATH": os.environ["PATH"]}
        with tempfile.TemporaryDirectory() as folder:
            for local, shown, device in (("0", None, "0"), ("1", None, None), ("0", "1", None), ("1", "GPU-b,GPU-a", "GPU-a"), ("5", None, "none")):
                rank = subprocess.Popen(["sleep", "100"], env=own | {"LOCAL_RANK": local} | ({"CUDA_VISIBLE_DEVICES": shown} if shown else {}))
                try:
                    path = os.path.join(folder, "nvidia-smi")
                    with open(path, "w") as file:
                        file.write(SMI % rank.pid)
                    os.chmod(path, stat.S_IRWXU)
                    out = subprocess.run([sys.executable, "-m", "tessera.preflight"], env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}, text=True,
                                         stdout=subprocess.PIPE, timeout=120).stdout
                finally:
                    rank.kill()
                    rank.wait()
                says = f"host {platform.node()}: rank 2 (process {rank.pid}) has 300 MiB on device 1, and its own is {device}; select the device"
                (self.assertNotIn("and its own is", out) if device is None else self.assertIn(says, out))


class Versions(unittest.TestCase):
    def test_both_are_named(self):
        lines, _ = preflight.troubles([fact("n0"), fact("n1", versions={"numpy": "1.26"})])
        self.assertEqual(lines, ["numpy is 2.0 on host n0 and 1.26 on host n1; install one version"])

    def test_what_may_differ_is_a_note(self):
        card = {"device": "0", "uuid": "GPU-a", "name": "Tesla X", "memory": "", "own": True}
        lines, notes = preflight.troubles([fact("n0", cards=[card], devices=["GPU-a"]), fact("n1", threads=2)])
        self.assertEqual(lines, [])
        self.assertEqual(notes, ["OMP_NUM_THREADS is 4 on host n0 and 2 on host n1", "the number of devices is 1 on host n0 and 0 on host n1",
                                 "the kind of devices is Tesla X on host n0 and not set on host n1"])

    def test_all_well(self):
        self.assertEqual(preflight.troubles([fact("n0"), fact("n1"), fact("n0", process=1001)]), ([], []))

    def test_a_job_that_is_apart_is_a_note(self):
        job = {"process": 7, "parents": [6, 1], "command": "python x.py", "rank": "0", "port": "1234"}
        self.assertEqual(preflight.troubles([fact("n0", jobs=[job])]), ([], ["host n0: process 7 (python x.py) is rank 0 of another job with port 1234"]))
        lines, _ = preflight.troubles([fact("n0", jobs=[job | {"parents": [1]}])])
        self.assertIn("whose launcher is gone; end it", lines[0])


if __name__ == "__main__":
    unittest.main()
