# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A job that mpirun starts: `tessera launch --np N`."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys

from ..errors import Error
from . import hosts, program
from .arguments import Arguments


def flavour(path: str) -> str:
    """The MPI implementation, 'open-mpi' or 'mpich', of an mpirun program. Raises Error if it is neither."""
    if not shutil.which(path):
        raise Error(f"there is no program '{path}' on PATH; install openmpi-bin or mpich, or name another with --mpirun")
    try:
        version = subprocess.run([path, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30,
                              text=True).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Error(f"--mpirun '{path}' --version fails: {error}") from None
    if "Open MPI" in version or "Open RTE" in version or "PRRTE" in version:
        return "open-mpi"
    if "HYDRA" in version or "MPICH" in version or "Intel(R) MPI" in version:
        return "mpich"
    raise Error(f"--mpirun '{path}' is neither Open MPI's nor MPICH's; its version is '{version.strip()[:80]}'")


def command(arguments: Arguments, kind: str, environ=os.environ) -> list[str]:
    """The command line of mpirun. kind: the result of `flavour`. Raises Error if an option is invalid."""
    if arguments.hosts:
        option, places = "--hosts", hosts.parse(arguments.hosts)
    elif arguments.hostfile:
        option, places = "--hostfile", hosts.read(arguments.hostfile)
    else:
        option, places = "this host", {"localhost": hosts.physical_cores() if kind == "open-mpi" else None}
    hosts.check_room(arguments.np, arguments.npernode, places, option, arguments.oversubscribe)
    # Open MPI recognizes this host by these names only; 127.0.0.2 is another host to it.
    local = [host for host in places if hosts.is_here(host, option) and host in ("localhost", "127.0.0.1", "[::1]", socket.gethostname())]
    if kind == "open-mpi" and arguments.npernode and len(local) > 1:
        raise Error(f"{option} names this host {len(local)} times ({', '.join(local)}), which Open MPI counts once; name it once, "
                    f"without --npernode, or use MPICH: --mpirun mpirun.mpich")
    first = next(iter(places))
    exported = {"MASTER_ADDR": arguments.master_addr if "master_addr" in arguments.given or len(places) == 1 else first.strip("[]"),
                "MASTER_PORT": str(arguments.master_port), "PYTHONPATH": python_path(environ)}
    own = [sys.executable, "-m", "tessera.launch.rank"]
    own += ["--module"] * arguments.module + ["--pass_local_rank"] * arguments.pass_local_rank
    own += [arguments.script, *arguments.args]
    if kind == "open-mpi":
        if os.geteuid() == 0 and not arguments.allow_run_as_root and environ.get("OMPI_ALLOW_RUN_AS_ROOT") != "1":
            raise Error("Open MPI refuses to run as root; use another user, or add --allow-run-as-root")
        words = [arguments.mpirun, "-np", str(arguments.np)]
        words += ["-H", arguments.hosts] if arguments.hosts else ["--hostfile", arguments.hostfile] if arguments.hostfile else []
        words += ["-npernode", str(arguments.npernode)] if arguments.npernode else []
        words += ["--oversubscribe"] * arguments.oversubscribe + ["--allow-run-as-root"] * arguments.allow_run_as_root
        # The threads of a rank use several cores; by default, Open MPI binds a rank to one.
        words += ["--bind-to", "none"]
        for name, value in exported.items():
            words += ["-x", f"{name}={value}"]
        return words + own
    words = [arguments.mpirun, "-n", str(arguments.np)]
    words += ["-hosts", arguments.hosts] if arguments.hosts else ["-f", arguments.hostfile] if arguments.hostfile else []
    words += ["-ppn", str(arguments.npernode)] if arguments.npernode else []
    for name, value in exported.items():
        words += ["-genv", name, value]
    return words + own


def python_path(environ) -> str:
    """PYTHONPATH extended so that the ranks find this package."""
    place = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    found = [path for path in environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return os.pathsep.join(found if place in found or place.endswith("-packages") else [place, *found])


def run(arguments: Arguments) -> int:
    """Replace this process with mpirun; with --dry_run, print its command line and return 0. Raises Error."""
    program.check(arguments.script, arguments.module)
    words = command(arguments, flavour(arguments.mpirun))
    if arguments.dry_run:
        print(shlex.join(words))
        return 0
    option = "--hosts" if arguments.hosts else "--hostfile"
    if arguments.hosts or arguments.hostfile:
        hosts.check_reachable(hosts.parse(arguments.hosts) if arguments.hosts else hosts.read(arguments.hostfile), option)
    sys.stdout.flush()
    os.execvp(words[0], words)
