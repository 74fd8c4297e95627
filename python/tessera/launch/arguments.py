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
    """One option: its spellings (the first is the one shown; '-' and '_' are the same), its kind, its default, its sentence."""

    names: tuple[str, ...]
    kind: str
    default: object
    help: str
    section: str
    least: int = 0

    @property
    def field(self) -> str:
        return self.names[0].replace("-", "_")


def _table() -> list[Option]:
    table: list[Option] = []

    def add(section, names, kind, default, help, least=0):
        table.append(Option(tuple(names.split()), kind, default, help, section, least))

    here = "Processes that this command starts"
    add(here, "nproc_per_node", "count", None, "processes of this host; default the devices of --devices, else 1", 1)
    add(here, "devices device", "text", None, "GPUs of this host, one a process: 0,1,3, or cpu for none")
    add(here, "isolate_devices", "flag", False, "show each process its own device only; its number is then 0")
    add(here, "module m", "flag", False, "SCRIPT is the name of a Python module")
    add(here, "pass_local_rank", "flag", False, "pass --local_rank=I before the script's arguments")
    add(here, "log_dir", "text", None, "also write DIR/rank-R.log")
    add(here, "max_restarts", "count", 0, "start all ranks again after a failure, this often; default 0")
    add(here, "min_ranks", "count", None, "of --max_restarts: without the rank that failed, while N of the job are left", 1)
    nodes = "Nodes: one launch command on each"
    add(nodes, "nnodes", "count", 1, "launch commands of the job; default 1", 1)
    add(nodes, "node_rank", "count", 0, "which of them this is, from 0; default 0")
    add(nodes, "master_addr master_address", "address", ranks.DEFAULT_ADDRESS, "host of node 0; default 127.0.0.1")
    add(nodes, "master_port", "port", ranks.DEFAULT_PORT,
        "port of rank 0 there; default 29500; 0 takes a free one, with one node")
    add(nodes, "control_port", "port", None, "port of node 0's launcher; default --master_port + 1", 1)
    add(nodes, "bind", "address", None, "address that node 0's launcher listens at; default --master_addr")
    add(nodes, "token_file", "text", None, "file with the job's secret, the same on all nodes; or TESSERA_JOB_TOKEN")
    add(nodes, "wait_for_name", "flag", False, "retry a --master_addr that does not resolve yet, until --timeout")
    mpi = "MPI: mpirun starts the processes"
    add(mpi, "np n", "count", None, "processes of the job", 1)
    add(mpi, "hosts host H", "text", None, "HOST:SLOTS,...")
    add(mpi, "hostfile machinefile", "text", None, "a host a line: HOST [slots=N]")
    add(mpi, "npernode", "count", None, "processes a host; --np is a multiple of it", 1)
    add(mpi, "mpirun", "text", "mpirun", "the program; Open MPI's or MPICH's; default mpirun")
    add(mpi, "oversubscribe", "flag", False, "allow more processes than slots")
    add(mpi, "allow_run_as_root", "flag", False, "let Open MPI run as root")
    ends = "Ends"
    add(ends, "timeout", "seconds", 120.0, "longest wait for the other nodes, and their longest silence; default 120")
    add(ends, "grace", "seconds", 2.0, "from SIGTERM to SIGKILL after a failure; default 2")
    add(ends, "stop_grace", "seconds", 30.0, "from a signal that was forwarded to SIGKILL; default 30")
    other = "Instead of a start"
    add(other, "dry_run", "flag", False, "print what each process would be started with")
    add(other, "emit", "choice", None, "print a job for a scheduler: " + ", ".join(EMITTED))
    add(other, "name", "text", None, "of --emit: name of the job; default the script's")
    add(other, "image", "text", None, "of --emit: container image")
    add(other, "namespace", "text", None, "of --emit: Kubernetes namespace")
    add(other, "roles", "text", None, "of --emit=tesserajob: worker=4, scheduler=1,ps=2,worker=4 or scheduler=1,worker=4; default worker=NNODES")
    add(other, "gpus_per_node", "count", None, "of --emit: GPUs of a node; default none")
    add(other, "cpus_per_node", "count", None, "of --emit: cores of a node; default all, with Slurm", 1)
    add(other, "time", "text", None, "of --emit=slurm: time limit")
    add(other, "partition", "text", None, "of --emit=slurm: partition")
    add(other, "help h", "flag", False, "print this")
    return table


