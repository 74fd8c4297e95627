# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compare the last calls of all ranks, from their dumps.

All members of a stream (a group of ranks, or the group of a collective in a program) make its calls in the same order,
so calls with the same index ('place') in a stream must be equal. The job hangs at the first call that differs, or that
a rank has not issued or not ended.
"""

from __future__ import annotations

import json
import os
import re

NAME = re.compile(r"rank-(\d+)\.(\d+)\.json")


class DumpError(Exception):
    """A dump is missing or invalid."""


class Dump:
    """The dump of one rank. Raises DumpError if the file is not a valid dump."""

    def __init__(self, path: str):
        try:
            with open(path, encoding="utf-8") as file:
                data = json.load(file)
            if data["version"] != 1:
                raise DumpError(f"{path}: the dump has version {data['version']}; expected version 1")
            self.path, self.rank, self.host, self.reason, self.about = path, data["rank"], data["host"], data["reason"], data["about"]
            self.calls = data["calls"]
            self.streams: dict[str, dict[int, dict]] = {}
            for call in self.calls:
                self.streams.setdefault(call["stream"], {})[call["place"]] = call
                call["group"], call["text"], call["loc"], call["ended_ns"]  # noqa: B018: raises KeyError if one is missing
        except OSError as error:
            raise DumpError(f"{path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DumpError(f"{path} is not a dump of a rank: {error!r}") from None

    def where(self) -> str:
        """The call that the rank is in, or its last call."""
        opened = [call for call in self.calls if not call["ended_ns"]]
        if opened:
            return f"is in {text_of(opened[0])}"
        return f"is in no call; its last is {text_of(self.calls[-1])}" if self.calls else "has called nothing"


def text_of(call: dict) -> str:
    """A call of a dump in words: operation, number in its group from 1, and location."""
    return f"{call['text']}, call {call['place'] + 1}" + (f", at {call['loc']}" if call["loc"] else "")


def ranks_text(ranks) -> str:
    """"rank 3" or "ranks 0, 2", ascending."""
    ranks = sorted(ranks)
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks))


def read_dumps(folder: str) -> dict[int, dict[int, Dump]]:
    """The dumps in a folder, by job number and rank. Raises DumpError if there are none."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise DumpError(f"{folder}: {error.strerror}") from None
    jobs: dict[int, dict[int, Dump]] = {}
    for name in names:
        if match := NAME.fullmatch(name):
            dump = Dump(os.path.join(folder, name))
            jobs.setdefault(int(match[2]), {})[dump.rank] = dump
    if not jobs:
        raise DumpError(f"{folder} has no dumps (rank-R.N.json); ranks write them with --dump-dir or TESSERA_DUMP_DIR when a call fails")
    return dict(sorted(jobs.items()))


def compare(dumps: dict[int, Dump]) -> list[str]:
    """A report on the dumps of one job, by rank: failures, differing calls, ranks that are behind."""
    lines = []
    reasons: dict[str, list[int]] = {}
    for rank, dump in sorted(dumps.items()):
        reasons.setdefault(dump.reason, []).append(rank)
    for reason, ranks in reasons.items():
        lines.append(f"{ranks_text(ranks)} failed: {reason}")
    programs: dict[str, list[int]] = {}
    for rank, dump in sorted(dumps.items()):
        programs.setdefault(dump.about, []).append(rank)
    if len(programs) > 1:
        lines.append("ranks run different programs: " + "; ".join(f"{ranks_text(ranks)}: {program}" for program, ranks in programs.items()))
    streams: dict[str, list[int]] = {}  # members
    for dump in dumps.values():
        for call in dump.calls:
            streams.setdefault(call["stream"], call["group"])
    found = [problem for stream, members in streams.items() if (problem := first_problem(stream, members, dumps))]
    # Differences first, then missing calls; the earliest call is nearest to the cause.
    for _, text in sorted(found):
        lines.append(text)
    if not found:
        lines.append("all calls that the ranks have in common agree and have ended")
    absent = {member for members in streams.values() for member in members} - set(dumps)
    if absent:
        lines.append(f"{ranks_text(absent)} left no dump: stopped, killed, or on a host with another folder")
    behind = {rank for order, text in found for rank in order[2]}
    for rank in sorted(behind & set(dumps)):
        lines.append(f"rank {rank} ({dumps[rank].host}) {dumps[rank].where()}")
    return lines


def first_problem(stream: str, members: list[int], dumps: dict[int, Dump]):
    """The first call of a stream that differs between ranks, or that a rank has not issued or ended.

    Returns ((kind, sequence, ranks behind), text), which sorts by cause, or None if there is no such call.
    """
    calls = {rank: dumps[rank].streams.get(stream, {}) for rank in members if rank in dumps}
    # Some ranks have dropped their records of older calls.
    first = max((min(each, default=0) for each in calls.values() if each), default=0)
    last = max((max(each, default=-1) for each in calls.values()), default=-1)
    for place in range(first, last + 1):
        here = {rank: each[place] for rank, each in calls.items() if place in each}
        sequence = min(call["sequence"] for call in here.values())
        texts: dict[str, list[int]] = {}
        for rank, call in sorted(here.items()):
            texts.setdefault(text_of(call), []).append(rank)
        if len({call["text"] for call in here.values()}) > 1:
            differ = "; ".join(f"{ranks_text(ranks)}: {text}" for text, ranks in texts.items())
            return (0, sequence, ()), f"ranks make different calls: {differ}"
        behind = tuple(sorted(set(calls) - set(here)))
        text = next(iter(texts))
        if behind:
            return (1, sequence, behind), f"{ranks_text(behind)} did not reach {text}, where {ranks_text(here)} {'waits' if len(here) == 1 else 'wait'}"
        waiting = [rank for rank, call in here.items() if not call["ended_ns"]]
        if waiting:
            return (2, sequence, ()), f"{ranks_text(waiting)} {'has' if len(waiting) == 1 else 'have'} not ended {text}"
    return None
