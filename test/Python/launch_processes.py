# RUN: %tessera_python %s
# REQUIRES: python
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D0-17: a failing rank ends all and is named; signals, orphans, restarts and the output of ranks."""

import os
import signal
import time
import unittest

from launch_case import DIES, LONG, LaunchCase, marked, wait_until
from tessera.launch.logs import LONGEST_LINE, Lines

# Ranks with children, in their session and out of it; argument "deaf": only SIGKILL ends them.
FAMILY = """
import os, signal, subprocess, sys, time
if sys.argv[1:] == ["deaf"]:
    for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
        signal.signal(number, signal.SIG_IGN)
subprocess.Popen(["sleep", "1000"])
subprocess.Popen(["sleep", "1000"], start_new_session=True)
print("ready", os.environ["RANK"])
while True:
    time.sleep(1)
"""


class Failures(LaunchCase):
    def test_exit_code(self):
        code, out, err = self.launch("--nproc_per_node=3", "--master_port=0", self.script(DIES), 1, 7)
        self.assertEqual(code, 7)
        self.assertRegex(err, r"(?s)error: rank 1 \(host \S+, node 0, local rank 1, process [0-9]+\) ended with exit code 7; "
                              r"its last lines:\n  ready 1\n  the reason\n")
        self.assertEqual(err.count("tessera: error"), 1)
        self.assertAllGone()

    def test_signal(self):
        code, _, err = self.launch("--nproc_per_node=2", "--master_port=0", self.script(DIES), 0, -int(signal.SIGKILL))
        self.assertEqual(code, 128 + signal.SIGKILL)
        self.assertIn("was ended by signal 9 (SIGKILL)", err)
        self.assertAllGone()

    def test_what_cannot_be_executed(self):
        path = self.script("no program", "program")
        os.chmod(path, 0o755)
        code, _, err = self.launch("--nproc_per_node=2", "--master_port=0", path)
        self.assertEqual(code, 1)
        self.assertRegex(err, r"rank 0 \(host \S+\) could not be started: \S+program: Exec format error")

    def test_restarts(self):
        script = self.script("import os, sys\nprint(os.environ['RANK'], os.environ['TESSERA_RESTART'])\n"
                             "sys.exit(3 if os.environ['TESSERA_RESTART'] != '2' and os.environ['RANK'] == '1' else 0)")
        code, out, err = self.launch("--nproc_per_node=2", "--master_port=0", "--max-restarts=2", "--log_dir=logs", script)
        self.assertEqual(code, 0, err)
        self.assertIn("restart 2 of at most 2 follows", err)
        self.assertIn("[rank 0] 0 2", out)
        self.assertIn("[rank 1] 1 2", out)
        self.assertEqual(sorted(name for name in os.listdir(os.path.join(self.folder, "logs")) if "rank-1" in name),
                         ["rank-1.log", "rank-1.restart-1.log", "rank-1.restart-2.log"])
        code, _, err = self.launch("--nproc_per_node=2", "--master_port=0", "--max-restarts=1", script)
        self.assertEqual((code, err.count("ended with exit code 3")), (3, 2))

    def test_without_the_rank_that_failed(self):
        """The others are renumbered and keep their devices, down to --min_ranks."""
        script = self.script("import os, signal, sys\n"
                             "if os.environ['TESSERA_RESTART'] == '0' and os.environ['RANK'] == '1':\n    os.kill(os.getpid(), signal.SIGKILL)\n"
                             "if os.environ['TESSERA_RESTART'] == '0':\n    signal.pause()\n"
                             "names = 'RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE', 'CUDA_VISIBLE_DEVICES'\n"
                             "print(*map(os.environ.get, names))\n"
                             "sys.exit(int(sys.argv[1]) * (os.environ['RANK'] == '0'))")
        words = "--nproc_per_node=3", "--master_port=0", "--max-restarts=3", "--min_ranks=2", "--devices=4,5,6", script
        code, out, err = self.launch(*words, 0)
        self.assertEqual((code, out), (0, ["[rank 0] 0 2 0 2 4,6", "[rank 1] 1 2 1 2 4,6"]), err)
        self.assertIn("restart 1 of at most 3 follows, with 2 ranks", err)
        code, _, err = self.launch(*words, 5)
        self.assertEqual((code, err.count("of at most")), (5, 1), err)

    def test_min_ranks_without_restarts(self):
        self.refused("--min_ranks=2", self.script(""), says="--min_ranks applies to jobs that restart after a failure; add --max_restarts N")


class Orphans(LaunchCase):
    def victims(self, process):
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
            return {"command": process.pid, "worker": int(file.read().split()[-1])}

    def test_nothing_survives_a_killed_launcher(self):
        for words in ([], ["deaf"]):
            for killed in (["command"], ["worker"], ["worker", "command"]):
                with self.subTest(words=words, killed=killed):
                    process = self.start("--nproc_per_node=2", "--master_port=0", self.script(FAMILY), *words)
                    self.read_ready(process, 2)
                    wait_until(lambda: len(marked(self.mark)) >= 8, "launcher, ranks and their children are there")
                    victims = self.victims(process)
                    for name in killed:
                        os.kill(victims[name], signal.SIGKILL)
                    self.assertAllGone()
                    process.communicate(timeout=LONG)
                    self.assertEqual(process.returncode, -9 if "command" in killed else 137)

    def test_command_killed_while_it_cleans_up(self):
        """The worker is dead, and the command dies at some moment while it kills what ranks started."""
        for step in range(12):
            process = self.start("--nproc_per_node=2", "--master_port=0", self.script(FAMILY))
            self.read_ready(process, 2)
            wait_until(lambda: len(marked(self.mark)) >= 8, "launcher, ranks and their children are there")
            victims = self.victims(process)
            os.kill(victims["worker"], signal.SIGKILL)
            time.sleep(step * 0.001)
            os.kill(victims["command"], signal.SIGKILL)
            self.assertAllGone()
            process.communicate(timeout=LONG)

    def test_what_ranks_leave_behind(self):
        script = self.script("import subprocess\nsubprocess.Popen(['sleep', '1000'], start_new_session=True)")
        self.assertEqual(self.launch("--nproc_per_node=2", "--master_port=0", script)[0], 0)
        self.assertAllGone()


class Signals(LaunchCase):
    def test_forwarded(self):
        script = self.script("import os, signal, sys, time\n"
                             "def end(number, _):\n    print('checkpoint', number)\n    sys.exit(128 + number)\n"
                             "for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):\n    signal.signal(number, end)\n"
                             "print('ready', os.environ['RANK'])\n"
                             "while True:\n    time.sleep(0.1)")
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            process = self.start("--nproc_per_node=2", "--master_port=0", script)
            self.read_ready(process, 2)
            process.send_signal(number)
            out, err = process.communicate(timeout=LONG)
            self.assertEqual((process.returncode, sorted(out.splitlines()), err),
                             (128 + number, [f"[rank {rank}] checkpoint {int(number)}" for rank in (0, 1)], ""))

    def test_the_second_kills(self):
        process = self.start("--nproc_per_node=2", "--master_port=0", f"--stop_grace={100 * LONG}", self.script(FAMILY), "deaf")
        self.read_ready(process, 2)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LONG)
        self.assertIn(process.returncode, (128 + signal.SIGINT, 128 + signal.SIGTERM))
        self.assertAllGone()

    def test_a_stopped_rank_ends_too(self):
        script = self.script(DIES)
        go = os.path.join(self.folder, "go")
        process = self.start("--nproc_per_node=2", "--master_port=0", script, 0, 5, go)
        self.read_ready(process, 2)
        for each in marked("RANK=1"):
            if each in marked(self.mark):
                os.kill(each, signal.SIGSTOP)
        self.script("", "go")
        process.communicate(timeout=LONG)
        self.assertEqual(process.returncode, 5)
        self.assertAllGone()


class Output(LaunchCase):
    def test_lines_are_whole(self):
        script = self.script("import os, sys\n"
                             "for i in range(300):\n"
                             "    for part in os.environ['RANK'], ' ', str(i), ' ', 'x' * 200, '\\n':\n"
                             "        os.write(1, part.encode())")
        code, out, _ = self.launch("--nproc_per_node=3", "--master_port=0", script)
        self.assertEqual(code, 0)
        self.assertEqual(out, sorted(f"[rank {rank}] {rank} {i} {'x' * 200}" for rank in range(3) for i in range(300)))

    def test_log_files(self):
        script = self.script("import sys\nprint('out')\nsys.stdout.flush()\nprint('err', file=sys.stderr)")
        code, out, err = self.launch("--nproc_per_node=2", "--master_port=0", "--log_dir=a/b", script)
        self.assertEqual((code, out, sorted(err.splitlines())), (0, ["[rank 0] out", "[rank 1] out"], ["[rank 0] err", "[rank 1] err"]))
        with open(os.path.join(self.folder, "a/b/rank-1.log"), encoding="utf-8") as file:
            self.assertEqual(sorted(file.read().splitlines()), ["err", "out"])

    def test_nobody_reads(self):
        process = self.start("--nproc_per_node=2", "--master_port=0", self.script("while True: print('x' * 100)"))
        process.stdout.readline()
        process.stdout.close()
        self.assertIn("the output of the ranks has no reader", process.stderr.read())
        self.assertEqual(process.wait(LONG), 128 + signal.SIGPIPE)
        process.stderr.close()
        self.assertAllGone()

    def test_cutting(self):
        lines = Lines()
        self.assertEqual(lines.feed(b"a\nb\r"), [b"a"])
        self.assertEqual(lines.feed(b"\nc\rd"), [b"b", b"c"])
        self.assertEqual(lines.end(), [b"d"])
        self.assertEqual([len(line) for line in lines.feed(b"x" * (LONGEST_LINE + 1))], [LONGEST_LINE])
        self.assertEqual(lines.end(), [b"x"])


if __name__ == "__main__":
    unittest.main()
