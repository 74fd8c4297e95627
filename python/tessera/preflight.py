# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the hosts of a job before it starts.

    tessera preflight                                               this host
    tessera launch --nnodes 2 --node_rank 0 ... -m tessera.preflight    all nodes of a job, with its options and environment

Each process inspects its host: other processes on the devices that it would use, ranks of other jobs, library versions,
threads. Ranks of a running job are checked for use of devices other than their own. Devices are those of nvidia-smi; a
host without it has none. Rank 0 compares the findings and prints one line per problem, with host and subject; the exit
code is then 1. Ranks of other jobs that use neither these devices nor this port are printed as notes.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys

from . import distributed, ranks
from .errors import Error
from .launch.cores import cores

_RANK = ("TESSERA_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_LOCAL_RANK = ("TESSERA_LOCAL_RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
_HIDDEN = 1024  # MiB in use without a visible process that are reported; the driver itself takes less


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _output(*words: str) -> str:
    if not shutil.which(words[0]):
        return ""
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _processes() -> list[int]:
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def _command(process: int) -> str:
    words = _read(f"/proc/{process}/cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
    return words[:80] or _read(f"/proc/{process}/comm").decode(errors="replace").strip() or "?"


def _parent(process: int) -> int:
    # The command name, in parentheses, may contain blanks and parentheses.
    fields = _read(f"/proc/{process}/stat").rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def _job(process: int) -> dict[str, str]:
    """The variables of a process' environment that name its job and rank; empty for a process that is not a rank."""
    entries = [entry.partition(b"=") for entry in _read(f"/proc/{process}/environ").split(b"\0")]
    found = {name.decode(errors="replace"): value.decode(errors="replace") for name, _, value in entries}
    if not any(name in found for name in _RANK):
        return {}
    return {name: found[name] for name in (*_RANK, *_LOCAL_RANK, "MASTER_PORT", "CUDA_VISIBLE_DEVICES") if name in found}


def _jobs() -> list[dict]:
    """Ranks of jobs on this host, with their parent processes.

    Of a rank and its children only the topmost process is listed.
    """
    found = {process: job for process in _processes() if (job := _job(process))}
    return [{"process": process, "parents": _ancestors(process), "command": _command(process), "rank": next(job[name] for name in _RANK if name in job),
             "port": job.get("MASTER_PORT", ""), "local_rank": next((job[name] for name in _LOCAL_RANK if name in job), ""),
             "shown": job.get("CUDA_VISIBLE_DEVICES")}
            for process, job in found.items() if found.get(_parent(process)) != job]


def _ancestors(process: int) -> list[int]:
    above = []
    while process > 1 and len(above) < 64:
        process = _parent(process)
        above.append(process)
    return above


def _table(*query: str) -> list[list[str]]:
    """Rows of cells that nvidia-smi prints; empty if it is absent or rejects the query."""
    lines = _output("nvidia-smi", *query, "--format=csv,noheader").splitlines()
    return [[cell.strip() for cell in line.split(",")] for line in lines]


def _devices() -> tuple[list[str], list[dict], list[dict]]:
    """(device ids, compute processes on them, all devices of the host), from nvidia-smi.

    The first two are limited to CUDA_VISIBLE_DEVICES.
    """
    every = {row[0]: row[1] for row in _table("--query-gpu=index,uuid") if len(row) == 2}
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    own = list(every.values())
    if shown is not None:
        own = [every.get(name, name) for name in filter(None, (name.strip() for name in shown.split(",")))]
    numbers = {uuid: index for index, uuid in every.items()}
    used = [{"process": int(row[0]), "device": numbers.get(row[1], row[1]), "memory": row[2], "command": _command(int(row[0])), "parents": _ancestors(int(row[0]))}
            for row in _table("--query-compute-apps=pid,gpu_uuid,used_memory") if len(row) == 3 and row[0].isdigit() and row[1] in own]
    more = {row[0]: row[1:] for row in _table("--query-gpu=index,name,memory.used") if len(row) == 3}
    cards = [{"device": index, "uuid": uuid, "name": more.get(index, [""])[0], "memory": more.get(index, ["", ""])[1], "own": uuid in own}
             for index, uuid in every.items()]
    return own, used, cards


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "machine": platform.machine(), "libc": "-".join(platform.libc_ver())}
    for name in ("numpy", "jax", "jaxlib", "torch", "pyzmq", "tessera", "nvidia-nccl-cu12", "nvidia-nccl-cu13"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    if driver := _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").split("\n")[0].strip():
        found["NVIDIA driver"] = driver
    return found


def facts() -> dict:
    """What this process finds on its host, as plain values that ranks can exchange."""
    devices, used, cards = _devices()
    threads = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return {"host": platform.node(), "process": os.getpid(), "parents": _ancestors(os.getpid()), "jobs": _jobs(),
            "devices": devices, "used": used, "cards": cards,
            "versions": _versions(),
            "cores": cores(), "threads": int(threads) if threads.isdigit() and int(threads) else None,
            "port": os.environ.get("MASTER_PORT", ""), "local_rank": ranks.read().local_rank}


def troubles(found: list[dict]) -> tuple[list[str], list[str]]:
    """(problems, notes), one line each, from the facts of all ranks in rank order."""
    lines: list[str] = []
    notes: list[str] = []
    hosts: dict[str, list[dict]] = {}
    for each in found:
        hosts.setdefault(each["host"], []).append(each)
    for host, here in hosts.items():
        own = {each["process"] for each in here}
        own |= {process for each in here for process in each["parents"]}
        seen: set[int] = set()
        astray, ranks_there = _on_other_devices(host, here)
        lines += astray
        for used in (used for each in here for used in each["used"]):
            if used["process"] not in own | seen and not ({used["process"], *used.get("parents", ())} & ranks_there.keys() & own):
                seen.add(used["process"])
                lines.append(f"host {host}: process {used['process']} ({used['command']}) is on device {used['device']} with {used['memory']}; "
                             "end it, or leave the device out with --devices")
        for job in (job for each in here for job in each["jobs"]):
            is_own = job["process"] in own or {each["process"] for each in here} & set(job["parents"])
            if is_own or job["process"] in seen:
                continue
            seen.add(job["process"])
            port = f" with port {job['port']}" if job["port"] else ""
            what = f"host {host}: process {job['process']} ({job['command']}) is rank {job['rank']} of another job{port}"
            if job["port"] and any(each["port"] == job["port"] for each in here):
                lines.append(what + "; this job has the same port: end it, or give another --master_port")
            elif job["parents"][:1] == [1]:
                lines.append(what + " whose launcher is gone; end it")
            else:
                notes.append(what)
        lines += _threads(host, here)
        notes += _memory_in_use(host, here[0])
    return lines + _differences(hosts), notes + _differences_of_ranks(hosts)


def _on_other_devices(host: str, here: list[dict]) -> tuple[list[str], dict[int, dict]]:
    """(problems, ranks by process id): ranks that use a device other than their own.

    The usual cause is an allocation before the device was selected.
    """
    ranks_there = {job["process"]: job for each in here for job in each["jobs"]}
    uuids = {card["device"]: card["uuid"] for card in here[0].get("cards", [])}
    lines, seen = [], set()
    for used in (used for each in here for used in each["used"]):
        process = next((each for each in (used["process"], *used.get("parents", ())) if each in ranks_there), None)
        job = ranks_there.get(process)
        if job is None or not job.get("local_rank", "").isdigit() or (process, used["device"]) in seen:
            continue
        seen.add((process, used["device"]))
        shown = [name.strip() for name in job["shown"].split(",") if name.strip()] if job.get("shown") is not None else list(uuids)
        place = 0 if len(shown) == 1 else int(job["local_rank"])
        own = shown[place] if place < len(shown) else ""
        if uuids.get(used["device"], "") not in (own, uuids.get(own)):
            lines.append(f"host {host}: rank {job['rank']} (process {used['process']}) has {used['memory']} on device {used['device']}, and its own is "
                         f"{own or 'none'}; select the device before the first allocation, or start with --isolate_devices")
    return lines, ranks_there


def _memory_in_use(host: str, one: dict) -> list[str]:
    """Notes on devices with memory in use by processes that are not visible, such as those of another container."""
    listed = {used["device"] for used in one["used"]}
    return [f"host {host}: device {card['device']} has {card['memory']} in use by processes that this one does not see" for card in one.get("cards", ())
            if card["own"] and card["device"] not in listed and card["memory"].split()[:1] and card["memory"].split()[0].isdigit()
            and int(card["memory"].split()[0]) >= _HIDDEN]


def _differences_of_ranks(hosts: dict[str, list[dict]]) -> list[str]:
    """Notes on differences between ranks that may be intended: threads, number and kind of devices."""
    lines = []
    every = [(host, each) for host, here in hosts.items() for each in here]
    names = lambda each: ", ".join(dict.fromkeys(card["name"] for card in each.get("cards", ()) if card["own"]))
    for what, of in (("OMP_NUM_THREADS", lambda each: each["threads"]), ("the number of devices", lambda each: len(each["devices"])), ("the kind of devices", names)):
        first = of(every[0][1])
        other = next(((host, of(each)) for host, each in every if of(each) != first), None)
        if other:
            say = lambda value: "not set" if value in (None, "") else value
            lines.append(f"{what} is {say(first)} on host {every[0][0]} and {say(other[1])} on host {other[0]}")
    return lines


def _threads(host: str, here: list[dict]) -> list[str]:
    count = here[0]["cores"]
    wanted = sum(each["threads"] or count for each in here)
    if wanted <= max(count, len(here)):
        return []
    unset = sum(each["threads"] is None for each in here)
    what = f"OMP_NUM_THREADS is not set for {unset} of them" if unset else f"OMP_NUM_THREADS is {here[0]['threads']}"
    return [f"host {host}: {len(here)} process{'es' * (len(here) > 1)} start {wanted} threads on {count} core{'s' * (count > 1)}: {what}; "
            f"give each at most {max(1, count // len(here))}"]


def _differences(hosts: dict[str, list[dict]]) -> list[str]:
    lines = []
    every = [(host, each["versions"]) for host, here in hosts.items() for each in here]
    for name in sorted({name for _, versions in every for name in versions}):
        first_host, first = every[0][0], every[0][1].get(name, "not installed")
        for host, versions in every[1:]:
            if versions.get(name, "not installed") != first:
                lines.append(f"{name} is {first} on host {first_host} and {versions.get(name, 'not there')} on host {host}; install one version")
                break
    return lines


def main(arguments=None) -> int:
    if arguments if arguments is not None else sys.argv[1:]:
        print(__doc__.strip())
        return 0 if (arguments or sys.argv[1:])[0] in ("-h", "--help") else 1
    try:
        me = ranks.read()
        found: list = [facts()]
        if me.size > 1:
            distributed.init_process_group()
            found = [None] * me.size
            distributed.all_gather_object(found, facts())
            distributed.destroy_process_group()
        if me.rank:
            return 0  # rank 0 reports, and its exit code is that of the job
        lines, notes = troubles(found)
    except Error as error:
        print(f"tessera: error: {error}", file=sys.stderr)
        return 1
    for line in [*lines, *(f"note: {note}" for note in notes)]:
        print(f"preflight: {line}")
    hosts = len({each["host"] for each in found})
    if not lines:
        print(f"preflight: {len(found)} process{'es' * (len(found) > 1)} on {hosts} host{'s' * (hosts > 1)}: no trouble found")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
