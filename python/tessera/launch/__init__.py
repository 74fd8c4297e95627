# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starts a script as the ranks of one job: `tessera launch`, `python -m tessera.launch`. docs/launch.md describes it.

arguments    the command line
start        checks, and the job of this node; program, environment, cores, ports: what a rank is started with
mpi          the same by mpirun; rank: what mpirun starts
emit         jobs for Slurm and Kubernetes
supervisor   the two processes of the launcher
node         the ranks of this node; processes, logs
coordinator  what node 0 decides; hub, link, nodes: how the others hear it
"""

from __future__ import annotations

import sys

from ..errors import Error


def main(words: list[str] | None = None) -> int:
    """The exit code: 0, that of the first rank that failed (128 and the signal, if it was one), or 1 for what is refused."""
    from . import arguments as options
    try:
        arguments = options.parse(sys.argv[1:] if words is None else words)
        if arguments.help:
            print(options.usage())
            return 0
        if arguments.emit:
            from . import emit
            print(emit.text(arguments), end="")
            return 0
        if arguments.np is not None:
            from . import mpi
            return mpi.run(arguments)
        from . import start
        plan = start.Plan(arguments)
        return start.dry_run(plan) if arguments.dry_run else start.run(plan)
    except Error as error:
        print(f"tessera: error: {error}", file=sys.stderr)
        return 1
