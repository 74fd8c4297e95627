# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process that mpirun or srun starts per rank, to run a script that reads RANK.

    mpirun -np 4 python -m tessera.launch.rank [--module] [--pass_local_rank] [--log_dir DIR] SCRIPT [ARGUMENTS]

It reads the rank from the launcher's variables and runs the script with the variables that `tessera launch` sets. It
prefixes the script's output with the rank, reports why it failed, and kills the processes that it leaves behind.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys

from .. import ranks
from ..errors import Error
from . import arguments as options, environment, node, processes, program
from .supervisor import supervise


def prepare(words: list[str], environ) -> node.Job:
    """The job of one rank. Raises Error."""
    arguments = options.parse(words)
    for name in sorted(arguments.given - {"module", "pass_local_rank", "log_dir", "grace", "stop_grace"}):
        raise Error(f"--{name} applies to tessera launch only; under another launcher give --module, --pass_local_rank or --log_dir")
    program.check(arguments.script, arguments.module)
    found = ranks.read(environ)
    address, port = ranks.meeting(environ)
    variables = {"RANK": found.rank, "WORLD_SIZE": found.size, "MASTER_ADDR": address, "MASTER_PORT": port}
    if found.local_rank is not None:
        variables["LOCAL_RANK"] = found.local_rank
    if found.local_size is not None:
        variables["LOCAL_WORLD_SIZE"] = found.local_size
    if found.local_rank is None and arguments.pass_local_rank:
        raise Error(f"--pass_local_rank needs the local rank, which {found.source} does not give")
    both = {prefix + name: str(value) for prefix in ("", "TESSERA_") for name, value in variables.items()}
    full = {**environ, **environment.threads(found.local_size or found.size, environ), **both, "TESSERA_SIZE": str(found.size),
            "TESSERA_LAUNCH_ID": secrets.token_hex(16)}
    command = program.command(arguments.script, arguments.args, module=arguments.module,
                              local_rank=found.local_rank if arguments.pass_local_rank else None)
    if arguments.log_dir:
        options.make_folder(arguments.log_dir)
    if found.rank == 0:
        print(f"tessera: {found}", file=sys.stderr, flush=True)
    return node.Job(node=0, nodes=1, count=1, command=lambda _: command, environment=lambda **_: full, first_rank=found.rank,
                    local_rank=found.local_rank, keep=tuple(int(environ[name]) for name in ("PMI_FD",) if environ.get(name, "").isdigit()),
                    log_dir=arguments.log_dir, grace=arguments.grace, stop_grace=arguments.stop_grace)


def main() -> int:
    try:
        job = prepare(sys.argv[1:], os.environ)
    except Error as error:
        print(f"tessera: error: {error}", file=sys.stderr)
        return 1
    processes.end_with_parent(signal.SIGKILL, os.getppid())  # mpirun, or its daemon
    return supervise(lambda signals: node.Node(job, signals).run(), "TESSERA_LAUNCH_ID=" + job.environment()["TESSERA_LAUNCH_ID"])


if __name__ == "__main__":
    sys.exit(main())
