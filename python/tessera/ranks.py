# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rank and size of this process in its job, from the launcher's environment, and the rendezvous address.

    python -m tessera.ranks

prints both. The rules (docs/launch.md explains them, test/Python/Inputs/ranks.json tests them):

1. Sets are read in this order: TESSERA_*, RANK (torchrun), OMPI_* (Open MPI), PMI_* (MPICH), SLURM_*. The first complete
   one wins: one with a rank and a size. A size of 1 without a rank is complete, with rank 0.
2. The first four sets must agree, value by value. SLURM_* is used only if none of them is complete.
3. Without any set the job has one process.
4. If there is a local size but no local rank (never under Slurm), the local rank is rank % local size: nodes are assumed
   to have equal sizes and consecutive ranks.
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
# Per set, the variables of each field; messages name the first of several.
_SETS = {
    "TESSERA_*": (("TESSERA_RANK",), ("TESSERA_WORLD_SIZE", "TESSERA_SIZE"), ("TESSERA_LOCAL_RANK",), ("TESSERA_LOCAL_WORLD_SIZE",)),
    "RANK": (("RANK",), ("WORLD_SIZE",), ("LOCAL_RANK",), ("LOCAL_WORLD_SIZE",)),
    "OMPI_*": (("OMPI_COMM_WORLD_RANK",), ("OMPI_COMM_WORLD_SIZE",), ("OMPI_COMM_WORLD_LOCAL_RANK",), ("OMPI_COMM_WORLD_LOCAL_SIZE",)),
    "PMI_*": (("PMI_RANK", "PMIX_RANK"), ("PMI_SIZE",), ("MPI_LOCALRANKID",), ("MPI_LOCALNRANKS",)),
    "SLURM_*": (("SLURM_PROCID",), ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"), ("SLURM_LOCALID",), ()),
}
# Variables that a launcher that assigns ranks must not pass on: they describe its own process.
VARIABLES = frozenset(name for names in _SETS.values() for group in names for name in group)


@dataclasses.dataclass(frozen=True)
class Ranks:
    """A process of a job: `rank` of `size`, and `local_rank` of the `local_size` processes on its host.

    The last two are None if the launcher does not set them; `local_ranks` computes them from host names. `source`: the
    set that was read.
    """

    rank: int = 0
    size: int = 1
    local_rank: int | None = None
    local_size: int | None = None
    source: str = "no launcher"

    def device(self, visible: int) -> int:
        """The index of this process' device among `visible` ones.

        It is the one of its local rank, or the only one if the launcher shows each process its own (srun
        --gpus-per-task). Raises Error if there are too few.
        """
        local = self.local_rank if self.local_rank is not None else self.rank
        if visible == 1 or local < visible:
            return 0 if visible == 1 else local
        raise Error(f"local rank {local} has no device: {visible} are visible; start one process per device")

    def __str__(self):
        local = "" if self.local_rank is None else f", local rank {self.local_rank}"
        of = "" if self.local_size is None else f" of {self.local_size}"
        return f"rank {self.rank} of {self.size}{local}{of}, from {self.source}"


def _number(name: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,7}", text) or int(text) > MOST_RANKS:
        raise Error(f"{name} is '{text}'; expected an integer from 0 to {MOST_RANKS}")
    return int(text)


def _values(names, environ) -> dict[str, tuple[str, int]]:
    """field: (variable, value) of a set. Raises Error if two variables of one field differ."""
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
        raise Error(f"{one[0]} is {one[1]} and {other[0]} is {other[1]}; unset the one that this job's launcher did not set")


def _slurm(environ) -> dict[str, tuple[str, int]]:
    """The SLURM_* set of a process started by srun; in a batch script these variables describe the whole job."""
    if "SLURM_JOB_ID" in environ and not {"SLURM_STEP_ID", "SLURM_STEPID"} & set(environ):
        return {}
    names = _SETS["SLURM_*"]
    if "SLURM_STEP_NUM_TASKS" in environ:  # SLURM_NTASKS may be that of the allocation
        names = (names[0], names[1][:1], *names[2:])
    found = _values(names, environ)
    for name in ("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"):
        if found and name in environ:
            counts = tasks_per_node(environ[name], name)
            node = _number("SLURM_NODEID", environ.get("SLURM_NODEID", "0"))
            if node >= len(counts):
                raise Error(f"SLURM_NODEID is {node} and {name} '{environ[name]}' lists {len(counts)} nodes")
            found["local_size"] = (name, counts[node])
            break
    return found


def tasks_per_node(text: str, name: str = "SLURM_TASKS_PER_NODE") -> list[int]:
    """Parses Slurm's `2(x3),1` to [2, 2, 2, 1]. Raises Error if it is malformed."""
    counts: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]{1,7})(?:\(x([0-9]{1,7})\))?", part)
        if not match or int(match[1]) < 1 or len(counts) + int(match[2] or 1) > MOST_RANKS:
            raise Error(f"{name} is '{text}'; expected processes per node, such as 2(x3),1")
        counts += [int(match[1])] * int(match[2] or 1)
    return counts


def read(environ: Mapping[str, str] = os.environ) -> Ranks:
    """The rank of this process according to `environ`.

    Raises Error, quoting the variables, for malformed or contradictory values, a rank beyond the size, and a set that
    lacks the rank or the size if no other set is complete.
    """
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
    for field in ("local_rank", "local_size"):  # missing in the winner, present in another set
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
        raise Error(f"the host has {values['local_size']} processes, but the job only {values['size']}")


def local_ranks(hosts: Sequence[str]) -> list[tuple[int, int]]:
    """(local rank, local size) of each rank, from each rank's host name. Hosts may have different numbers of ranks."""
    counts: dict[str, int] = {}
    ranks = []
    for host in hosts:
        ranks.append(counts.get(host, 0))
        counts[host] = ranks[-1] + 1
    return [(rank, counts[host]) for rank, host in zip(ranks, hosts)]


def port(name: str, text: str, least: int = 1) -> int:
    """Parses a port number. Raises Error naming the variable or option."""
    if not re.fullmatch(r"[0-9]{1,5}", text) or not least <= int(text) <= 65535:
        raise Error(f"{name} is '{text}'; expected a port from {least} to 65535")
    return int(text)


def address(name: str, text: str) -> str:
    """Checks a host name or address; strips brackets around an IPv6 address.

    Raises Error naming the variable or option.
    """
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if not bare or re.search(r"[\s\[\]/]", bare):
        raise Error(f"{name} is '{text}'; expected a host name, an IPv4 address, or an IPv6 address, optionally in brackets")
    return bare


def first_host(nodes: str, name: str = "SLURM_STEP_NODELIST") -> str:
    """The first host of Slurm's node list: gpu03 of `gpu[03-07,9],login`. Raises Error if it is malformed."""
    match = re.match(r"([^\[\],\s]+)(?:\[([0-9]+)[0-9,-]*\]([^\[\],\s]*))?(?:,|$)", nodes)
    if not match:
        raise Error(f"{name} is '{nodes}'; expected a list of hosts, such as gpu[03-07,9],login")
    return match[1] + (match[2] or "") + (match[3] or "")


def meeting(environ: Mapping[str, str] = os.environ) -> tuple[str, int]:
    """(host, port) where rank 0 listens and the other ranks connect.

    From TESSERA_MASTER_ADDR and TESSERA_MASTER_PORT, else MASTER_ADDR and MASTER_PORT, else Slurm's first host and the
    default port, else this host. Under torchrun the agent listens at MASTER_PORT, so the next port is used.
    """
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
