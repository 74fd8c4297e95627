# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times contenders in turns, so that other load of the machine affects all of them."""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable, Sequence

UNCOUNTED_SECONDS = 0.02


def take_turns(calls: Sequence[Callable[[], object]], seconds: float, least_turns: int = 5) -> list[list[float]]:
    """Seconds of each call in each turn, until `seconds` have passed. Calls shorter than 200 us are repeated within a turn.

    A turn begins with calls for 20 ms that are not counted: workers of the previous contender (OpenMP's, Eigen's) spin for
    milliseconds after their work, on the cores that this one needs.
    """
    repeats = []
    for call in calls:
        call()  # compiles, and warms up
        begin = time.perf_counter()
        call()
        repeats.append(max(1, math.ceil(2e-4 / max(1e-7, time.perf_counter() - begin))))
    times: list[list[float]] = [[] for _ in calls]
    begin = time.perf_counter()
    for turn in itertools.count():
        if turn >= least_turns and time.perf_counter() - begin > seconds:
            return times
        for call, repeat, mine in zip(calls, repeats, times):
            warm = time.perf_counter() + UNCOUNTED_SECONDS
            call()
            while time.perf_counter() < warm:
                call()
            started = time.perf_counter()
            for _ in range(repeat):
                call()
            mine.append((time.perf_counter() - started) / repeat)


def ratio(peer: Sequence[float], ours: Sequence[float]) -> float:
    """The peer's time over ours: the median over the turns, each of which times both."""
    return statistics.median(p / o for p, o in zip(peer, ours))


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))
