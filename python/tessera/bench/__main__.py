# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m tessera.bench scaling|logs."""

from __future__ import annotations

import argparse
import json
import os
import sys

from ..errors import Error
from . import logs as throughput
from . import scaling as speed


def _counts(text: str) -> list[int]:
    found = []
    for word in text.split(","):
        if not word.strip().isdigit() or not 1 <= int(word) <= 4096:
            raise Error(f"-p has '{word}'; expected numbers of processes from 1 to 4096, as in 1,2,4")
        found.append(int(word))
    return found


def _whole(name: str, text: str, least: int) -> int:
    if not text.isdigit() or not least <= int(text) <= 10**6:
        raise Error(f"{name} is '{text}'; expected a whole number, at least {least}")
    return int(text)


def _rate(value: float) -> str:
    return f"{value:.0f}" if value >= 1e5 else f"{value:.6g}"


def scaling(options) -> int:
    """Run a script with 1 and with p processes and print the times T_p, speed-up S_p = T_1/T_p and efficiency S_p/p."""
    counts = _counts(options.processes)
    if not options.words:
        raise Error("no script: tessera bench scaling -p 1,2,4 SCRIPT [ARGUMENTS]")
    say = (lambda text: print(text, file=sys.stderr, flush=True)) if options.verbose else (lambda text: None)
    points = speed.measure(options.words, counts, _whole("--repeat", options.repeat, 1), _whole("--skip", options.skip, 0),
                           float(_whole("--timeout", options.timeout, 1)), say)
    if options.json:
        print(json.dumps([{"p": each.processes, "seconds": each.seconds, "unit": each.unit, "speed_up": points[0].seconds / each.seconds,
                           "efficiency": points[0].seconds / each.seconds / each.processes} for each in points], indent=1))
        return 0
    print("\n".join(speed.table(points)))
    most, here = max(each.processes for each in points), len(os.sched_getaffinity(0))
    if most > here:
        print(f"note: {most} processes share {here} core{'s' * (here > 1)}; more processes than cores do not speed up computation")
    return 0


def logs(options) -> int:
    """Add up the throughput in the logs of a job's processes."""
    skip = _whole("--skip", options.skip, 0)
    found = [throughput.read_log(path) for path in throughput.files(options.files)]
    whole = throughput.total(found, skip)
    unit = found[0].unit
    if options.each:
        for number, value in enumerate(throughput.merged(found), 1):
            print(f"report {number}: {_rate(value)} {unit}/s")
    for log in found:
        print(f"{log.name}: {_rate(log.mean(skip))} {unit}/s, {len(log.values)} report{'s' * (len(log.values) > 1)}")
    print(f"total of {len(found)} log{'s' * (len(found) > 1)}: {_rate(whole)} {unit}/s")
    return 0


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="tessera bench", description="Measure the speed-up of a script, or add up the throughput in a job's logs.")
    commands = parser.add_subparsers(required=True, metavar="scaling|logs")
    command = commands.add_parser("scaling", help=scaling.__doc__, description=scaling.__doc__)
    command.add_argument("-p", "--processes", default="1,2", help="numbers of processes, as in 1,2,4 (default 1,2); 1 is always included")
    command.add_argument("--repeat", default="3", help="runs per number of processes, of which the median is taken (default 3)")
    command.add_argument("--skip", default="1", help="warm-up: ignore the first reports of each process (default 1)")
    command.add_argument("--timeout", default="3600", help="seconds per run (default 3600)")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.add_argument("--verbose", action="store_true", help="print the time of each run")
    command.add_argument("words", nargs=argparse.REMAINDER, metavar="SCRIPT ...", help="script and arguments, as for tessera launch. Lines such as "
                         "'123.4 samples/s' report its throughput; without them the job is timed from start to end")
    command.set_defaults(function=scaling)
    command = commands.add_parser("logs", help=logs.__doc__, description=logs.__doc__)
    command.add_argument("files", nargs="+", help="logs, one per process, or a folder of *.log (tessera launch --log_dir)")
    command.add_argument("--skip", default="1", help="warm-up: ignore the first reports of each log (default 1)")
    command.add_argument("--each", action="store_true", help="also print the sum of the logs' first reports, of their second reports, ...")
    command.set_defaults(function=logs)
    options = parser.parse_args(arguments)
    try:
        return options.function(options)
    except Error as error:
        text = str(error)
        is_located = ": error: " in text.split("\n")[0]  # begins with file and line
        print(text if is_located else f"tessera: error: {text}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
