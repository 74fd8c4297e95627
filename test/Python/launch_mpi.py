# RUN: %tessera_python %s
# REQUIRES: python
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D1-7, D1-8: jobs that mpirun starts. Tests that need Open MPI are skipped if it is not installed."""

import os
import shutil
import signal
import stat
import subprocess
import unittest
from unittest import mock

from launch_case import DIES, LONG, SHOW, WAITS, LaunchCase, marked
from tessera.errors import Error
from tessera.launch import arguments, hosts, mpi

OPEN_MPI = shutil.which("mpirun") and "Open MPI" in subprocess.run(["mpirun", "--version"], stdout=subprocess.PIPE, text=True).stdout
AS_ROOT = ["--allow_run_as_root"] if os.geteuid() == 0 else []


def command(kind, *words, environ=None):
    return mpi.command(arguments.parse([*words, "x.py", "a"]), kind, environ or {})


class Hosts(unittest.TestCase):
    def test_lists(self):
        self.assertEqual(hosts.parse("a:2,b,[::1]:4,b:2"), {"a": 2, "b": 3, "[::1]": 4})
        for text in ("", "a:", "a:0", "a:x", ",a", "a b"):
            with self.assertRaisesRegex(Error, "expected HOST or HOST:SLOTS"):
                hosts.parse(text)

    def test_rules(self):
        for count, per_node, places, says in (
                (3, 2, {"a": 2, "b": 2}, "--np is 3 and --npernode is 2; --np must be a multiple of --npernode"),
                (5, None, {"a": 2, "b": 2}, "--np is 5 and --hosts has 4 slots"),
                (4, 2, {"a": 4}, "which takes 2 hosts, and there is 1"),
                (4, 2, {"a": 1, "b": 3}, "--npernode is 2 and host 'a' has 1 slots")):
            with self.assertRaisesRegex(Error, says):
                hosts.check_room(count, per_node, places, "--hosts", False)
        hosts.check_room(5, None, {"a": 2, "b": 2}, "--hosts", True)
        hosts.check_room(9, None, {"a": None}, "--hostfile", False)


class Files(LaunchCase):
    def test_hostfile(self):
        self.assertEqual(hosts.read(self.script("# nodes\n\na slots=2\nb:3 # x\nc\n[::1] slots=1 max_slots=2\n")),
                         {"a": 2, "b": 3, "c": None, "[::1]": 1})
        for text, says in (("a slots=x", ":1: error: 'a slots=x' is not a valid host"), ("a\nb c", ":2: error: 'b c' is not a valid host"),
                           ("a slots=0", "N at least 1"), ("a\na", ":2: error: duplicate host 'a'"), ("# a\n", "names no host")):
            with self.assertRaisesRegex(Error, says):
                hosts.read(self.script(text))
        with self.assertRaisesRegex(Error, "'absent' cannot be read: No such file"):
            hosts.read("absent")


class Commands(LaunchCase):
    def test_open_mpi(self):
        with mock.patch.object(mpi.os, "geteuid", lambda: 1000):
            words = command("open-mpi", "--np=4", "--npernode=2", "-H", "127.0.0.1:2,127.0.0.2:2", "--oversubscribe")
            self.assertEqual(words[:8], ["mpirun", "-np", "4", "-H", "127.0.0.1:2,127.0.0.2:2", "-npernode", "2", "--oversubscribe"])
            self.assertEqual(words[-4:], ["-m", "tessera.launch.rank", "x.py", "a"])
            self.assertNotIn("--allow-run-as-root", words)

    def test_names_that_are_one_host(self):
        with self.assertRaisesRegex(Error, r"--hosts names this host 2 times \(localhost, 127.0.0.1\), which Open MPI counts once"):
            command("open-mpi", "--np=4", "--npernode=2", "-H", "localhost:2,127.0.0.1:2", "--allow-run-as-root")

    def test_root_is_refused(self):
        with mock.patch.object(mpi.os, "geteuid", lambda: 0):
            with self.assertRaisesRegex(Error, "Open MPI refuses to run as root"):
                command("open-mpi", "--np=1")
            self.assertIn("--allow-run-as-root", command("open-mpi", "--np=1", "--allow-run-as-root"))

    def test_mpich(self):
        words = command("mpich", "-np", "4", "--hostfile", self.script("localhost slots=4", "hosts"), "--npernode=4")
        self.assertEqual(words[:3] + words[4:7], ["mpirun", "-n", "4", self.script("localhost slots=4", "hosts"), "-ppn", "4"])

    def test_refusals(self):
        script = self.script(SHOW)
        fake = self.script("#!/bin/sh\necho other 1.0\n", "other")
        os.chmod(fake, os.stat(fake).st_mode | stat.S_IXUSR)
        for words, says in ((["--np=1", "--mpirun=absent", script], "there is no program 'absent' on PATH; install openmpi-bin or mpich"),
                            (["--np=1", f"--mpirun={fake}", script], "is neither Open MPI's nor MPICH's; its version is 'other 1.0'"),
                            (["--np=1", "absent.py"], "there is no script 'absent.py'"),
                            (["--np=0", script], "--np is '0'; expected a whole number, at least 1")):
            self.refused(*words, says=says)

    def test_unreachable_host_is_named(self):
        fake = self.script("#!/bin/sh\necho \"ssh: connect to host $5 port 22: refused\" >&2\nexit 255\n", "ssh")
        os.chmod(fake, os.stat(fake).st_mode | stat.S_IXUSR)
        with mock.patch.object(hosts, "is_here", lambda host, _: host == "localhost"), \
                mock.patch.dict(os.environ, {"PATH": self.folder + os.pathsep + os.environ["PATH"]}):
            with self.assertRaisesRegex(Error, "cannot log in by ssh to 'far' .ssh: connect to host far port 22: refused"):
                hosts.check_reachable(["localhost", "far"], "--hosts", {})
            hosts.check_reachable(["localhost"], "--hosts", {})


class RankProcess(LaunchCase):
    def test_ranks_of_another_launcher(self):
        import sys
        done = subprocess.run([sys.executable, "-m", "tessera.launch.rank", "--pass_local_rank", self.script(SHOW), "x"], text=True,
                              env={**os.environ, "PMI_RANK": "3", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LONG)
        self.assertEqual((done.returncode, done.stdout), (0, "[rank 3] 3 4 1 2 127.0.0.1 - - --local_rank=1 x\n"), done.stderr)
        done = subprocess.run([sys.executable, "-m", "tessera.launch.rank", self.script(SHOW)], text=True, stderr=subprocess.PIPE,
                              env={**os.environ, "PMI_RANK": "3", "PMI_SIZE": "4", "RANK": "1"}, stdin=subprocess.DEVNULL, timeout=LONG)
        self.assertEqual((done.returncode, done.stderr),
                         (1, "tessera: error: PMI_RANK is 3 and RANK is 1; unset the one that this job's launcher did not set\n"))


@unittest.skipUnless(OPEN_MPI, "Open MPI is not installed")
class OpenMpi(LaunchCase):
    def test_two_host_names(self):
        """Two addresses of this host, reached by an agent instead of ssh.

        Two daemons of one host are nothing that Open MPI expects: they race for one session folder, so each has a
        temporary folder of its own, and can crash in rtc/hwloc (hwloc_shmem_topology_write), which is left out.
        """
        agent = self.script(f'#!/bin/sh\nTMPDIR="{self.folder}/$1"\nexport TMPDIR\nmkdir -p "$TMPDIR"\nshift\nexec sh -c "$*"\n', "agent")
        os.chmod(agent, os.stat(agent).st_mode | stat.S_IXUSR)
        code, out, err = self.launch("-np", 4, "--npernode", 2, "-H", "127.0.0.2:2,127.0.0.3:2", *AS_ROOT, self.script(SHOW), "a",
                                     OMPI_MCA_plm_rsh_agent=agent, OMPI_MCA_rtc="^hwloc")
        self.assertEqual((code, out), (0, [f"[rank {i}] {i} 4 {i % 2} 2 127.0.0.2 - - a" for i in range(4)]), err)
        self.assertIn("tessera: rank 0 of 4, local rank 0 of 2, from OMPI_*", err)

    def test_without_our_launcher(self):
        import sys
        done = subprocess.run(["mpirun", *(["--allow-run-as-root"] if AS_ROOT else []), "--oversubscribe", "-np", "2", sys.executable, "-m",
                               "tessera.ranks"], stdout=subprocess.PIPE, text=True, timeout=LONG, stdin=subprocess.DEVNULL)
        self.assertEqual(sorted(done.stdout.splitlines()),
                         [f"rank {i} of 2, local rank {i} of 2, from OMPI_*; processes meet at 127.0.0.1:29500" for i in range(2)])

    def test_a_failure_ends_all(self):
        code, _, err = self.launch("-np", 3, "--oversubscribe", *AS_ROOT, self.script(DIES), 1, 7)
        self.assertEqual(code, 7)
        self.assertRegex(err, r"rank 1 \(host \S+, node 0, local rank 1, process [0-9]+\) ended with exit code 7")
        self.assertAllGone()

    def test_nothing_survives_a_killed_mpirun(self):
        process = self.start("-np", 2, "--oversubscribe", *AS_ROOT, self.script(WAITS))
        self.read_ready(process, 2)
        self.assertIn(process.pid, marked(self.mark))
        os.kill(process.pid, signal.SIGKILL)
        self.assertAllGone()
        process.communicate(timeout=LONG)

    def test_a_launcher_under_mpirun(self):
        """The ranks are those of the inner launcher; mpirun's variables are ignored."""
        import sys
        done = subprocess.run(["mpirun", *(["--allow-run-as-root"] if AS_ROOT else []), "-np", "1", sys.executable, "-m", "tessera.launch",
                               "--nproc_per_node=2", "--master_port=0", sys.executable, "-m", "tessera.ranks"],
                              stdout=subprocess.PIPE, text=True, timeout=LONG, stdin=subprocess.DEVNULL)
        self.assertRegex(done.stdout, r"rank 1 of 2, local rank 1 of 2, from TESSERA_\*")


if __name__ == "__main__":
    unittest.main()
