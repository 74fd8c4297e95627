# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NVIDIA's libraries that pip has installed."""

from __future__ import annotations

import functools
import os
import pathlib
import site
import sys

VARIABLE = "TESSERA_LIBRARY_PATH"


def folders() -> list[str]:
    """Folders of NVIDIA's libraries beside this Python's packages (nvidia/cu13/lib, nvidia/nccl/lib, ...), sorted."""
    places = {*filter(None, sys.path), *site.getsitepackages(), site.getusersitepackages()}
    found = {folder for place in places for folder in pathlib.Path(place).glob("nvidia/*/lib") if any(folder.glob("lib*.so*"))}
    return sorted(map(str, found))


@functools.cache
def offer() -> None:
    """Lets the runtime, the compiler and child processes find them: adds them to TESSERA_LIBRARY_PATH, behind those that are there.

    Called before a program is compiled for target cuda or runs on GPUs.
    """
    listed = [folder for folder in os.environ.get(VARIABLE, "").split(os.pathsep) if folder]
    listed += [folder for folder in folders() if folder not in listed]
    if listed:
        os.environ[VARIABLE] = os.pathsep.join(listed)
