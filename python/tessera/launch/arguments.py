# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line of `tessera launch`."""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
import re

from .. import ranks
from ..errors import Error

EMITTED = ("slurm", "mpijob", "trainjob", "jobset", "tesserajob")


@dataclasses.dataclass
class Option:
    """One command-line option. '-' and '_' are equivalent in its names; the first name is the canonical one.

    kind: flag, count, seconds, port, address, choice or text. least: smallest valid count or port.
    """

    names: tuple[str, ...]
    kind: str
    default: object
    help: str
    section: str
    least: int = 0

    @property
    def field(self) -> str:
        """The name of the option's attribute in Arguments."""
        return self.names[0].replace("-", "_")


def _table() -> list[Option]:
    table: list[Option] = []

    def add(section, names, kind, default, help, least=0):
        table.append(Option(tuple(names.split()), kind, default, help, section, least))

    here = "Processes that this command starts"
    add(here, "nproc_per_node", "count", None, "processes on this host; default: one per device of --devices, else 1", 1)
    add(here, "devices device", "text", None, "GPUs of this host, one per process: 0,1,3; cpu: no GPU")
    add(here, "isolate_devices", "flag", False, "make only its own device visible to each process, as device 0")
    add(here, "module m", "flag", False, "SCRIPT is the name of a Python module")
    add(here, "pass_local_rank", "flag", False, "pass --local_rank=I before the script's arguments")
    add(here, "log_dir", "text", None, "also write the output of rank R to DIR/rank-R.log")
    add(here, "max_restarts", "count", 0, "restart all ranks after a failure, at most N times; default 0")
    add(here, "min_ranks", "count", None, "with --max_restarts: drop the failed rank while at least N ranks remain", 1)
    nodes = "Nodes: one launch command on each"
    add(nodes, "nnodes", "count", 1, "number of nodes (launch commands) of the job; default 1", 1)
    add(nodes, "node_rank", "count", 0, "index of this node, from 0; default 0")
    add(nodes, "master_addr master_address", "address", ranks.DEFAULT_ADDRESS, "host of node 0; default 127.0.0.1")
    add(nodes, "master_port", "port", ranks.DEFAULT_PORT,
        "port of rank 0 on that host; default 29500; 0 picks a free one (one node only)")
    add(nodes, "control_port", "port", None, "port of node 0's launcher; default --master_port + 1", 1)
    add(nodes, "bind", "address", None, "address at which node 0's launcher listens; default --master_addr")
    add(nodes, "token_file", "text", None, "file with the job's secret, the same on all nodes; or TESSERA_JOB_TOKEN")
    add(nodes, "wait_for_name", "flag", False, "retry until --timeout while --master_addr does not resolve")
    mpi = "MPI: mpirun starts the processes"
    add(mpi, "np n", "count", None, "number of processes of the job", 1)
    add(mpi, "hosts host H", "text", None, "HOST:SLOTS,...")
    add(mpi, "hostfile machinefile", "text", None, "file with one host per line: HOST [slots=N]")
    add(mpi, "npernode", "count", None, "processes per host; must divide --np", 1)
    add(mpi, "mpirun", "text", "mpirun", "mpirun of Open MPI or MPICH; default mpirun")
    add(mpi, "oversubscribe", "flag", False, "allow more processes than slots")
    add(mpi, "allow_run_as_root", "flag", False, "let Open MPI run as root")
    ends = "Timeouts"
    add(ends, "timeout", "seconds", 120.0, "wait for the other nodes, and longest silence of a node; default 120")
    add(ends, "grace", "seconds", 2.0, "from SIGTERM to SIGKILL after a failure; default 2")
    add(ends, "stop_grace", "seconds", 30.0, "from a forwarded signal to SIGKILL; default 30")
    other = "Without starting anything"
    add(other, "dry_run", "flag", False, "print the environment and command of each process")
    add(other, "emit", "choice", None, "print a job file for a scheduler: " + ", ".join(EMITTED))
    add(other, "name", "text", None, "with --emit: name of the job; default: that of the script")
    add(other, "image", "text", None, "with --emit: container image")
    add(other, "namespace", "text", None, "with --emit: Kubernetes namespace")
    add(other, "roles", "text", None, "with --emit=tesserajob: worker=4, scheduler=1,ps=2,worker=4 or scheduler=1,worker=4; default "
        "worker=NNODES")
    add(other, "gpus_per_node", "count", None, "with --emit: GPUs per node; default: none")
    add(other, "cpus_per_node", "count", None, "with --emit: cores per node; default: all (Slurm)", 1)
    add(other, "time", "text", None, "with --emit=slurm: time limit")
    add(other, "partition", "text", None, "with --emit=slurm: partition")
    add(other, "help h", "flag", False, "print this help")
    return table


TABLE = _table()
_BY_NAME = {name.replace("_", "-"): option for option in TABLE for name in option.names}


@dataclasses.dataclass
class Arguments:
    """Option values by canonical name, the names of the options that were given, the script and its arguments."""

    values: dict
    given: set
    script: str | None
    args: list[str]

    def __getattr__(self, name):
        try:
            return self.__dict__["values"][name]
        except KeyError:
            raise AttributeError(name) from None


