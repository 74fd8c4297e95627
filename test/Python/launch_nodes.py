# RUN: %tessera_python %s
# REQUIRES: python
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D0-17: one launcher per node. Two on this host: a failure on one ends both; other tokens, counts and bytes are rejected."""

import os
import signal
import socket
import unittest

from launch_case import DIES, LONG, SHOW, WAITS, LaunchCase, free_ports, marked, wait_until
from tessera.launch.coordinator import Coordinator

TOKEN = "0123456789abcdef"


class NodeCase(LaunchCase):
    def setUp(self):
        super().setUp()
        self.port, self.control = free_ports(2)

    def node(self, rank, *words, nodes=2, processes=2, **environment):
        return self.start(f"--nnodes={nodes}", f"--node_rank={rank}", f"--nproc_per_node={processes}", f"--master_port={self.port}",
                          f"--control_port={self.control}", f"--timeout={LONG}", *words, **environment)

    def finish(self, *processes):
        """(exit code, lines, standard error) of each."""
        found = []
        for process in processes:
            out, err = process.communicate(timeout=LONG)
            found.append((process.returncode, sorted(out.splitlines()), err))
        return found


class Nodes(NodeCase):
    def test_ranks_over_two_nodes(self):
        script = self.script(SHOW)
        second, first = self.finish(self.node(1, script), self.node(0, script))  # the second may join first
        self.assertEqual(first, (0, [f"[rank {i}] {i} 4 {i} 2 127.0.0.1 0 0" for i in (0, 1)], ""))
        self.assertEqual(second, (0, [f"[rank {2 + i}] {2 + i} 4 {i} 2 127.0.0.1 0 1" for i in (0, 1)], ""))

    def test_uneven_nodes(self):
        script = self.script(SHOW)
        first, second = self.finish(self.node(0, script, processes=1), self.node(1, script, processes=3))
        self.assertEqual(first[1], ["[rank 0] 0 4 0 1 127.0.0.1 0 0"])
        self.assertEqual(second[1], [f"[rank {1 + i}] {1 + i} 4 {i} 3 127.0.0.1 0 1" for i in range(3)])

    def test_a_failure_ends_all(self):
        script = self.script(DIES)
        for rank, code in ((0, 7), (3, -int(signal.SIGKILL))):
            results = self.finish(self.node(0, script, rank, code), self.node(1, script, rank, code))
            for each in results:
                self.assertEqual(each[0], code if code > 0 else 128 - code)
                self.assertRegex(each[2], rf"error: rank {rank} \(host \S+, node {rank // 2}, local rank {rank % 2}, process [0-9]+\)")
                self.assertIn("the reason", each[2])
            self.assertAllGone()

    def test_a_killed_launcher_ends_all(self):
        script = self.script(WAITS)
        for victim in (0, 1):
            nodes = [self.node(0, script), self.node(1, script)]
            for each in nodes:
                self.read_ready(each, 2)
            nodes[victim].kill()
            results = self.finish(*nodes)
            self.assertEqual(results[1 - victim][0], 1)
            self.assertIn(f"the launcher of node {victim}", results[1 - victim][2])
            self.assertAllGone()

    def test_a_signal_to_one_ends_all(self):
        script = self.script(WAITS)
        for victim in (0, 1):
            nodes = [self.node(0, script), self.node(1, script)]
            for each in nodes:
                self.read_ready(each, 2)
            nodes[victim].terminate()
            self.assertEqual([each[0] for each in self.finish(*nodes)], [143, 143])

    def test_restarts_are_of_all_nodes(self):
        script = self.script("import os, sys\nprint(os.environ['RANK'], os.environ['TESSERA_RESTART'])\n"
                             "sys.exit(3 if os.environ['TESSERA_RESTART'] == '0' and os.environ['RANK'] == '2' else 0)")
        first, second = self.finish(self.node(0, "--max_restarts=1", script), self.node(1, "--max_restarts=1", script))
        self.assertEqual((first[0], second[0]), (0, 0), first[2] + second[2])
        self.assertTrue({"[rank 0] 0 1", "[rank 1] 1 1"} <= set(first[1]), first)
        self.assertTrue({"[rank 2] 2 1", "[rank 3] 3 1"} <= set(second[1]), second)

    def test_a_node_that_does_not_come(self):
        code, _, err = self.finish(self.start("--nnodes=3", f"--master_port={self.port}", f"--control_port={self.control}", "--timeout=0.5",
                                              self.script(SHOW)))[0]
        self.assertEqual((code, err.count("waited 0.5 s for the launchers of nodes 1, 2 of 3")), (1, 1), err)
        code, _, err = self.finish(self.start("--nnodes=2", "--node_rank=1", f"--master_port={self.port}", f"--control_port={self.control}",
                                              "--timeout=0.5", self.script(SHOW)))[0]
        self.assertEqual(code, 1)
        self.assertRegex(err, rf"node 1 \(host \S+\) waited 0.5 s for node 0 at 127.0.0.1:{self.control}: connection refused; start node 0")

    def test_a_signal_while_waiting(self):
        for rank in (0, 1):
            process = self.node(rank, self.script(SHOW))
            wait_until(lambda: len(marked(self.mark)) >= 2, "the worker is there")
            process.terminate()
            self.assertIn(self.finish(process)[0][0], (143, -15))  # -15: the signal came before Python started


class Strangers(NodeCase):
    def test_another_token(self):
        script = self.script(SHOW)
        first = self.node(0, script, TESSERA_JOB_TOKEN=TOKEN)
        code, out, err = self.finish(self.node(1, script, TESSERA_JOB_TOKEN=TOKEN[::-1]))[0]
        self.assertEqual((code, out), (1, []))
        self.assertIn("it refuses this node: the job tokens differ", err)
        path = self.script(TOKEN + "\n", "token")
        os.chmod(path, 0o600)
        again, first = self.finish(self.node(1, f"--token_file={path}", script), first)
        self.assertEqual((again[0], first[0], len(first[1]), len(again[1])), (0, 0, 2, 2))
        self.assertEqual(first[2], "tessera: warning: refused a launcher with a different job token\n")

    def test_another_job(self):
        script = self.script(SHOW)
        first = self.node(0, script)
        code, _, err = self.finish(self.node(1, script, nodes=3))[0]
        self.assertEqual(code, 1)
        self.assertIn("it has --nnodes 3 and node 0 has --nnodes 2", err)
        self.assertEqual([each[0] for each in self.finish(first, self.node(1, script))], [0, 0])

    def test_a_node_twice(self):
        script = self.script(WAITS)
        nodes = [self.node(rank, script) for rank in (0, 1)]
        for each in nodes:
            self.read_ready(each, 2)
        code, _, err = self.finish(self.node(1, script))[0]
        self.assertEqual(code, 1)
        self.assertIn("--node_rank 1 is already taken by host", err)
        nodes[0].terminate()
        self.finish(*nodes)

    def test_garbage_on_the_port(self):
        script = self.script(SHOW)
        first = self.node(0, script)

        def connected():
            try:
                return socket.create_connection(("127.0.0.1", self.control), 5)
            except OSError:
                return None
        strangers = []
        wait_until(lambda: strangers.append(connected()) or strangers[-1], "node 0 listens")
        strangers[-1].sendall(b"GET / HTTP/1.1\r\n\r\n")
        for data in (b"", b"\0" * 1000, os.urandom(5000), b"\0\0\0\2{}", b"\0\0\0\x05[1,2]", b"\0\0\x01\0half"):
            strangers.append(connected())
            try:
                strangers[-1].sendall(data)
            except OSError:
                pass  # it was dropped
        results = self.finish(self.node(1, script), first)
        self.assertEqual([(code, len(out), err) for code, out, err in results], [(0, 2, "")] * 2)
        for each in filter(None, strangers):
            each.close()

    def test_no_launcher_at_the_port(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", self.control))
            other.listen()
            process = self.node(1, self.script(SHOW))
            connection, _ = other.accept()
            connection.sendall(b"220 smtp ready\r\n")
            code, _, err = self.finish(process)[0]
            connection.close()
        self.assertEqual(code, 1)
        self.assertIn(f"node 0 at 127.0.0.1:{self.control}: the process that listens there is not a Tessera launcher", err)


class Decisions(unittest.TestCase):
    def setUp(self):
        self.told, self.reports = [], []

    def of(self, nodes, restarts=0, least=None):
        made = Coordinator(nodes, restarts, lambda node, message: self.told.append((node, message["do"])),
                           lambda failure, then: self.reports.append(failure), least)
        for node in range(nodes):
            made.join(node, node + 1)
        return made

    def take(self):
        told, self.told = self.told, []
        return told

    def test_only_the_first_failure_is_told(self):
        job = self.of(2)
        self.assertEqual(self.take(), [(0, "start"), (1, "start")])
        job.failed(1, {"rank": 2, "code": 3})
        job.failed(0, {"rank": 0, "code": 4})
        self.assertEqual((self.take(), len(self.reports)), ([(0, "end"), (1, "end")], 1))
        job.gone(0)
        self.assertEqual(self.take(), [])
        job.gone(1)
        self.assertEqual(self.take(), [(0, "leave"), (1, "leave")])

    def test_a_node_lost_during_a_restart(self):
        job = self.of(2, restarts=1)
        self.take()
        job.failed(0, {"rank": 0, "code": 4})
        self.assertEqual(self.take(), [(0, "restart"), (1, "restart")])
        job.lost(1, "gone")
        job.gone(0)
        self.assertEqual(self.take(), [(0, "end"), (0, "leave")])

    def test_a_node_that_is_done_starts_again(self):
        job = self.of(2, restarts=1)
        self.take()
        job.done(1)
        job.failed(0, {"rank": 0, "code": 4})
        self.assertEqual(self.take(), [(0, "restart"), (1, "restart")])
        job.gone(1)
        self.assertEqual(self.take(), [])
        job.gone(0)
        self.assertEqual(self.take(), [(0, "start"), (1, "start")])
        job.done(0)
        job.done(1)
        self.assertEqual(self.take(), [(0, "leave"), (1, "leave")])

    def test_fewer_ranks(self):
        """A node without ranks gets all messages, and no rank waits for it; a lost one gets none."""
        job = self.of(3, restarts=5, least=2)  # 1, 2 and 3 ranks
        job.failed(0, {"rank": 0, "code": 4, "place": 0})
        for node in range(3):
            job.gone(node)
        self.assertEqual((job.size(), self.take()[-3:]), (5, [(0, "start"), (1, "start"), (2, "start")]))
        job.lost(2, "gone")
        self.assertEqual(self.take(), [(0, "restart"), (1, "restart")])
        job.gone(0)
        job.gone(1)
        self.assertEqual((job.size(), self.take()), (2, [(0, "start"), (1, "start")]))
        job.done(1)
        self.assertEqual(self.take(), [(0, "leave"), (1, "leave")])

    def test_a_node_lost_during_a_restart_with_enough_others(self):
        job = self.of(3, restarts=1, least=1)
        self.take()
        job.failed(1, {"rank": 1, "code": 4, "place": 0})
        job.gone(0)
        job.gone(1)
        job.lost(2, "gone")
        self.assertEqual((job.size(), self.take()[-2:]), (2, [(0, "start"), (1, "start")]))
        job.failed(1, {"rank": 1, "code": 4, "place": 1})  # restarts are used up
        self.assertEqual(self.take(), [(0, "end"), (1, "end")])


if __name__ == "__main__":
    unittest.main()
