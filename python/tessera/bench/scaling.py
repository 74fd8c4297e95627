# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Speed-up S_p = T_1 / T_p and efficiency S_p / p of a script, run with 1 and with p processes."""

from __future__ import annotations

import dataclasses
import os
import statistics
import subprocess
import sys
import tempfile
import time

from ..errors import Error
from . import logs


@dataclasses.dataclass(frozen=True)
class Point:
    """The time with a number of processes: per sample if the script reports a throughput, else of the whole job."""

    processes: int
    seconds: float
    unit: str | None = None  # of the throughput, for example 'samples'


def _run(words: list[str], processes: int, skip: int, timeout: float) -> Point:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tessera.launch", f"--nproc_per_node={processes}", "--master_port=0", f"--log_dir={folder}", *words]
        start = time.monotonic()
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            raise Error(f"the run with {processes} process{'es' * (processes > 1)} did not end within {timeout:g} s (--timeout)") from None
        seconds = time.monotonic() - start
        if done.returncode:
            raise Error(f"the run with {processes} process{'es' * (processes > 1)} ended with {done.returncode}:\n{done.stderr.rstrip()}")
        found = []
        for path in logs.files([folder]):
            with open(path, encoding="utf-8", errors="replace") as file:
                found.append(logs.rates(file, os.path.basename(path)))
    if all(each is None for each in found):
        return Point(processes, seconds)
    # If only one process (rank 0) reports a throughput, it is that of the job.
    known = [each for each in found if each is not None]
    if len(known) not in (1, len(found)):
        raise Error(f"{len(known)} of {len(found)} processes report a throughput; either all must, or only rank 0, for the whole job")
    rate = logs.total(known, skip)
    if rate <= 0:
        raise Error(f"the run with {processes} process{'es' * (processes > 1)} reports 0 {known[0].unit}/s")
    return Point(processes, 1 / rate, known[0].unit)


def measure(words: list[str], processes: list[int], repeat: int = 3, skip: int = 1, timeout: float = 3600.0, say=lambda text: None) -> list[Point]:
    """The median of `repeat` runs for each number of processes and for 1. Raises Error if a run fails.

    The numbers of processes alternate, so that a slow period of the machine affects all of them. skip: reports to
    ignore per process; timeout: seconds per run.
    """
    counts = sorted({1, *processes})
    found: dict[int, list[Point]] = {count: [] for count in counts}
    for turn in range(repeat):
        for count in counts:
            point = _run(words, count, skip, timeout)
            found[count].append(point)
            say(f"run {turn + 1} of {repeat}, {count} process{'es' * (count > 1)}: {_time(point)}")
    units = {point.unit for points in found.values() for point in points}
    if len(units) > 1:
        raise Error(f"runs report {' and '.join(sorted(f'{unit}/s' if unit else 'no throughput' for unit in units))}; all runs must report the same unit")
    return [Point(count, statistics.median(point.seconds for point in points), points[0].unit) for count, points in found.items()]


def _time(point: Point) -> str:
    return f"{point.seconds:.4g} s" if point.unit is None else f"{1 / point.seconds:.4g} {point.unit}/s"


def seconds(value: float) -> str:
    """A time in seconds, as text."""
    for unit, of in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= of or unit == "us":
            return f"{value / of:.4g} {unit}"
    raise AssertionError


def table(points: list[Point]) -> list[str]:
    """The lines of a table of p, T_p, S_p and S_p / p."""
    one = points[0]
    of = "of the job" if one.unit is None else f"per {one.unit.removesuffix('s')}"
    rows = [["p", "T_p", "S_p = T_1/T_p", "S_p/p"]]
    for point in points:
        speed = one.seconds / point.seconds
        rows.append([str(point.processes), seconds(point.seconds), f"{speed:.3f}", f"{speed / point.processes:.3f}"])
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = [f"T_p: time {of}, median"]
    lines += ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows]
    return lines
