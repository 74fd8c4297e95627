#!/usr/bin/env python3
"""Compares the includes of lib/Runtime with the table of its rooms in docs/architecture.md.

A room may include the rooms that its row names and, transitively, theirs. Prints one line per violation, and fails.
"""

import re
import sys
from pathlib import Path

SECTION = "### The rooms of the runtime"
ROW = re.compile(r"^\| `([\w/]+)` \|.*\| ([^|]*) \|$")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def read_table(text):
    """By room, the rooms that its row names, in the order of the table."""
    section = text.split(SECTION, 1)[1].split("\n## ", 1)[0]
    rows = dict(match.groups() for match in map(ROW.match, section.splitlines()) if match)
    return {room: [name for name in re.findall(r"`([\w/]+)`", named) if name != "lib/Sharding"]
            for room, named in rows.items()}


def close(table):
    """By room, all rooms that it may include; rows name only rooms above them, so there are no cycles."""
    allowed = {}
    for room, named in table.items():
        for other in named:
            if other not in allowed:
                sys.exit(f"docs/architecture.md: '{room}' includes '{other}', which is not a row above it")
        allowed[room] = {room}.union(*(allowed[other] for other in named))
    return allowed


def room_of(path, table):
    """The room of a path relative to lib/Runtime or include/tessera/Runtime; None for other paths."""
    folders = [str(parent) for parent in path.parents]
    return next((folder for folder in folders if folder in table), None)


def main():
    source = Path(sys.argv[1]).resolve()
    table = read_table((source / "docs" / "architecture.md").read_text())
    allowed = close(table)
    offences = []
    for root in (source / "lib" / "Runtime", source / "include" / "tessera" / "Runtime"):
        for path in sorted(root.rglob("*")):
            if path.suffix not in (".h", ".cpp", ".cu"):
                continue
            where = path.relative_to(source)
            room = room_of(path.relative_to(root), table)
            if room is None:
                if path.name not in ("tessera_rt.h", "tessera_groups.h"):
                    offences.append(f"{where}: not in a room of docs/architecture.md")
                continue
            for name in INCLUDE.findall(path.read_text()):
                if name.startswith("tessera/Runtime/"):
                    target = room_of(Path(name).relative_to("tessera/Runtime"), table)
                elif name.startswith("tessera/"):
                    continue
                else:
                    included = (path.parent / name).resolve()
                    target = included.is_relative_to(root) and room_of(included.relative_to(root), table)
                if target and target not in allowed[room]:
                    offences.append(f"{where}: '{room}' includes '{name}' of '{target}'")
    print("\n".join(offences) if offences else f"{len(table)} rooms, no offence")
    return bool(offences)


if __name__ == "__main__":
    sys.exit(main())
