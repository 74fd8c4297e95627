# RUN: %tessera_python %s
# REQUIRES: python
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D0-17, D2-8, D1-11: options of the launcher, the environment of ranks, and errors before any rank starts."""

import os
import socket
import tempfile
import unittest
from unittest import mock

from launch_case import SHOW, LaunchCase, free_ports
from tessera.errors import Error
from tessera.launch import arguments, cores, environment


class Options(LaunchCase):
    def test_defaults_and_variables(self):
        code, out, _ = self.launch("--nproc_per_node", 3, "--master_port=0", self.script(SHOW), "a", "--b")
        self.assertEqual(code, 0)
        self.assertEqual(out, [f"[rank {i}] {i} 3 {i} 3 127.0.0.1 0 0 a --b" for i in range(3)])
        parsed = arguments.parse(["x.py"])
        self.assertEqual((parsed.master_addr, parsed.master_port, parsed.nnodes, parsed.node_rank), ("127.0.0.1", 29500, 1, 0))

    def test_spellings(self):
        for words in (["--nproc-per-node=2", "--master-address", "::1", "x.py"], ["--nproc_per_node", "2", "--master_addr=[::1]", "x.py"]):
            parsed = arguments.parse(words)
            self.assertEqual((parsed.nproc_per_node, parsed.master_addr), (2, "::1"))

    def test_options_behind_the_script_are_its_own(self):
        self.assertEqual(arguments.parse(["--", "x.py", "--nnodes", "9"]).args, ["--nnodes", "9"])

    def test_local_rank_only_on_request(self):
        show = self.script("import sys; print(sys.argv[1:])")
        self.assertEqual(self.launch("--nproc_per_node=2", "--master_port=0", "--pass_local_rank", show, "x")[1],
                         ["[rank 0] ['--local_rank=0', 'x']", "[rank 1] ['--local_rank=1', 'x']"])
        self.assertEqual(self.launch("--master_port=0", show, "x")[1], ["[rank 0] ['x']"])

    def test_module_and_program(self):
        self.script(SHOW, "shown.py")
        self.assertEqual(self.launch("-m", "--master_port=0", "shown")[1], ["[rank 0] 0 1 0 1 127.0.0.1 0 0"])
        self.assertEqual(self.launch("--master_port=0", "echo", "text")[1], ["[rank 0] text"])

    def test_dry_run_starts_nothing(self):
        code, out, _ = self.launch("--dry_run", "--nnodes=2", "--node_rank=1", "--nproc_per_node=2", "--devices=4,5", self.script(SHOW), "a b")
        self.assertEqual(code, 0)
        for local, line in enumerate(out):
            self.assertIn(f" RANK={2 + local} WORLD_SIZE=4 LOCAL_RANK={local} ", line)
            self.assertIn(" CUDA_VISIBLE_DEVICES=4,5 ", line)
            self.assertTrue(line.endswith("script.py 'a b'"), line)

    def test_stdin_is_that_of_rank_0(self):
        import subprocess
        import sys
        done = subprocess.run([sys.executable, "-m", "tessera.launch", "--nproc_per_node=2", "--master_port=0",
                               self.script("import os, sys; print(os.environ['RANK'], repr(sys.stdin.read()))")],
                              input="typed", text=True, stdout=subprocess.PIPE, timeout=120)
        self.assertEqual(sorted(done.stdout.splitlines()), ["[rank 0] 0 'typed'", "[rank 1] 1 ''"])


class Refusals(LaunchCase):
    def test_options(self):
        script = self.script(SHOW)
        for words, says in (
                (["--nproc_per_nod", 2, script], "unknown option '--nproc_per_nod'; did you mean --nproc_per_node?"),
                (["--zzz", script], "unknown option '--zzz'; --help lists the options"),
                (["--nproc-per-node", 0, script], "--nproc-per-node is '0'; expected a whole number, at least 1"),
                (["--nproc_per_node=two", script], "--nproc_per_node is 'two'; expected a whole number, at least 1"),
                (["--nnodes=2", "--node_rank=2", script], "--node_rank is 2 and --nnodes is 2; nodes count from 0, so --node_rank is at most 1"),
                (["--master_port=70000", script], "--master_port is '70000'; expected a port from 0 to 65535"),
                (["--nnodes=2", "--master_port=0", script], "all nodes must use the same port"),
                (["--master_addr=nowhere.invalid", script], "--master_addr is 'nowhere.invalid', which does not resolve"),
                (["--nnodes=2", "--master_addr=192.0.2.1", f"--master_port={free_ports(1)[0]}", script], "which other hosts can reach, and there is no job token"),
                (["absent.py"], "there is no script 'absent.py' in "),
                (["-m", "absent_module"], "there is no Python module 'absent_module'"),
                ([], "no script: tessera launch [OPTIONS] SCRIPT [ARGUMENTS]"),
                (["--nproc_per_node"], "--nproc_per_node has no value"),
                (["--devices=0,0", script], "names '0' twice"),
                (["--devices=a", script], "'a' is not a device"),
                (["--devices=0", "--nproc_per_node=2", script], "--nproc_per_node is 2 and --devices names 1"),
                (["--np=2", "--nnodes=2", script], "--np starts the job with mpirun, and --nnodes applies to processes that this command starts"),
                (["--hosts=a", script], "--hosts applies to jobs started by mpirun only; add --np N"),
                (["--timeout=-1", script], "--timeout is '-1'; expected a number of seconds, at least 0"),
                (["--token_file=absent", "--nnodes=2", script], "--token_file 'absent' cannot be read")):
            with self.subTest(words):
                self.refused(*words, says=says)

    def test_port_taken(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.refused("--master_port", port, self.script(SHOW), says=f"cannot listen at --master_port {port} on host "
                         f"{socket.gethostname()}: address already in use, by process {os.getpid()} (")

    def test_token_that_others_read(self):
        path = self.script("0123456789abcdef", "token")
        os.chmod(path, 0o644)
        self.refused("--nnodes=2", "--token_file", path, self.script(SHOW), says="is readable by all users; run chmod 600")


class Environment(unittest.TestCase):
    def test_threads(self):
        with mock.patch.object(environment, "cores", lambda: 8):
            self.assertEqual(environment.threads(3, {}), {"OMP_NUM_THREADS": "2"})
            self.assertEqual(environment.threads(16, {}), {"OMP_NUM_THREADS": "1"})
            self.assertEqual(environment.threads(3, {"OMP_NUM_THREADS": "5"}), {})

    def test_quotas_of_control_groups(self):
        for files, group, expected in (
                ({"a/b/cpu.max": "max 100000", "a/cpu.max": "250000 100000", "cpu.max": "400000 100000"}, "0::/a/b", 2.5),
                ({"cpu.max": "max 100000"}, "0::/", None),
                ({"cpu,cpuacct/x/cpu.cfs_quota_us": "150000", "cpu,cpuacct/x/cpu.cfs_period_us": "100000"}, "3:cpu,cpuacct:/x", 1.5),
                ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, "3:cpu:/", None)):
            with tempfile.TemporaryDirectory() as root:
                for path, text in {**files, "groups": group}.items():
                    os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                    with open(os.path.join(root, path), "w", encoding="ascii") as file:
                        file.write(text + "\n")
                self.assertEqual(cores.quota(root, os.path.join(root, "groups")), expected)

    def test_affinity(self):
        with mock.patch.object(cores.os, "sched_getaffinity", lambda _: {0, 3, 5}), mock.patch.object(cores, "quota", lambda: None):
            self.assertEqual(cores.cores(), 3)
        with mock.patch.object(cores.os, "sched_getaffinity", lambda _: {0, 3, 5}), mock.patch.object(cores, "quota", lambda: 0.5):
            self.assertEqual(cores.cores(), 1)

    def test_devices(self):
        self.assertEqual(environment.devices("1,0", {"CUDA_VISIBLE_DEVICES": "4,GPU-a"}), ["GPU-a", "4"])
        self.assertEqual(environment.devices("cpu", {}), [])
        self.assertEqual(arguments.parse(["--device=0,1", "x.py"]).devices, "0,1")
        with tempfile.TemporaryDirectory() as driver:
            os.mkdir(os.path.join(driver, "0000:01:00.0"))
            self.assertEqual(environment.devices("0", {}, driver), ["0"])
            with self.assertRaisesRegex(Error, "names 1, and this host has 1 GPU; devices count from 0"):
                environment.devices("0,1", {}, driver)
        self.assertIsNone(environment.devices(None, {}))

    def test_another_launcher_is_forgotten(self):
        kept = environment.inherited({"OMPI_COMM_WORLD_RANK": "1", "OMPI_MCA_x": "y", "PMIX_RANK": "1", "PMI_FD": "3", "RANK": "1", "HOME": "/"})
        self.assertEqual(kept, {"HOME": "/"})
        self.assertEqual(environment.inherited({"OMPI_MCA_x": "y"}), {"OMPI_MCA_x": "y"})


if __name__ == "__main__":
    unittest.main()