def parse(words: list[str]) -> Arguments:
    """Parse a command line. Options end at the script or at `--`; everything after the script is passed to it."""
    values = {option.field: option.default for option in TABLE}
    given: set = set()
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        if words[at] == "--":
            at += 1
            break
        name, equals, text = words[at].partition("=")
        option = _find(name)
        at += 1
        if option.field in given:
            raise Error(f"{name} is given twice")
        given.add(option.field)
        if option.kind == "flag":
            if equals:
                raise Error(f"{name} takes no value, got '{text}'")
            values[option.field] = True
            continue
        if not equals:
            if at == len(words):
                raise Error(f"{name} has no value; write {name} VALUE")
            text = words[at]
            at += 1
        if not text:
            raise Error(f"{name} has an empty value")
        values[option.field] = _value(name, option, text)
    script = words[at] if at < len(words) else None
    arguments = Arguments(values, given, script, words[at + 1:])
    if not arguments.help:
        _check(arguments)
    return arguments


def _find(name: str) -> Option:
    spelled = name.lstrip("-").replace("_", "-")
    if spelled in _BY_NAME:
        return _BY_NAME[spelled]
    near = difflib.get_close_matches(spelled, list(_BY_NAME), n=1, cutoff=0.5)
    if not near:
        raise Error(f"unknown option '{name}'; --help lists the options, and those of the script follow the script")
    option = _BY_NAME[near[0]]
    nearest = next(each for each in option.names if each.replace("_", "-") == near[0])
    raise Error(f"unknown option '{name}'; did you mean {'-' if len(nearest) <= 2 else '--'}{nearest}?")


def _value(name: str, option: Option, text: str):
    if option.kind == "count":
        if not re.fullmatch(r"[0-9]{1,7}", text) or not option.least <= int(text) <= ranks.MOST_RANKS:
            raise Error(f"{name} is '{text}'; expected a whole number, at least {option.least}")
        return int(text)
    if option.kind == "seconds":
        try:
            seconds = float(text)
        except ValueError:
            seconds = math.nan
        if not 0 <= seconds <= 1e6:
            raise Error(f"{name} is '{text}'; expected a number of seconds, at least 0")
        return seconds
    if option.kind == "port":
        return ranks.port(name, text, option.least)
    if option.kind == "address":
        return ranks.address(name, text)
    if option.kind == "choice" and text not in EMITTED:
        raise Error(f"{name} is '{text}'; expected one of {', '.join(EMITTED)}")
    return text


def _check(arguments: Arguments) -> None:
    """Check the constraints between options. Raises Error."""
    given = arguments.given
    of_mpi = given & {"hosts", "hostfile", "npernode", "mpirun", "oversubscribe", "allow_run_as_root"}
    if "emit" in given:
        of_mpi -= {"allow_run_as_root"}  # valid for an MPIJob
    if of_mpi and "np" not in given:
        raise Error(f"--{min(of_mpi)} applies to jobs started by mpirun only; add --np N")
    if "np" in given:
        for name in ("nproc_per_node", "nnodes", "node_rank", "control_port", "bind", "max_restarts", "log_dir", "devices",
                     "min_ranks", "isolate_devices", "emit"):
            if name in given:
                raise Error(f"--np starts the job with mpirun, and --{name} applies to processes that this command starts; give one of them")
        if {"hosts", "hostfile"} <= given:
            raise Error("--hosts and --hostfile both name the hosts of the job; give one of them")
    if arguments.node_rank >= arguments.nnodes:
        raise Error(f"--node_rank is {arguments.node_rank} and --nnodes is {arguments.nnodes}; nodes count from 0, so --node_rank is at "
                    f"most {arguments.nnodes - 1}")
    if "min_ranks" in given and not arguments.max_restarts:
        raise Error("--min_ranks applies to jobs that restart after a failure; add --max_restarts N")
    if arguments.nnodes > 1 and arguments.master_port == 0:
        raise Error(f"--master_port is 0 and --nnodes is {arguments.nnodes}; all nodes must use the same port: name one")
    of_file = given & {"name", "image", "roles", "namespace", "gpus_per_node", "cpus_per_node", "time", "partition"}
    if of_file and "emit" not in given:
        raise Error(f"--{min(of_file)} applies to --emit only; add --emit=KIND")
    if arguments.script is None:
        raise Error("no script: tessera launch [OPTIONS] SCRIPT [ARGUMENTS]; --help lists the options")


def make_folder(path: str) -> None:
    """Create the folder of --log_dir. Raises Error."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise Error(f"--log_dir '{path}' cannot be created: {error.strerror}") from None


def usage() -> str:
    """The text of --help."""
    lines = ["tessera launch [OPTIONS] SCRIPT [ARGUMENTS]", "",
             "Start a script as the ranks of one job; if one rank fails, end all. Also: python -m tessera.launch."]
    section = None
    for option in TABLE:
        if option.section != section:
            section = option.section
            lines += ["", section + ":"]
        spelled = ", ".join(("-" if len(name) <= 2 else "--") + name for name in option.names)
        value = {"flag": "", "count": " N", "seconds": " S", "port": " PORT", "address": " HOST"}.get(option.kind, " X")
        lines.append(f"  {spelled + value:<42}  {option.help}")
    return "\n".join(lines)
