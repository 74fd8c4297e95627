# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which process of a job this is, as its launcher says, and where the processes meet.

    python -m tessera.ranks

prints both. The rule, which docs/launch.md explains and test/Python/Inputs/ranks.json holds as a table:

1. The sets are read in this order: TESSERA_*, RANK (torchrun's names), OMPI_* (Open MPI), PMI_* (MPICH), SLURM_*. The first
   complete one wins: one that gives a rank and a size. A size of 1 alone is complete, its rank is 0.
2. What the first four sets say must agree, value by value. SLURM_* counts only where none of them is complete.
3. No set at all is a job of one process.
4. Where a local size is given without a local rank, which Slurm never does, the local rank is rank % local size: nodes are alike and
   their ranks follow each other.
"""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from collections.abc import Mapping, Sequence

from .errors import Error

MOST_RANKS = 1 << 20
DEFAULT_ADDRESS, DEFAULT_PORT = "127.0.0.1", 29500

_FIELDS = ("rank", "size", "local_rank", "local_size")
# Per set, the variables of each field; of several names the first is the one that messages ask for.
_SETS = {
    "TESSERA_*": (("TESSERA_RANK",), ("TESSERA_WORLD_SIZE", "TESSERA_SIZE"), ("TESSERA_LOCAL_RANK",), ("TESSERA_LOCAL_WORLD_SIZE",)),
    "RANK": (("RANK",), ("WORLD_SIZE",), ("LOCAL_RANK",), ("LOCAL_WORLD_SIZE",)),
    "OMPI_*": (("OMPI_COMM_WORLD_RANK",), ("OMPI_COMM_WORLD_SIZE",), ("OMPI_COMM_WORLD_LOCAL_RANK",), ("OMPI_COMM_WORLD_LOCAL_SIZE",)),
    "PMI_*": (("PMI_RANK", "PMIX_RANK"), ("PMI_SIZE",), ("MPI_LOCALRANKID",), ("MPI_LOCALNRANKS",)),
    "SLURM_*": (("SLURM_PROCID",), ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"), ("SLURM_LOCALID",), ()),
}
# Of the variables above, what a launcher that gives ranks itself must not hand on: they are of its own process.
VARIABLES = frozenset(name for names in _SETS.values() for group in names for name in group)


@dataclasses.dataclass(frozen=True)
class Ranks:
    """A process of a job: `rank` of `size`, and `local_rank` of the `local_size` processes of its host. The last two are None
    where the launcher does not say; `local_ranks` finds them from the names of the hosts. `source` is the set that was read."""

    rank: int = 0
    size: int = 1
    local_rank: int | None = None
    local_size: int | None = None
    source: str = "no launcher"

    def device(self, visible: int) -> int:
        """Which of `visible` devices is this process's: the one of its local rank, or the only one, where the launcher shows
        each process its own (srun --gpus-per-task)."""
        local = self.local_rank if self.local_rank is not None else self.rank
        if visible == 1 or local < visible:
            return 0 if visible == 1 else local
        raise Error(f"local rank {local} has no device: {visible} are visible; start one process a device")

    def __str__(self):
        local = "" if self.local_rank is None else f", local rank {self.local_rank}"
        of = "" if self.local_size is None else f" of {self.local_size}"
        return f"rank {self.rank} of {self.size}{local}{of}, from {self.source}"


def _number(name: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,7}", text) or int(text) > MOST_RANKS:
        raise Error(f"{name} is '{text}'; it is a whole number from 0 to {MOST_RANKS}")
    return int(text)


def _values(names, environ) -> dict[str, tuple[str, int]]:
    """field: (variable, value) of a set; Error where two names of one field differ."""
    found: dict[str, tuple[str, int]] = {}
    for field, variables in zip(_FIELDS, names):
        for name in variables:
            if name in environ:
                value = _number(name, environ[name])
                _agree(found.setdefault(field, (name, value)), (name, value))
    if "rank" not in found and found.get("size", ("", 0))[1] == 1:
        found["rank"] = (found["size"][0], 0)
    return found


def _agree(one: tuple[str, int], other: tuple[str, int]) -> None:
    if one[1] != other[1]:
        raise Error(f"{one[0]} is {one[1]} and {other[0]} is {other[1]}; unset the one that is not of this job's launcher")


def _slurm(environ) -> dict[str, tuple[str, int]]:
    """SLURM_*, of a process that srun started; in a batch script they speak of the whole job."""
    if "SLURM_JOB_ID" in environ and not {"SLURM_STEP_ID", "SLURM_STEPID"} & set(environ):
        return {}
    names = _SETS["SLURM_*"]
    if "SLURM_STEP_NUM_TASKS" in environ:  # SLURM_NTASKS may be the allocation's
        names = (names[0], names[1][:1], *names[2:])
    found = _values(names, environ)
    for name in ("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"):
        if found and name in environ:
            counts = tasks_per_node(environ[name], name)
            node = _number("SLURM_NODEID", environ.get("SLURM_NODEID", "0"))
            if node >= len(counts):
                raise Error(f"SLURM_NODEID is {node} and {name} '{environ[name]}' is of {len(counts)} nodes")
            found["local_size"] = (name, counts[node])
            break
    return found


def tasks_per_node(text: str, name: str = "SLURM_TASKS_PER_NODE") -> list[int]:
    """Slurm's `2(x3),1`: [2, 2, 2, 1]."""
    counts: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]{1,7})(?:\(x([0-9]{1,7})\))?", part)
        if not match or int(match[1]) < 1 or len(counts) + int(match[2] or 1) > MOST_RANKS:
            raise Error(f"{name} is '{text}'; it is counts of processes per node, as 2(x3),1")
        counts += [int(match[1])] * int(match[2] or 1)
    return counts


