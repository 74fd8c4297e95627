# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m tessera.kvstore: start one role of a job."""

from __future__ import annotations

import argparse
import os
import runpy
import sys

from .. import ranks
from ..errors import Error
from . import roles, run


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e9:
        raise ValueError
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tessera.kvstore", description="Start one role of a job with parameter servers.")
    kinds = parser.add_subparsers(dest="role", required=True, metavar="scheduler|server|worker")
    for role, text in (("scheduler", "manage the job's membership"), ("server", "store values"), ("worker", "run a script")):
        kind = kinds.add_parser(role, help=text, description=text)
        kind.add_argument("--root", metavar="HOST", help="host of the scheduler (default 127.0.0.1)")
        kind.add_argument("--port", help=f"port of the scheduler (default {roles.DEFAULT_PORT})")
        if role != "worker":
            kind.add_argument("--timeout", type=_seconds, default=run.TIMEOUT, help="seconds to wait for the others at the start (default 120)")
        if role == "scheduler":
            kind.add_argument("--workers", required=True, help="number of workers at the start")
            kind.add_argument("--servers", required=True, help="number of servers at the start")
            kind.add_argument("--replicas", type=int, choices=range(9), default=run.REPLICAS, help="number of copies of each shard on other "
                              "servers (default 1)")
            kind.add_argument("--lost_after", type=_seconds, default=run.LOST_AFTER, help="seconds of silence after which a process counts as "
                              "lost (default 10)")
        elif role == "server":
            kind.add_argument("--bind", metavar="HOST", help="address to listen at (default: that of the route to the scheduler)")
        else:
            kind.add_argument("script")
            kind.add_argument("words", nargs=argparse.REMAINDER, help="arguments of the script")
    return parser


def main(words: list[str] | None = None) -> int:
    """Run the command and return its exit code: 0, or 1 if an argument is invalid or the job fails."""
    options = _parser().parse_args(words)
    try:
        given = {"TESSERA_ROLE": options.role}
        for name, value in (("ROOT_URI", options.root), ("ROOT_PORT", options.port)):
            if value is not None:
                given[f"TESSERA_PS_{name}"] = value
        numbers = {"TESSERA_NUM_WORKER": options.workers, "TESSERA_NUM_SERVER": options.servers} if options.role == "scheduler" else {}
        kept = {name: value for name, value in os.environ.items()
                if "TESSERA_" + name.removeprefix("DMLC_") not in {**given, **numbers}}
        config = roles.read({**kept, **given, **numbers})
        if options.role == "worker":
            os.environ.update(given)
            for name in given:
                os.environ.pop("DMLC_" + name.removeprefix("TESSERA_"), None)
            sys.argv = [options.script, *options.words]
            sys.path[0] = os.path.dirname(os.path.abspath(options.script))
            runpy.run_path(options.script, run_name="__main__")
        elif options.role == "scheduler":
            run.scheduler(config, options.timeout, options.lost_after, options.replicas)
        else:
            run.server(config, options.timeout, options.bind)
    except (Error, OSError) as error:
        if options.role == "worker" and not isinstance(error, Error):
            raise
        print(f"tessera: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
