# RUN: %tessera_python %s
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Process groups of processes over sockets: by spawn, by the launcher, and when processes fail."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

import tessera.distributed as dist

LONG = 120  # seconds until a test gives up


def initialize(rank, size, path, timeout=LONG):
    dist.init_process_group("tcp", f"file://{path}", timeout, size, rank)


def suite(rank, size, path):
    """Each collective with two types and sizes; an assertion that fails ends the process."""
    initialize(rank, size, path)
    for dtype in (np.float32, np.int16):
        for count in (1, 1000, 300_000):  # more than a segment
            ranks = [(np.arange(count) * (other + 1) % 7).astype(dtype) for other in range(size)]
            total, x = sum(ranks), ranks[rank].copy()
            dist.all_reduce(x)
            np.testing.assert_array_equal(x, total)
            whole = np.zeros((size, count), dtype)
            dist.all_gather_into_tensor(whole, ranks[rank])
            np.testing.assert_array_equal(whole, ranks)
            part = np.zeros(len(range(rank, count, size)), dtype)
            dist.reduce_scatter(part, [ranks[rank][other::size].copy() for other in range(size)])
            np.testing.assert_array_equal(part, total[rank::size])
            x = ranks[rank].copy()
            dist.broadcast(x, size - 1, algorithm="ring")
            np.testing.assert_array_equal(x, ranks[-1])
            dist.all_to_all_single(whole, np.stack(ranks) + np.array(rank, dtype))
            np.testing.assert_array_equal(whole, [ranks[rank] + np.array(other, dtype) for other in range(size)])
    dist.barrier()
    objects = [None] * size
    dist.all_gather_object(objects, [rank, dist.get_local_rank(), dist.get_host(rank)])
    assert objects == [[other, other, dist.get_host(other)] for other in range(size)], objects
    dist.destroy_process_group()


def raises(rank, size, path):
    initialize(rank, size, path)
    if rank == 1:
        raise ValueError("no more data")
    dist.all_reduce(np.ones(3))


def dies(rank, size, path):
    initialize(rank, size, path)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(np.ones(3))


def survives(rank, size, path):
    """The error on the others when one is killed."""
    initialize(rank, size, path)
    if rank == 1:
        time.sleep(0.5)
        os._exit(0)
    try:
        dist.all_reduce(np.ones(3))
    except dist.DistributedError as error:
        with open(f"{path}.{rank}", "w", encoding="utf-8") as file:
            file.write(str(error))


def differs(rank, size, path):
    initialize(rank, size, path)
    try:
        dist.all_reduce(np.ones(3 + rank))
    except dist.DistributedError as error:
        with open(f"{path}.{rank}", "w", encoding="utf-8") as file:
            file.write(str(error))
    dist.barrier()


SCRIPT = """
import numpy as np
import tessera.distributed as dist
group = dist.init_process_group()
x = np.array([dist.get_rank() + 1.0])
dist.all_reduce(x)
print(group.backend, int(x[0]), dist.get_world_size(), dist.get_local_rank())
dist.destroy_process_group()
"""


class Processes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "meeting")

    def said(self, ranks):
        texts = []
        for rank in ranks:
            with open(f"{self.path}.{rank}", encoding="utf-8") as file:
                texts.append(file.read())
        return texts

    def test_collectives(self):
        dist.spawn(suite, (3, self.path), 3)

    def test_an_exception_has_its_rank(self):
        with self.assertRaises(dist.SpawnError) as caught:
            dist.spawn(raises, (3, self.path), 3)
        self.assertEqual(caught.exception.rank, 1)
        self.assertIn("rank 1 failed:\nTraceback", str(caught.exception))
        self.assertIn("ValueError: no more data", str(caught.exception))

    def test_a_signal_has_its_rank(self):
        with self.assertRaises(dist.SpawnError) as caught:
            dist.spawn(dies, (3, self.path), 3)
        self.assertEqual(str(caught.exception), "rank 1 was ended by SIGKILL")

    def test_who_ends_is_named_to_the_others(self):
        dist.spawn(survives, (3, self.path), 3)
        host = os.uname().nodename
        for said in self.said([0, 2]):
            # The call or the watchdog notices that a connection ends; the second rank may get the error from the first.
            self.assertRegex(said, rf"^(all_reduce of 3 f64 by sum, at .*: )?rank [012] \({host}\) (has ended|has left the job|is lost: .*)")
        self.assertTrue(any(f"rank 1 ({host})" in said for said in self.said([0, 2])))

    def test_calls_that_differ(self):
        dist.spawn(differs, (3, self.path), 3)
        line = differs.__code__.co_firstlineno + 3
        self.assertEqual(set(self.said(range(3))), {"the ranks of the group make different calls: " + "; ".join(
            f"rank {rank}: all_reduce of {3 + rank} f64 by sum, at {os.path.abspath(__file__)}:{line}" for rank in range(3))})

    def test_processes_without_join(self):
        processes = dist.spawn(suite, (2, self.path), 2, join=False)
        self.assertEqual(len(processes.pids()), 2)
        while not processes.join(1):
            pass

    def test_the_launcher(self):
        script = f"{self.path}.py"
        with open(script, "w", encoding="utf-8") as file:
            file.write(SCRIPT)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("TESSERA_", "OMPI_", "PMI", "SLURM_"))}
        done = subprocess.run([sys.executable, "-m", "tessera.launch", "--nproc_per_node", "3", "--master_port", "0", script],
                              capture_output=True, text=True, timeout=LONG, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        for rank in range(3):
            self.assertIn(f"[rank {rank}] tcp 6 3 {rank}", done.stdout)

    def test_processes_that_end_without_a_word(self):
        script = SCRIPT.replace("dist.destroy_process_group()", "lost = dist.all_reduce(np.ones(1000), async_op=True)")
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=LONG)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", "tcp 1 1 0\n"))

    def test_one_process_needs_no_launcher(self):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(SCRIPT, {})
        self.assertEqual(printed.getvalue(), "tcp 1 1 0\n")


if __name__ == "__main__":
    unittest.main()