def read(environ: Mapping[str, str] = os.environ) -> Ranks:
    """The process that `environ` says this is. Error quotes a malformed variable, two that contradict each other, a rank beyond
    the size, or a set that lacks the rank or the size where no other set is complete."""
    found = {source: _values(names, environ) for source, names in _SETS.items() if source != "SLURM_*"}
    complete = [source for source, values in found.items() if {"rank", "size"} <= values.keys()]
    if complete:
        winner = found[complete[0]]
        for source, values in found.items():
            for field in [field for field in _FIELDS if field in values and field in winner]:
                _agree(winner[field], values[field])
        source = complete[0]
    else:
        found["SLURM_*"] = _slurm(environ)
        source = "SLURM_*"
        if not {"rank", "size"} <= found[source].keys():
            _refuse_partial(found, environ)
            return Ranks()
    values = {field: value for field, (_, value) in found[source].items()}
    for field in ("local_rank", "local_size"):  # what the winner leaves open and another set says
        values.setdefault(field, next((each[field][1] for each in found.values() if field in each), None))
    if values["local_rank"] is None and values["local_size"] and values["size"] % values["local_size"] == 0 and source != "SLURM_*":
        values["local_rank"] = values["rank"] % values["local_size"]
    _check(values, found[source])
    return Ranks(**values, source=source)


def _refuse_partial(found, environ) -> None:
    for source, values in found.items():
        names = dict(zip(_FIELDS, _SETS[source]))
        for field, missing in (("rank", "size"), ("size", "rank")):
            if field in values and values[field][0] != "PMIX_RANK":  # PMIx gives no size
                raise Error(f"{values[field][0]} is {values[field][1]} and {names[missing][0]} is not set; a process needs both")


def _check(values, found) -> None:
    for rank, size in (("rank", "size"), ("local_rank", "local_size")):
        if values.get(rank) is not None and values.get(size) is not None and values[rank] >= values[size]:
            name, of = found.get(rank, (rank, 0))[0], found.get(size, (size, 0))[0]
            raise Error(f"{name} is {values[rank]} and {of} is {values[size]}; ranks are counted from 0")
    if values["local_size"] is not None and values["local_size"] > values["size"]:
        raise Error(f"the host has {values['local_size']} processes and the job {values['size']}")


def local_ranks(hosts: Sequence[str]) -> list[tuple[int, int]]:
    """(local rank, local size) of each rank, from the name of each rank's host. Hosts may have different numbers of ranks."""
    counts: dict[str, int] = {}
    ranks = []
    for host in hosts:
        ranks.append(counts.get(host, 0))
        counts[host] = ranks[-1] + 1
    return [(rank, counts[host]) for rank, host in zip(ranks, hosts)]


def port(name: str, text: str, least: int = 1) -> int:
    """A port, or Error naming the variable or option."""
    if not re.fullmatch(r"[0-9]{1,5}", text) or not least <= int(text) <= 65535:
        raise Error(f"{name} is '{text}'; it is a port from {least} to 65535")
    return int(text)


def address(name: str, text: str) -> str:
    """A host's name or address; brackets around an IPv6 address are removed."""
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if not bare or re.search(r"[\s\[\]/]", bare):
        raise Error(f"{name} is '{text}'; it is a host name, an IPv4 address, or an IPv6 address, in brackets or not")
    return bare


def first_host(nodes: str, name: str = "SLURM_STEP_NODELIST") -> str:
    """The first of Slurm's list of hosts: `gpu[03-07,9],login` is gpu03."""
    match = re.match(r"([^\[\],\s]+)(?:\[([0-9]+)[0-9,-]*\]([^\[\],\s]*))?(?:,|$)", nodes)
    if not match:
        raise Error(f"{name} is '{nodes}'; it is a list of hosts, as gpu[03-07,9],login")
    return match[1] + (match[2] or "") + (match[3] or "")


def meeting(environ: Mapping[str, str] = os.environ) -> tuple[str, int]:
    """Host and port where rank 0 listens and the others connect: TESSERA_MASTER_ADDR and _PORT, else MASTER_ADDR and
    MASTER_PORT, else the first of Slurm's hosts and the default port, else this host.

    Under torchrun the agent itself listens at MASTER_PORT, so the processes meet at the port above it."""
    text, number = None, None
    for prefix in ("TESSERA_", ""):
        name = prefix + "MASTER_ADDR"
        if text is None and name in environ:
            text = address(name, environ[name])
        name = prefix + "MASTER_PORT"
        if number is None and name in environ:
            number = port(name, environ[name])
            if not prefix and environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
                number += 1 if number < 65535 else -1
    for name in ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"):
        if text is None and name in environ and read(environ).source == "SLURM_*":
            text = first_host(environ[name], name)
    return text or DEFAULT_ADDRESS, number or DEFAULT_PORT


def main() -> int:
    try:
        host, number = meeting()
        print(f"{read()}; processes meet at {f'[{host}]' if ':' in host else host}:{number}")
        return 0
    except Error as error:
        print(f"tessera: error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
