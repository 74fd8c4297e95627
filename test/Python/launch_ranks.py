# RUN: %tessera_python %s
# REQUIRES: python
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D1-8: the rank of a process, from the variables of every launcher (Inputs/ranks.json has the rules), and the rendezvous address."""

import json
import os
import unittest

from tessera import ranks
from tessera.errors import Error


class Rule(unittest.TestCase):
    def test_table(self):
        with open(os.path.join(os.path.dirname(__file__), "Inputs", "ranks.json"), encoding="utf-8") as file:
            cases = json.load(file)
        self.assertGreater(len(cases), 30)
        for case in cases:
            with self.subTest(case["what"]):
                if "error" in case:
                    with self.assertRaises(Error) as caught:
                        ranks.read(case["environment"])
                    self.assertEqual(str(caught.exception), case["error"])
                else:
                    self.assertEqual(ranks.read(case["environment"]), ranks.Ranks(**case["ranks"]))

    def test_is_printed(self):
        self.assertEqual(str(ranks.read({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
                                         "OMPI_COMM_WORLD_LOCAL_SIZE": "2"})), "rank 1 of 4, local rank 1 of 2, from OMPI_*")

    def test_local_ranks_of_uneven_hosts(self):
        self.assertEqual(ranks.local_ranks(["a", "b", "a", "a"]), [(0, 3), (0, 1), (1, 3), (2, 3)])

    def test_device(self):
        of = ranks.Ranks(rank=3, size=4, local_rank=1, local_size=2)
        self.assertEqual(of.device(2), 1)
        self.assertEqual(of.device(1), 0)  # srun --gpus-per-task
        with self.assertRaisesRegex(Error, "local rank 5 has no device: 2 are visible"):
            ranks.Ranks(rank=5, size=6, local_rank=5).device(2)

    def test_slurm_counts(self):
        self.assertEqual(ranks.tasks_per_node("2(x3),1"), [2, 2, 2, 1])
        for text in ("", "2(x", "0", "2(x3),", "a", "9999999(x9999999)"):
            with self.assertRaisesRegex(Error, "as 2.x3.,1"):
                ranks.tasks_per_node(text)


class Meeting(unittest.TestCase):
    def test_addresses(self):
        slurm = {"SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_STEP_NODELIST": "gpu[03-07,9],x"}
        for environment, expected in (
                ({}, ("127.0.0.1", 29500)),
                ({"MASTER_ADDR": "h", "MASTER_PORT": "80"}, ("h", 80)),
                ({"MASTER_ADDR": "[::1]"}, ("::1", 29500)),
                ({"MASTER_ADDR": "h", "MASTER_PORT": "80", "TESSERA_MASTER_PORT": "90"}, ("h", 90)),
                # torchrun's agent listens at MASTER_PORT itself.
                ({"MASTER_ADDR": "h", "MASTER_PORT": "80", "TORCHELASTIC_USE_AGENT_STORE": "True"}, ("h", 81)),
                (slurm, ("gpu03", 29500)),
                ({**slurm, "SLURM_STEP_NODELIST": "one"}, ("one", 29500))):
            self.assertEqual(ranks.meeting(environment), expected)

    def test_refusals(self):
        for environment, says in (({"MASTER_PORT": "70000"}, "MASTER_PORT is '70000'; expected a port from 1 to 65535"),
                                  ({"MASTER_PORT": "x"}, "MASTER_PORT is 'x'"),
                                  ({"MASTER_ADDR": ""}, "MASTER_ADDR is ''; expected a host name"),
                                  ({"MASTER_ADDR": "a b"}, "MASTER_ADDR is 'a b'")):
            with self.assertRaises(Error) as caught:
                ranks.meeting(environment)
            self.assertIn(says, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
