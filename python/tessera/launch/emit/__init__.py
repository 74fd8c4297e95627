# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Job files for schedulers: `tessera launch --emit=KIND`."""

from __future__ import annotations

import os
import re

from ...errors import Error
from ..arguments import TABLE, Arguments

# Options that the job file itself replaces: they are not passed to the launcher that it starts.
_OF_THE_FILE = {"emit", "roles", "name", "image", "namespace", "gpus_per_node", "cpus_per_node", "time", "partition", "nnodes", "node_rank",
                "nproc_per_node", "master_addr", "dry_run", "help", "np", "hosts", "hostfile", "npernode", "mpirun", "oversubscribe",
                "allow_run_as_root", "token_file", "bind"}


def text(arguments: Arguments) -> str:
    """The text of the job file. Raises Error if an option is missing or does not apply."""
    for name in ("node_rank", "master_addr", "token_file", "bind"):
        if name in arguments.given:
            raise Error(f"--{name} applies to one start only; the file of --emit={arguments.emit} sets it where it runs")
    pods = ("mpijob", "trainjob", "jobset", "tesserajob")
    for name, kinds in (("image", pods), ("namespace", pods), ("roles", ("tesserajob",)),
                        ("time", ("slurm",)), ("partition", ("slurm",)), ("allow_run_as_root", ("mpijob",))):
        if name in arguments.given and arguments.emit not in kinds:
            raise Error(f"--{name} applies to --emit={', '.join(kinds)}, not to {arguments.emit}")
    if arguments.emit == "slurm":
        from . import slurm
        return slurm.script(arguments)
    from . import kubernetes, roles, yaml
    kind = {**kubernetes.KINDS, **roles.KINDS}[arguments.emit]
    return kind.notes(arguments) + yaml.text(kind.manifest(arguments))


def passed(arguments: Arguments) -> list[str]:
    """The given options that the job file passes to the launcher."""
    words = []
    for option in TABLE:
        if option.field in arguments.given and option.field not in _OF_THE_FILE:
            value = arguments.values[option.field]
            words.append(f"--{option.field}" if option.kind == "flag" else f"--{option.field}={value}")
    return words


def count(arguments: Arguments) -> int:
    """Number of processes per node."""
    return arguments.nproc_per_node or arguments.gpus_per_node or (len(arguments.devices.split(",")) if arguments.devices else 1)


def name(arguments: Arguments) -> str:
    """The name of the job: a DNS label, short enough that the names of its pods are labels too. Raises Error."""
    given = arguments.name
    if given is None:
        stem = os.path.splitext(os.path.basename(arguments.script))[0]
        given = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:40].strip("-") or "job"
        given = given if given[0].isalpha() else "job-" + given
    if not re.fullmatch(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?", given):
        raise Error(f"--name is '{given}'; expected at most 40 lower-case letters, digits and '-', starting with a letter")
    return given
