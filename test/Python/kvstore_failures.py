# RUN: %tessera_python %s
# REQUIRES: tessera-core, zmq
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D3-7: workers that are killed or come later; the scheduler's end ends all."""

import signal
import unittest

from kvstore_case import StepsCase


class Failures(StepsCase):
    def test_a_worker_is_killed(self):
        scheduler, servers, workers = self.begin(3, 2)
        workers[1].kill()
        self.lines_until(workers[0], lambda step: step[1] == 2)
        # From now on two workers push 1 + rank.
        first = self.lines_until(workers[0], lambda step: True)
        second = self.lines_until(workers[0], lambda step: True)
        self.assertIn(second[4] - first[4], (1 + 2, 1 + 3, 2 + 3))
        self.finish(servers, [workers[0], workers[2]])
        self.assertRegex(self.done(scheduler)[1], r"warning: worker [012] \(host \S+, process \d+\) was silent for 3 s; the job goes on without it")

    def test_a_worker_and_a_server_come(self):
        scheduler, servers, workers = self.begin(2, 1)
        servers.append(self.role("server"))
        self.lines_until(workers[0], lambda step: step[2] == 2)
        late = self.worker(self.stop)
        step = self.lines_until(late, lambda step: True)
        self.assertEqual(step[:3], [2, 3, 2])
        self.assertEqual(step[4], 3 * (step[3] - 1) + 6)  # its first push is in the value of its first pull
        self.lines_until(workers[0], lambda step: step[1] == 3)
        self.finish(scheduler, servers, workers, late)

    def test_the_scheduler_is_killed(self):
        scheduler, servers, workers = self.begin(2, 2)
        scheduler.kill()
        for process in (*servers, *workers):
            error = self.done(process, 1)[1]
            self.assertIn(f"the scheduler at tcp://127.0.0.1:{self.port} is lost: it was silent for 3 s; the job ends", error)
            self.assertEqual(error.count("is lost"), 1)

    def test_the_scheduler_is_ended(self):
        scheduler, servers, workers = self.begin(2, 2)
        scheduler.send_signal(signal.SIGTERM)
        for process in (scheduler, *servers, *workers):
            self.assertEqual(self.done(process, 1)[1].splitlines()[-1], "tessera: error: SIGTERM ended the scheduler")


if __name__ == "__main__":
    unittest.main()
