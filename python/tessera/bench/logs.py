# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Throughput in logs. Each process writes one log; the throughput of the job is the sum."""

from __future__ import annotations

import dataclasses
import glob
import math
import os
import re

from ..errors import Error

_UNIT = r"(?P<unit%d>samples?|images?|imgs?|examples?|sequences?|tokens?|items?|records?)"
_PER = r"\s*(?:/|per)\s*s(?:ec(?:ond)?s?)?\b"
_NUMBER = r"(?P<value%d>[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf)"
# '123.4 samples/s', 'Speed: 150.23 samples/sec'; 'images/sec: 1234', 'throughput: 12 (tokens per second)'.
_BEFORE = re.compile(_NUMBER % 1 + r"\s*\(?" + _UNIT % 1 + _PER, re.I)
_BEHIND = re.compile(_UNIT % 2 + _PER + r"\s*[:=]\s*" + _NUMBER % 2, re.I)
_SAME = {"imgs": "images", "img": "images"}


@dataclasses.dataclass
class Log:
    """The throughput that one process reports: values in `unit` per second, in the order of lines."""

    name: str
    unit: str
    values: list[float]

    def mean(self, skip: int) -> float:
        """The mean without the first `skip` reports (warm-up), or of all if there are no more."""
        values = self.values[skip:] or self.values
        return math.fsum(values) / len(values)


def rates(lines, name: str) -> Log | None:
    """The reports in a log. Returns None if there are none.

    Raises Error, with the line, for an invalid rate and for mixed units.
    """
    found, unit, first = [], None, 0
    for number, line in enumerate(lines, 1):
        match = _BEHIND.search(line)
        match, which = (match, 2) if match else (_BEFORE.search(line), 1)
        if not match:
            continue
        value = float(match[f"value{which}"].replace(",", ""))
        this = match[f"unit{which}"].lower()
        this = _SAME.get(this, this if this.endswith("s") else this + "s")
        if not (math.isfinite(value) and value >= 0):
            raise Error(f"{name}:{number}: error: {match[f'value{which}']} {this}/s is not a valid rate; expected a number, at least 0")
        if unit not in (None, this):
            raise Error(f"{name}:{number}: error: {this}/s, and line {first} has {unit}/s; a log must have one unit")
        first = first or number
        unit = this
        found.append(value)
    return Log(name, unit, found) if found else None


def read_log(path: str) -> Log:
    """The reports in a log file. Raises Error if it cannot be read or has none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            found = rates(file, path)
    except OSError as error:
        raise Error(f"{path}: {error.strerror}") from None
    if found is None:
        raise Error(f"{path}: there is no throughput; expected lines such as '123.4 samples/s' or 'images/sec: 123.4'")
    return found


def _rank(path: str) -> tuple:
    numbers = [int(each) for each in re.findall(r"\d+", os.path.basename(path))]
    return (numbers, path)


def files(paths: list[str]) -> list[str]:
    """The files among `paths`, and the *.log of folders in the order of ranks.

    Raises Error if a log is missing or given twice.
    """
    found: list[str] = []
    for path in paths:
        if os.path.isdir(path):
            inside = sorted(glob.glob(os.path.join(glob.escape(path), "*.log")), key=_rank)
            if not inside:
                raise Error(f"{path}: the folder has no *.log")
            found += inside
        else:
            found.append(path)
    for path in found:
        if found.count(path) > 1:
            raise Error(f"{path}: the log is given twice")
    return found


def total(logs: list[Log], skip: int) -> float:
    """The sum of the means of all logs. Raises Error if units differ."""
    for log in logs[1:]:
        if log.unit != logs[0].unit:
            raise Error(f"{log.name} reports {log.unit}/s, and {logs[0].name} {logs[0].unit}/s; rates of different units cannot be added")
    return math.fsum(log.mean(skip) for log in logs)


def merged(logs: list[Log]) -> list[float]:
    """The sums of the k-th reports of all logs, as many as the shortest log has."""
    return [math.fsum(values) for values in zip(*[log.values for log in logs])]
