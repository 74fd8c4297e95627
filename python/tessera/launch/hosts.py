# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hosts and how many processes each has room for."""

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
    """`a:2,b,[::1]:4`: the slots of each host, 1 where it has no number; a host that is named again has those, too."""
    hosts: dict[str, int] = {}
    for part in text.split(","):
        match = re.fullmatch(r"(\[[^\[\]]+\]|[^\s:\[\]]+)(?::([0-9]{1,7}))?", part)
        if not match or match[2] and int(match[2]) < 1:
            raise Error(f"--hosts is '{text}' and '{part}' is not a host; it is HOST or HOST:SLOTS, as a:2,b:2")
        hosts[match[1]] = hosts.get(match[1], 0) + int(match[2] or 1)
    return hosts


def read(path: str) -> dict[str, int | None]:
    """A host a line, `HOST`, `HOST slots=N` or `HOST:N`; None where the file does not give the slots."""
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
            raise Error(f"{path}:{number}: error: '{line.strip()}' is not a host; a line is HOST or HOST slots=N, N at least 1")
        if match[1] in hosts:
            raise Error(f"{path}:{number}: error: host '{match[1]}' stands twice; write its slots in one line")
        hosts[match[1]] = None if slots is None else int(slots)
    if not hosts:
        raise Error(f"--hostfile '{path}' names no host")
    return hosts


def physical_cores() -> int:
    """Of this process: what Open MPI takes for the slots of a host that nobody gives any."""
    found = set()
    for cpu in os.sched_getaffinity(0):
        try:
            with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", encoding="ascii") as file:
                found.add(file.read())
        except OSError:
            found.add(cpu)
    return len(found)


def check_room(count: int, per_node: int | None, hosts: Mapping[str, int | None], option: str, oversubscribes: bool) -> None:
    """The rules between the number of processes and the hosts."""
    if per_node and count % per_node:
        raise Error(f"--np is {count} and --npernode is {per_node}; each host has {per_node} processes, so --np is a multiple of it")
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
    """Whether a host's address is of this machine. Error where it has none."""
    family, place = ports.resolve(option, host.strip("[]"))
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(place)
            return True
        except OSError:
            return False


def check_reachable(hosts, option: str, environ: Mapping[str, str] = os.environ, seconds: int = 10) -> None:
    """Logs in to the hosts that are not this one as mpirun will; Error names those where that fails."""
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
            _, said = process.communicate(timeout=seconds * 2)
        except subprocess.TimeoutExpired:
            process.kill()
            said = process.communicate()[1] + b"no answer"
        if process.returncode:
            failed.append(f"'{host}' ({said.decode(errors='replace').strip().splitlines()[-1:] or ['no reason given']})".replace("['", "").replace("']", ""))
    if failed:
        raise Error(f"{option}: cannot log in by ssh to {', '.join(failed)}; mpirun needs ssh without a password")
