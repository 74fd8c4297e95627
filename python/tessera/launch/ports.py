# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Host names and ports, checked before anything starts."""

from __future__ import annotations

import ipaddress
import os
import socket

from ..errors import Error


def resolve(name: str, host: str, port: int = 0):
    """The (address family, socket address) of a host. Raises Error, with the option `name`, if it does not resolve."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a host name"
        raise Error(f"{name} is '{host}', which does not resolve ({reason}); name a host of this network or its address") from None
    return found[0][0], found[0][4]


def is_loopback(host: str, name: str = "--master_addr") -> bool:
    """Whether a host name resolves to a loopback address.

    Raises Error, with the option `name`, if it does not resolve.
    """
    return ipaddress.ip_address(resolve(name, host)[1][0].partition("%")[0]).is_loopback


def check_free(name: str, port: int, host: str) -> None:
    """Raise Error if the port is not free, with the process that listens at it if it is known."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            owner = owner_of(port)
            raise Error(f"cannot listen at {name} {port} on host {socket.gethostname()}: {error.strerror.lower()}"
                        + (f", by process {owner}" if owner else "") + f"; end that process, or name another port with {name}") from None


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def owner_of(port: int) -> str:
    """`PID (command)` of the process that listens at a port of this host; empty if /proc does not show it."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table, encoding="ascii") as file:
                rows = [line.split() for line in file.readlines()[1:]]
        except OSError:
            continue
        inodes |= {f"socket:[{row[9]}]" for row in rows if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port}
    for process in filter(str.isdigit, os.listdir("/proc")) if inodes else ():
        try:
            folder = f"/proc/{process}/fd"
            if any(os.readlink(os.path.join(folder, fd)) in inodes for fd in os.listdir(folder)):
                with open(f"/proc/{process}/cmdline", "rb") as file:
                    words = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
                return f"{process} ({words[:80]})"
        except OSError:
            continue
    return ""
