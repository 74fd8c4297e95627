#!/usr/bin/env python3
"""Compares the includes of the sources with the tables of rooms in docs/architecture.md.

    check_rooms.py SOURCE

A room may include the rooms that its row names and, transitively, theirs. One of the first table may include LLVM and
MLIR only if its row names MLIR. Prints one line per violation, and fails.
"""

import re
import sys
from pathlib import Path

DOCUMENT = Path("docs", "architecture.md")
ROOMS, RUNTIME, GPU = "## The rooms", "### The rooms of the runtime", "### The rooms of the GPU compiler"
ROW = re.compile(r"^\| `([\w/-]+)` \|.*\| ([^|]*) \|$")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
SUFFIXES = (".h", ".cpp", ".cu")
MLIR = "MLIR"


def fail(message):
    sys.exit(f"{DOCUMENT}: {message}")


def read_table(text, heading):
    """By folder, the names in the last column of its row, in the order of the table."""
    if f"\n{heading}\n" not in text:
        fail(f"no section '{heading}'")
    section = re.split(r"\n##+ ", text.split(f"\n{heading}\n", 1)[1], maxsplit=1)[0]
    rows = dict(match.groups() for match in map(ROW.match, section.splitlines()) if match)
    if not rows:
        fail(f"no table in section '{heading}'")
    return {folder: re.findall(r"`([\w/]+)`|\b(MLIR)\b", named) for folder, named in rows.items()}


def close(table, name_of, outside=()):
    """By folder, what it may include: folders, and MLIR. Rows name only rows above them, so there are no cycles.

    name_of: the name of a folder in the rows of others; outside: names that are checked by another table.
    """
    allowed, folders = {}, {}
    for folder, named in table.items():
        allowed[folder] = {folder} | {MLIR for _, word in named if word}
        for other in (name for name, _ in named if name and name not in outside):
            if other not in folders:
                fail(f"'{folder}' includes '{other}', which is not a row above it")
            allowed[folder] |= allowed[folders[other]] - {MLIR}
        folders[name_of(folder)] = folder
    return allowed


def inside(below, table):
    """The rows of a table whose names are folders of `below`, by path; what is outside of it is not restricted."""
    return {below + room: {MLIR} | {below + other for other in allowed} for room, allowed in table.items()}


def folder_of(path, allowed):
    """The row of a path, which is the deepest of its folders; None for other paths."""
    return next((str(parent) for parent in path.parents if str(parent) in allowed), None)


def targets_of(path, source):
    """The includes of a file as pairs: as written, and the path relative to the source; LLVM's is MLIR."""
    for name in INCLUDE.findall(path.read_text()):
        if name.startswith(("llvm/", "llvm-c/", "mlir/", "mlir-c/")):
            yield name, MLIR
        elif name.startswith("tessera/"):
            yield name, Path("lib", *Path(name).parts[1:])
        elif (included := (path.parent / name).resolve()).is_relative_to(source):
            yield name, in_lib(included.relative_to(source))


def in_lib(path):
    """Public headers are in the room of the folder of the same name in lib."""
    return Path("lib", *path.parts[2:]) if path.parts[:2] == ("include", "tessera") else path


def check(allowed, source, roots, unlisted):
    """The violations in the files of `roots`; `unlisted`: names of files that may be in no room."""
    for root in roots:
        for path in sorted((source / root).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            where = path.relative_to(source)
            room = folder_of(in_lib(where), allowed)
            if room is None:
                if path.name not in unlisted:
                    yield f"{where}: not in a room of {DOCUMENT}"
                continue
            for name, target in targets_of(path, source):
                other = target if target == MLIR else folder_of(target, allowed)
                if other and other not in allowed[room]:
                    yield f"{where}: '{room}' includes '{name}' of '{other}'"


def main():
    source = Path(sys.argv[1]).resolve()
    text = (source / DOCUMENT).read_text()
    rooms = close(read_table(text, ROOMS), lambda folder: folder.removeprefix("lib/").removeprefix("Dialect/"))
    runtime = inside("lib/Runtime/", close(read_table(text, RUNTIME), lambda folder: folder, outside=("lib/Sharding",)))
    gpu = inside("lib/Codegen/CUDA/", close(read_table(text, GPU), lambda folder: folder))
    stages = {path.name for path in (source / "lib/Codegen/CUDA").glob("*.*")}
    violations = [*check(rooms, source, ("lib", "include/tessera", "tools", "python/src"), unlisted=()),
                *check(runtime, source, ("lib/Runtime", "include/tessera/Runtime"), ("tessera_rt.h", "tessera_groups.h")),
                *check(gpu, source, ("lib/Codegen/CUDA",), stages)]
    print("\n".join(violations) if violations else f"{len(rooms) + len(runtime) + len(gpu)} rooms, no violation")
    return bool(violations)


if __name__ == "__main__":
    sys.exit(main())
