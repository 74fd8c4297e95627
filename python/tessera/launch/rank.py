# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What mpirun or srun starts in place of a script that reads RANK.

    mpirun -np 4 python -m tessera.launch.rank [--module] [--pass_local_rank] SCRIPT [ARGUMENTS]

It reads the ranks of whatever launcher, sets the variables that `tessera launch` sets, and becomes the script, in the same
process. That dies with its parent."""

from __future__ import annotations

import os
import signal
import sys

from .. import ranks
from ..errors import Error
from . import arguments as options, environment, processes, program


def prepare(words: list[str], environ) -> tuple[list[str], dict[str, str]]:
    """Command and environment of the script."""
    arguments = options.parse(words)
    for name in sorted(arguments.given - {"module", "pass_local_rank"}):
        raise Error(f"--{name} is of tessera launch; what a launcher starts takes --module and --pass_local_rank")
    program.check(arguments.script, arguments.module)
    found = ranks.read(environ)
    address, port = ranks.meeting(environ)
    variables = {"RANK": found.rank, "WORLD_SIZE": found.size, "MASTER_ADDR": address, "MASTER_PORT": port}
    if found.local_rank is not None:
        variables["LOCAL_RANK"] = found.local_rank
    if found.local_size is not None:
        variables["LOCAL_WORLD_SIZE"] = found.local_size
    if found.local_rank is None and arguments.pass_local_rank:
        raise Error(f"--pass_local_rank needs the local rank, and {found.source} does not say it")
    both = {prefix + name: str(value) for prefix in ("", "TESSERA_") for name, value in variables.items()}
    command = program.command(arguments.script, arguments.args, module=arguments.module,
                              local_rank=found.local_rank if arguments.pass_local_rank else None)
    if found.rank == 0:
        print(f"tessera: {found}", file=sys.stderr, flush=True)
    return command, {**environ, **both, "TESSERA_SIZE": str(found.size), **environment.threads(found.local_size or found.size, environ)}


def main() -> int:
    try:
        command, variables = prepare(sys.argv[1:], os.environ)
        processes.end_with_parent(signal.SIGKILL, os.getppid())
        os.execvpe(command[0], command, variables)
    except (Error, OSError) as error:
        print(f"tessera: error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
