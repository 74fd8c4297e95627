# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Jobs for schedulers: what `tessera launch --emit=KIND` prints."""

from __future__ import annotations

import os
import re

from ...errors import Error
from ..arguments import TABLE, Arguments

# What says how to start, in place of what a job file says itself.
_OF_THE_FILE = {"emit", "roles", "name", "image", "namespace", "gpus_per_node", "cpus_per_node", "time", "partition", "nnodes", "node_rank",
                "nproc_per_node", "master_addr", "dry_run", "help", "np", "hosts", "hostfile", "npernode", "mpirun", "oversubscribe",
                "allow_run_as_root", "token_file", "bind"}


def text(arguments: Arguments) -> str:
    """The file. Error names what it lacks."""
    for name in ("node_rank", "master_addr", "token_file", "bind"):
        if name in arguments.given:
            raise Error(f"--{name} is of one start; the file that --emit={arguments.emit} prints finds it where it runs")
    pods = ("mpijob", "trainjob", "jobset", "tesserajob")
    for name, kinds in (("image", pods), ("namespace", pods), ("roles", ("tesserajob",)),
                        ("time", ("slurm",)), ("partition", ("slurm",)), ("allow_run_as_root", ("mpijob",))):
        if name in arguments.given and arguments.emit not in kinds:
            raise Error(f"--{name} is of --emit={', '.join(kinds)}, not of {arguments.emit}")
    if arguments.emit == "slurm":
        from . import slurm
        return slurm.script(arguments)
    from . import kubernetes, roles, yaml
    kind = {**kubernetes.KINDS, **roles.KINDS}[arguments.emit]
    return kind.notes(arguments) + yaml.text(kind.manifest(arguments))


def passed(arguments: Arguments) -> list[str]:
    """The options of the launcher that the job keeps."""
    words = []
    for option in TABLE:
        if option.field in arguments.given and option.field not in _OF_THE_FILE:
            value = arguments.values[option.field]
            words.append(f"--{option.field}" if option.kind == "flag" else f"--{option.field}={value}")
    return words


def count(arguments: Arguments) -> int:
    """Processes of a node."""
    return arguments.nproc_per_node or arguments.gpus_per_node or (len(arguments.devices.split(",")) if arguments.devices else 1)


def name(arguments: Arguments) -> str:
    """Of the job: a label of the Domain Name System, short enough that the names of pods fit."""
    given = arguments.name
    if given is None:
        stem = os.path.splitext(os.path.basename(arguments.script))[0]
        given = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:40].strip("-") or "job"
        given = given if given[0].isalpha() else "job-" + given
    if not re.fullmatch(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?", given):
        raise Error(f"--name is '{given}'; it is at most 40 lower-case letters, digits and '-', with a letter first")
    return given
