# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hosts and their slots: the number of processes that each may run."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping

from ..errors import Error
from . import ports


def parse(text: str) -> dict[str, int]:
    """Slots by host of a list such as `a:2,b,[::1]:4`.

    The default is 1; slots of a repeated host add up. Raises Error.
    """
    hosts: dict[str, int] = {}
    for part in text.split(","):
        match = re.fullmatch(r"(\[[^\[\]]+\]|[^\s:\[\]]+)(?::([0-9]{1,7}))?", part)
        if not match or match[2] and int(match[2]) < 1:
            raise Error(f"--hosts is '{text}' and '{part}' is not a valid host; expected HOST or HOST:SLOTS, as in a:2,b:2")
        hosts[match[1]] = hosts.get(match[1], 0) + int(match[2] or 1)
    return hosts


def read(path: str) -> dict[str, int | None]:
    """Slots by host of a file with one host per line: `HOST`, `HOST slots=N` or `HOST:N`.

    The slots are None if the line does not give them. Raises Error if the file is invalid or has no host.
    """
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Error(f"--hostfile '{path}' cannot be read: {getattr(error, 'strerror', None) or error}") from None
    hosts: dict[str, int | None] = {}
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        match = re.fullmatch(r"(\[[^\[\]]+\]|[^\s:\[\]=]+)(?::([0-9]{1,7}))?", words[0])
        slots = match and match[2]
        for word in words[1:]:
            name, _, value = word.partition("=")
            if name == "slots":
                slots = value
            elif name not in ("max_slots", "max-slots"):
                match = None
        if not match or slots is not None and not re.fullmatch(r"0*[1-9][0-9]{0,6}", slots):
            raise Error(f"{path}:{number}: error: '{line.strip()}' is not a valid host; expected HOST or HOST slots=N, N at least 1")
        if match[1] in hosts:
            raise Error(f"{path}:{number}: error: duplicate host '{match[1]}'; write its slots in one line")
        hosts[match[1]] = None if slots is None else int(slots)
    if not hosts:
        raise Error(f"--hostfile '{path}' names no host")
    return hosts


def physical_cores() -> int:
    """The number of physical cores of this process; Open MPI's default for the slots of a host."""
    found = set()
    for cpu in os.sched_getaffinity(0):
        try:
            with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", encoding="ascii") as file:
                found.add(file.read())
        except OSError:
            found.add(cpu)
    return len(found)


def check_room(count: int, per_node: int | None, hosts: Mapping[str, int | None], option: str, oversubscribes: bool) -> None:
    """Check that the hosts have slots for `count` processes. Raises Error.

    per_node: processes per host, or None; option: the source of `hosts`, for messages; slots of None are unlimited.
    """
    if per_node and count % per_node:
        raise Error(f"--np is {count} and --npernode is {per_node}; --np must be a multiple of --npernode")
    if per_node and count // per_node > len(hosts):
        raise Error(f"--np is {count} and --npernode is {per_node}, which takes {count // per_node} hosts, and there "
                    + (f"are {len(hosts)}" if len(hosts) != 1 else "is 1") + "; add hosts or raise --npernode")
    if oversubscribes or None in hosts.values():
        return
    if count > sum(hosts.values()):
        raise Error(f"--np is {count} and {option} has {sum(hosts.values())} slots; add hosts or slots, or allow more processes than slots "
                    "with --oversubscribe")
    for host, slots in hosts.items():
        if per_node and per_node > slots:
            raise Error(f"--npernode is {per_node} and host '{host}' has {slots} slots; add slots, or allow more with --oversubscribe")


def is_here(host: str, option: str) -> bool:
    """Whether a host name resolves to an address of this machine. Raises Error if it does not resolve."""
    family, place = ports.resolve(option, host.strip("[]"))
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(place)
            return True
        except OSError:
            return False


def check_reachable(hosts, option: str, environ: Mapping[str, str] = os.environ, seconds: int = 10) -> None:
    """Check that ssh logs in to the other hosts, as mpirun will do. Raises Error with the hosts where it fails."""
    others = [host for host in hosts if not is_here(host, option)]
    if not others or "OMPI_MCA_plm_rsh_agent" in environ or "SLURM_JOB_ID" in environ:
        return
    if not shutil.which("ssh"):
        raise Error(f"{option} names '{others[0]}', and mpirun reaches other hosts by ssh, which is not on PATH; install it")
    tries = {host: subprocess.Popen(["ssh", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={seconds}", host.strip("[]"), "true"],
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for host in others}
    failed = []
    for host, process in tries.items():
        try:
            _, output = process.communicate(timeout=seconds * 2)
        except subprocess.TimeoutExpired:
            process.kill()
            output = process.communicate()[1] + b"no answer"
        if process.returncode:
            last = output.decode(errors="replace").strip().splitlines()[-1:] or ["no reason given"]
            failed.append(f"'{host}' ({last})".replace("['", "").replace("']", ""))
    if failed:
        raise Error(f"{option}: cannot log in by ssh to {', '.join(failed)}; mpirun needs ssh without a password")
