# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The best time of several calls."""

import time


def milliseconds(run):
    """Of five calls after one that warms up, the fastest."""
    run()
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    return 1e3 * best
