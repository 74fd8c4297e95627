# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The role of this process and the address of the scheduler, from environment variables."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping

from .. import ranks
from ..errors import Error

ROLES = ("scheduler", "server", "worker")
DEFAULT_PORT = 29600
_MOST = 1 << 16


@dataclasses.dataclass(frozen=True)
class Config:
    """A role and the address of the scheduler; for the scheduler, also the number of workers and servers at the start."""

    role: str
    host: str
    port: int
    workers: int = 0
    servers: int = 0


def _value(environ: Mapping[str, str], names: tuple[str, ...]) -> tuple[str, str] | None:
    found = [(name, environ[name]) for name in names if name in environ]
    for name, each in found[1:]:
        if each != found[0][1]:
            raise Error(f"{found[0][0]} is '{found[0][1]}' and {name} is '{each}'; unset the one that is not of this job")
    return found[0] if found else None


def _both(name: str) -> tuple[str, str]:
    return f"TESSERA_{name}", f"DMLC_{name}"


def count(name: str, text: str) -> int:
    """Parse the number of workers or servers in variable `name`. Raises Error."""
    if not text.isdecimal() or not 1 <= int(text) <= _MOST:
        raise Error(f"{name} is '{text}'; expected a whole number from 1 to {_MOST}")
    return int(text)


def role(environ: Mapping[str, str] = os.environ) -> str | None:
    """The value of TESSERA_ROLE or DMLC_ROLE. Returns None if neither is set. Raises Error if it is invalid."""
    found = _value(environ, _both("ROLE"))
    if found and found[1] not in ROLES:
        raise Error(f"{found[0]} is '{found[1]}'; expected one of {', '.join(ROLES)}")
    return found[1] if found else None


def read(environ: Mapping[str, str] = os.environ) -> Config:
    """The configuration of this process. Raises Error, naming the variable, if one is missing or invalid."""
    mine = role(environ)
    if mine is None:
        raise Error("neither TESSERA_ROLE nor DMLC_ROLE is set; a job with servers sets one in each process (scheduler, server or worker), as "
                    "python -m tessera.kvstore does; without servers, use the store 'dist_sync_device'")
    host, port = _value(environ, _both("PS_ROOT_URI")), _value(environ, _both("PS_ROOT_PORT"))
    numbers = {}
    for field, name in (("workers", "NUM_WORKER"), ("servers", "NUM_SERVER")):
        found = _value(environ, _both(name))
        if found:
            numbers[field] = count(*found)
        elif mine == "scheduler":
            raise Error(f"neither TESSERA_{name} nor DMLC_{name} is set; the scheduler needs the number of {field}")
    return Config(mine, ranks.address(*host) if host else "127.0.0.1", ranks.port(*port) if port else DEFAULT_PORT, **numbers)
