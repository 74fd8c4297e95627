# RUN: %tessera_python %s %S/Inputs/elastic.py
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A job that loses a rank continues with fewer ranks from the last checkpoint; SIGTERM saves and ends with 143."""

import os
import re
import signal
import sys
import unittest

import numpy as np
from launch_case import LONG, LaunchCase

import tessera as ts

SCRIPT = os.path.abspath(sys.argv.pop())


class Training(LaunchCase):
    STEPS = 12

    def train(self, ranks, folder, *acts, steps=STEPS, options=()):
        """(exit code, losses by step, lines with the first step of each start, standard error)"""
        code, out, err = self.launch(f"--nproc_per_node={ranks}", "--master_port=0", *options, SCRIPT, folder, steps, *acts)
        losses = {int(step): float(loss) for step, loss in re.findall(r"\[rank 0\] loss (\d+) (\S+)", "\n".join(out))}
        return code, losses, sorted(line for line in out if "begin" in line), err

    def assertSame(self, losses, expected):
        np.testing.assert_allclose([losses[step] for step in sorted(losses)], [expected[step] for step in sorted(losses)], rtol=1e-4)

    def expected(self):
        code, losses, _, err = self.train(1, "alone")
        self.assertEqual((code, sorted(losses)), (0, list(range(self.STEPS))), err)
        return losses

    def test_a_killed_rank(self):
        """From 4 ranks to 3, 2 and 1; a rank dies after step 7, and the last checkpoint is that of step 6."""
        expected = self.expected()
        for ranks in (4, 3, 2):
            code, losses, begins, err = self.train(ranks, f"from-{ranks}", f"kill:{ranks - 1}:6", options=("--max_restarts=1", "--min_ranks=1"))
            self.assertEqual((code, sorted(losses)), (0, list(range(self.STEPS))), err)
            self.assertIn("was ended by signal 9 (SIGKILL)", err)
            self.assertEqual(begins, sorted([f"[rank 0] {ranks} ranks begin behind step 0", f"[rank 0] {ranks - 1} ranks begin behind step 6"]))
            self.assertSame(losses, expected)

    def test_any_mesh_to_any_other(self):
        """A job may also continue with more ranks."""
        expected = self.expected()
        for begin, ranks in ((0, 2), (4, 3), (8, 1)):
            code, losses, begins, err = self.train(ranks, "run", steps=begin + 4)
            self.assertEqual((code, begins, sorted(losses)), (0, [f"[rank 0] {ranks} ranks begin behind step {begin}"], list(range(begin, begin + 4))), err)
            self.assertSame(losses, expected)

    def test_sigterm_of_a_rank(self):
        """All ranks save after the same step, whichever got the signal, and end with 143."""
        for ranks in (1, 3):
            for rank in {0, ranks - 1}:
                folder = f"term-{ranks}-{rank}"
                code, losses, _, err = self.train(ranks, folder, f"term:{rank}:6")
                self.assertEqual(code, 128 + signal.SIGTERM, err)
                last = max(losses) + 1
                self.assertEqual(ts.load_checkpoint(os.path.join(self.folder, folder)).step, last)
                self.assertIn(last, (8, 9))
                code, losses, begins, err = self.train(ranks, folder)
                self.assertEqual((code, begins), (0, [f"[rank 0] {ranks} ranks begin behind step {last}"]), err)
                self.assertEqual(sorted(losses), list(range(last, self.STEPS)))

    def test_sigterm_of_the_launcher(self):
        process = self.start("--nproc_per_node=2", "--master_port=0", SCRIPT, "run", 10**6)
        while "loss 5" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=LONG)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, err)
        last = max(int(step) for step in re.findall(r"loss (\d+)", out)) + 1
        self.assertEqual(ts.load_checkpoint(os.path.join(self.folder, "run")).step, last)


if __name__ == "__main__":
    unittest.main()
