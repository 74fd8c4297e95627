# RUN: %tessera_python %s %S/Inputs/checkpoint_group.py
# REQUIRES: tessera-core
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D2-10: the ranks of a process group save through one manifest; one that sees another folder, or saves another state, is named."""

import os
import sys
import unittest

from launch_case import LaunchCase

SCRIPT = os.path.abspath(sys.argv.pop())


class Groups(LaunchCase):
    def save(self, ranks, *folders):
        code, out, err = self.launch(f"--nproc_per_node={ranks}", "--master_port=0", SCRIPT, "tcp", *folders)
        self.assertEqual(code, 0, err)
        return [line.partition("] ")[2] for line in out]

    def test_shards(self):
        for ranks in (2, 3):
            lines = self.save(ranks, f"run-{ranks}")
            self.assertEqual(lines.count("good 4"), ranks, lines)
            self.assertEqual(sorted(os.listdir(os.path.join(self.folder, f"run-{ranks}", "step-0000000004"))),
                             ["manifest.json", "shard-00000-of-00001.safetensors"])

    def test_other_states(self):
        lines = [line for line in self.save(2, "run") if line.startswith("refused")]
        self.assertEqual(len(lines), 4)
        for line in lines:
            self.assertRegex(line, r"rank 1 \(host \S+\) saves 'w' float64\[[23]\] whole, where rank 0 saves '[wv]' float64\[2\] whole; all ranks must save the "
                                   "same state of the same step")

    def test_a_folder_that_is_not_shared(self):
        lines = self.save(3, "mine", "yours")
        self.assertEqual(len(lines), 3)
        for line in lines:
            self.assertRegex(line, r"rank 1 \(host \S+\), rank 2 \(host \S+\) do not see the files of rank 0 \(host \S+\); the folder is not shared")
        self.assertEqual([name for name in os.listdir(os.path.join(self.folder, "mine")) if name.startswith(".writing")], [])


if __name__ == "__main__":
    unittest.main()
