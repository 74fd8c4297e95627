# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m tessera.kvstore: starts one role of a job."""

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
    parser = argparse.ArgumentParser("python -m tessera.kvstore", description="Starts one role of a job with parameter servers.")
    kinds = parser.add_subparsers(dest="role", required=True, metavar="scheduler|server|worker")
    for role, text in (("scheduler", "decides who is in the job"), ("server", "keeps the values"), ("worker", "runs a script")):
        kind = kinds.add_parser(role, help=text, description=text)
        kind.add_argument("--root", metavar="HOST", help="where the scheduler is (127.0.0.1)")
        kind.add_argument("--port", help=f"its port ({roles.DEFAULT_PORT})")
        if role != "worker":
            kind.add_argument("--timeout", type=_seconds, default=run.TIMEOUT, help="seconds to wait for the others at the start (120)")
        if role == "scheduler":
            kind.add_argument("--workers", required=True, help="how many the job begins with")
            kind.add_argument("--servers", required=True, help="how many the job begins with")
            kind.add_argument("--replicas", type=int, choices=range(9), default=run.REPLICAS, help="further servers that have a shard (1)")
            kind.add_argument("--lost_after", type=_seconds, default=run.LOST_AFTER, help="seconds until who is silent is lost (10)")
        elif role == "server":
            kind.add_argument("--bind", metavar="HOST", help="the address to listen at (that towards the scheduler)")
        else:
            kind.add_argument("script")
            kind.add_argument("words", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def main(words: list[str] | None = None) -> int:
    """The exit code: 0, or 1 for what is refused and for a job that failed."""
    options = _parser().parse_args(words)
    try:
        given = {"TESSERA_ROLE": options.role}
        for name, value in (("ROOT_URI", options.root), ("ROOT_PORT", options.port)):
            if value is not None:
                given[f"TESSERA_PS_{name}"] = value
        numbers = {"TESSERA_NUM_WORKER": options.workers, "TESSERA_NUM_SERVER": options.servers} if options.role == "scheduler" else {}
        kept = {name: value for name, value in os.environ.items()
                if "TESSERA_" + name.removeprefix("DMLC_") not in {**given, **numbers}}
        place = roles.read({**kept, **given, **numbers})
        if options.role == "worker":
            os.environ.update(given)
            for name in given:
                os.environ.pop("DMLC_" + name.removeprefix("TESSERA_"), None)
            sys.argv = [options.script, *options.words]
            sys.path[0] = os.path.dirname(os.path.abspath(options.script))
            runpy.run_path(options.script, run_name="__main__")
        elif options.role == "scheduler":
            run.scheduler(place, options.timeout, options.lost_after, options.replicas)
        else:
            run.server(place, options.timeout, options.bind)
    except (Error, OSError) as error:
        if options.role == "worker" and not isinstance(error, Error):
            raise
        print(f"tessera: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