TABLE = _table()
_BY_NAME = {name.replace("_", "-"): option for option in TABLE for name in option.names}


@dataclasses.dataclass
class Arguments:
    """Options by their first name, which of them were given, the script and what is passed to it."""

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
    """Options stand before the script, all behind it is the script's; `--` ends the options, too."""
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
                raise Error(f"{name} takes no value, '{text}' is one")
            values[option.field] = True
            continue
        if not equals:
            if at == len(words):
                raise Error(f"{name} has no value; it is followed by one: {name} VALUE")
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
        raise Error(f"unknown option '{name}'; --help lists the options, the script's own stand behind the script")
    option = _BY_NAME[near[0]]
    nearest = next(each for each in option.names if each.replace("_", "-") == near[0])
    raise Error(f"unknown option '{name}'; did you mean {'-' if len(nearest) <= 2 else '--'}{nearest}?")


def _value(name: str, option: Option, text: str):
    if option.kind == "count":
        if not re.fullmatch(r"[0-9]{1,7}", text) or not option.least <= int(text) <= ranks.MOST_RANKS:
            raise Error(f"{name} is '{text}'; it is a whole number, at least {option.least}")
        return int(text)
    if option.kind == "seconds":
        try:
            seconds = float(text)
        except ValueError:
            seconds = math.nan
        if not 0 <= seconds <= 1e6:
            raise Error(f"{name} is '{text}'; it is a number of seconds, at least 0")
        return seconds
    if option.kind == "port":
        return ranks.port(name, text, option.least)
    if option.kind == "address":
        return ranks.address(name, text)
    if option.kind == "choice" and text not in EMITTED:
        raise Error(f"{name} is '{text}'; it is one of {', '.join(EMITTED)}")
    return text


def _check(arguments: Arguments) -> None:
    """Rules between options."""
    given = arguments.given
    of_mpi = given & {"hosts", "hostfile", "npernode", "mpirun", "oversubscribe", "allow_run_as_root"}
    if "emit" in given:
        of_mpi -= {"allow_run_as_root"}  # of an MPIJob
    if of_mpi and "np" not in given:
        raise Error(f"--{min(of_mpi)} is of a job that mpirun starts; add --np N")
    if "np" in given:
        for name in ("nproc_per_node", "nnodes", "node_rank", "control_port", "bind", "max_restarts", "log_dir", "devices",
                     "min_ranks", "isolate_devices", "emit"):
            if name in given:
                raise Error(f"--np hands the job to mpirun, and --{name} is of processes that this command starts; give one of them")
        if {"hosts", "hostfile"} <= given:
            raise Error("--hosts and --hostfile both say where the processes run; give one of them")
    if arguments.node_rank >= arguments.nnodes:
        raise Error(f"--node_rank is {arguments.node_rank} and --nnodes is {arguments.nnodes}; nodes are counted from 0, so it is at most "
                    f"{arguments.nnodes - 1}")
    if "min_ranks" in given and not arguments.max_restarts:
        raise Error("--min_ranks is of a job that starts again after a failure; add --max_restarts N")
    if arguments.nnodes > 1 and arguments.master_port == 0:
        raise Error("--master_port is 0 and --nnodes is "
                    f"{arguments.nnodes}; the nodes need one port that all know: name one")
    of_file = given & {"name", "image", "roles", "namespace", "gpus_per_node", "cpus_per_node", "time", "partition"}
    if of_file and "emit" not in given:
        raise Error(f"--{min(of_file)} is of the file that --emit prints; add --emit=KIND")
    if arguments.script is None:
        raise Error("no script: tessera launch [OPTIONS] SCRIPT [ARGUMENTS]; --help lists the options")


def make_folder(path: str) -> None:
    """Of --log_dir."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise Error(f"--log_dir '{path}' cannot be made: {error.strerror}") from None


def usage() -> str:
    lines = ["tessera launch [OPTIONS] SCRIPT [ARGUMENTS]", "",
             "Starts a script as the ranks of one job, and ends all when one fails. The same: python -m tessera.launch."]
    section = None
    for option in TABLE:
        if option.section != section:
            section = option.section
            lines += ["", section + ":"]
        spelled = ", ".join(("-" if len(name) <= 2 else "--") + name for name in option.names)
        value = {"flag": "", "count": " N", "seconds": " S", "port": " PORT", "address": " HOST"}.get(option.kind, " X")
        lines.append(f"  {spelled + value:<42}  {option.help}")
    return "\n".join(lines)
