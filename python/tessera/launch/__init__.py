# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Start a script as the ranks of one job: `tessera launch`, `python -m tessera.launch`. docs/launch.md describes it.

arguments    command line
start        checks and the job of this node; program, environment, cores, ports: command and environment of a rank
mpi          the same with mpirun; rank: the process that mpirun starts
emit         job files for Slurm and Kubernetes
supervisor   the two processes of the launcher, and its guard
node         the ranks of this node; processes, logs
coordinator  decisions of node 0 for the whole job; hub, link, nodes: connections between the launchers
"""

from __future__ import annotations

import sys

from ..errors import Error


def main(words: list[str] | None = None) -> int:
    """Run the command line `words` and return the exit code.

    It is 0, the code of the first rank that failed (128 + N if signal N ended it), or 1 if the launcher refuses to
    start.
    """
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
