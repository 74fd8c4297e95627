# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kill the remaining processes of a job after both processes of its launcher were killed.

supervisor.py runs this file as a program. It waits for the end of its standard input, which both launcher processes
hold open, then kills each process that has the job's mark in its environment. It imports only small standard modules.
"""

import os
import sys
import time


def marked(mark):
    """The processes with `mark` (NAME=VALUE, as bytes) in their environment."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open("/proc/%s/environ" % name, "rb") as file:
                    if mark in file.read().split(b"\0"):
                        found.append(int(name))
            except OSError:
                continue
    return found


if __name__ == "__main__":
    while os.read(0, 1):
        pass
    end = time.monotonic() + 10
    # The environment of a process that is being replaced (execve) reads as empty for a moment: so none is seen twice.
    unseen = 0
    while unseen < 2 and time.monotonic() < end:
        left = marked(os.fsencode(sys.argv[1]))
        unseen = 0 if left else unseen + 1
        for pid in left:
            try:
                os.kill(pid, 9)
            except OSError:
                pass
        time.sleep(0.02)
