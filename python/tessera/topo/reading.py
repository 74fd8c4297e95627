# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Read a topology file of any format, or this machine."""

from __future__ import annotations

import re
import shutil
import subprocess

from ..errors import Error
from .compiler import read_compiler_topology
from .hwloc import read_hwloc
from .linux import read_linux
from .model import Machine, TopologyFileError
from .nccl import read_nccl
from .smi import read_smi
from .xml_text import parse

SOURCES = ("auto", "nvidia-smi", "hwloc", "sys")
_MOST_BYTES = 64 << 20


def read_text(text: str, path: str) -> Machine:
    """The machine in a text of any of the four formats, which its beginning identifies. Raises TopologyFileError."""
    begins = text.lstrip("\ufeff \t\r\n")[:1]
    if not begins:
        raise TopologyFileError(path, 1, 1, "the file is empty; expected hwloc's or NCCL's XML, JSON, or the output of nvidia-smi topo -m")
    if begins == "<":
        root = parse(text, path)
        if root.tag == "topology":
            return read_hwloc(root)
        if root.tag == "system":
            return read_nccl(root)
        root.fail(f"the root is <{root.tag}>; expected <topology> (hwloc) or <system> (NCCL)")
    if begins in "{[":
        return read_compiler_topology(text, path)
    return read_smi(text, path)


def read(path: str) -> Machine:
    """The machine in a file. Raises Error if it cannot be opened, and TopologyFileError if it is invalid."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise Error(f"{path}: {error.strerror}") from None
    if len(data) > _MOST_BYTES:
        raise Error(f"{path}: the file is larger than {_MOST_BYTES >> 20} MiB")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[:error.start]
        raise TopologyFileError(path, before.count(b"\n") + 1, error.start - before.rfind(b"\n"), "a byte that is not UTF-8 text") from None
    return read_text(text, path)


def _output(*command: str) -> str | None:
    if not shutil.which(command[0]):
        return None
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def this_machine(source: str = "auto") -> Machine:
    """This machine: from nvidia-smi if it finds GPUs, else from lstopo, else from /sys.

    Raises Error if `source` is unavailable.
    """
    if source in ("auto", "nvidia-smi"):
        text = _output("nvidia-smi", "topo", "-m")
        if text and re.search(r"^\s*(\x1b\[[0-9;]*m)*\s*GPU0", text, re.M):
            return read_smi(text, "nvidia-smi topo -m")
        if source == "nvidia-smi":
            raise Error("nvidia-smi topo -m finds no GPUs here; give a file, or --from hwloc")
    if source in ("auto", "hwloc"):
        for program in ("lstopo-no-graphics", "lstopo"):
            if text := _output(program, "--of", "xml"):
                return read_hwloc(parse(text, program))
        if source == "hwloc":
            raise Error("lstopo is not installed (Debian: hwloc-nox)")
    return read_linux()
