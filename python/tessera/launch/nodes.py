# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the launchers of several nodes find each other, before anything starts."""

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
    """The job's secret: of --token_file, else of TESSERA_JOB_TOKEN_FILE or TESSERA_JOB_TOKEN; empty without one."""
    name = "--token_file"
    if path is None:
        if "TESSERA_JOB_TOKEN" in environ:
            found = environ["TESSERA_JOB_TOKEN"].strip().encode()
            if len(found) < 16:
                raise Error(f"TESSERA_JOB_TOKEN has {len(found)} bytes; a token has at least 16, as of: openssl rand -hex 32")
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
        raise Error(f"{name} '{path}' holds {len(found)} bytes; a token has at least 16, as of: openssl rand -hex 32")
    if mode & 0o004:
        raise Error(f"{name} '{path}' can be read by all users; chmod 600 '{path}'")
    return found


def check_token(secret: bytes, address: str, name: str) -> None:
    if not secret and not ports.is_loopback(address, name):
        raise Error(f"{name} is '{address}', which other hosts reach, and there is no job token; give all nodes the same --token_file or "
                    "TESSERA_JOB_TOKEN, as of: openssl rand -hex 32")


def listen(address: str, port: int, name: str) -> socket.socket:
    """Where node 0's launcher waits for the others."""
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
            raise Error(f"{name} is '{address}', no address of host {socket.gethostname()}; node 0 runs where --master_addr is, or listens at "
                        "--bind") from None
        owner = ports.owner_of(port)
        raise Error(f"--control_port {port} cannot be listened at on host {socket.gethostname()}: {error.strerror.lower()}"
                    + (f", by process {owner}" if owner else "") + "; end that process or name another with --control_port, on all nodes"
                    ) from None


def connect(address: str, port: int, secret: bytes, hello: dict, seconds: float, poll: Callable[[], None],
            waits_for_name: bool = False) -> link.Connection:
    """The connection to node 0's launcher, which may start later than this one."""
    deadline, reason = time.monotonic() + seconds, "no attempt was made"
    while time.monotonic() < deadline:
        poll()
        try:
            family, place = ports.resolve("--master_addr", address, port)
            with_timeout = socket.socket(family, socket.SOCK_STREAM)
            with_timeout.settimeout(min(2.0, max(0.1, deadline - time.monotonic())))
            with_timeout.connect(place)
            return link.greet(with_timeout, secret, hello, link.Greeting.SECONDS)
        except link.Foreign as error:
            reason = str(error)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
        except Error as error:
            if "does not resolve" not in str(error):
                raise Error(f"node 0 at {shown(address, port)}: {error}") from None
            if not waits_for_name:
                raise
            reason = str(error)
        time.sleep(_RETRY)
    raise Error(f"node {hello['node']} (host {hello['host']}) waited {seconds:g} s for node 0 at {shown(address, port)}: {reason}; start node 0 "
                "there, or raise --timeout")


def shown(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
