# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The job token, and how the launchers of several nodes connect before ranks start."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable

from ..errors import Error
from . import link, ports

_RETRY = 0.2


def token(path: str | None, environ=os.environ) -> bytes:
    """The job token from --token_file (`path`), TESSERA_JOB_TOKEN or TESSERA_JOB_TOKEN_FILE, in this order.

    Returns b"" if none is given. Raises Error if the token is shorter than 16 bytes or the file is readable by all
    users.
    """
    name = "--token_file"
    if path is None:
        if "TESSERA_JOB_TOKEN" in environ:
            found = environ["TESSERA_JOB_TOKEN"].strip().encode()
            if len(found) < 16:
                raise Error(f"TESSERA_JOB_TOKEN has {len(found)} bytes; a token has at least 16: use openssl rand -hex 32")
            return found
        name, path = "TESSERA_JOB_TOKEN_FILE", environ.get("TESSERA_JOB_TOKEN_FILE")
        if path is None:
            return b""
    try:
        with open(path, "rb") as file:
            found = file.read(4096).strip()
            mode = os.fstat(file.fileno()).st_mode
    except OSError as error:
        raise Error(f"{name} '{path}' cannot be read: {error.strerror}") from None
    if len(found) < 16:
        raise Error(f"{name} '{path}' holds {len(found)} bytes; a token has at least 16: use openssl rand -hex 32")
    if mode & 0o004:
        raise Error(f"{name} '{path}' is readable by all users; run chmod 600 '{path}'")
    return found


def check_token(secret: bytes, address: str, name: str) -> None:
    """Raise Error if `address` (of option `name`) is not on loopback and there is no job token."""
    if not secret and not ports.is_loopback(address, name):
        raise Error(f"{name} is '{address}', which other hosts can reach, and there is no job token; give all nodes the same --token_file "
                    "or TESSERA_JOB_TOKEN, from openssl rand -hex 32")


def listen(address: str, port: int, name: str) -> socket.socket:
    """The socket at which node 0's launcher accepts the others. name: the option that gave `address`. Raises Error."""
    family, place = ports.resolve(name, address, port)
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(place)
        sock.listen(1024)
        return sock
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise Error(f"{name} is '{address}', which is not an address of host {socket.gethostname()}; start node 0 on --master_addr, or "
                        "give it an address of its host with --bind") from None
        owner = ports.owner_of(port)
        raise Error(f"cannot listen at --control_port {port} on host {socket.gethostname()}: {error.strerror.lower()}"
                    + (f", by process {owner}" if owner else "") + "; end that process, or name another port with --control_port on all nodes"
                    ) from None


def connect(address: str, port: int, secret: bytes, hello: dict, seconds: float, poll: Callable[[], None],
            wait_for_name: bool = False) -> link.Connection:
    """Connect to node 0's launcher, which may start later; retry for `seconds`, calling `poll` before each attempt.

    wait_for_name: also retry while `address` does not resolve. Raises Error.
    """
    deadline, reason = time.monotonic() + seconds, "no attempt was made"
    while time.monotonic() < deadline:
        poll()
        try:
            family, place = ports.resolve("--master_addr", address, port)
            with_timeout = socket.socket(family, socket.SOCK_STREAM)
            with_timeout.settimeout(min(2.0, max(0.1, deadline - time.monotonic())))
            with_timeout.connect(place)
            return link.greet(with_timeout, secret, hello, link.Greeting.SECONDS)
        except link.LinkError as error:
            reason = str(error)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
        except Error as error:
            if "does not resolve" not in str(error):
                raise Error(f"node 0 at {endpoint(address, port)}: {error}") from None
            if not wait_for_name:
                raise
            reason = str(error)
        time.sleep(_RETRY)
    raise Error(f"node {hello['node']} (host {hello['host']}) waited {seconds:g} s for node 0 at {endpoint(address, port)}: {reason}; start node 0 "
                "there, or raise --timeout")


def endpoint(address: str, port: int) -> str:
    """ADDRESS:PORT, with brackets around IPv6 addresses."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
