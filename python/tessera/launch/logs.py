# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The output of ranks: whole lines, prefixed with the rank; the last ones are kept for the message of a failure."""

from __future__ import annotations

import collections
import os
import re

KEPT_LINES = 10
LONGEST_LINE = 1 << 16  # bytes; longer lines are split
_ENDS = re.compile(rb"\r\n|\n|\r(?!\Z)")  # a carriage return at the end of the data may be the first half of \r\n


class Lines:
    """Splits a stream of bytes into lines. A carriage return ends a line too, as progress bars use it."""

    def __init__(self):
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes."""
        *lines, self._rest = _ENDS.split(self._rest + data)
        while len(self._rest) > LONGEST_LINE:
            lines.append(self._rest[:LONGEST_LINE])
            self._rest = self._rest[LONGEST_LINE:]
        return lines

    def end(self) -> list[bytes]:
        """The unfinished last line, if any."""
        rest, self._rest = self._rest.rstrip(b"\r"), b""
        return [rest] if rest else []


class Output:
    """The lines of one rank: standard output and standard error in the order of arrival. path: its log file, or None."""

    def __init__(self, rank: int, path: str | None = None):
        self._tag = b"[rank %d] " % rank
        self._last: collections.deque[bytes] = collections.deque(maxlen=KEPT_LINES)
        self._file = open(path, "wb", buffering=0) if path else None

    def write(self, descriptor: int | None, lines: list[bytes]) -> None:
        """Record lines, and write them to the log file and, unless None, to `descriptor`."""
        if not lines:
            return
        self._last.extend(lines)
        if self._file:
            write_all(self._file.fileno(), b"".join(line + b"\n" for line in lines))
        if descriptor is not None:
            write_all(descriptor, b"".join(self._tag + line + b"\n" for line in lines))

    def last(self) -> list[str]:
        """The last lines, shortened to 500 bytes each."""
        return [line[:500].decode(errors="replace") for line in self._last]

    def close(self) -> None:
        if self._file:
            self._file.close()


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all bytes to a descriptor, in as many calls as it takes. Raises OSError."""
    while data:
        data = data[os.write(descriptor, data):]


def log_path(folder: str, rank: int, restart: int) -> str:
    """The file of a rank's output, one for each restart."""
    return os.path.join(folder, f"rank-{rank}.log" if restart == 0 else f"rank-{rank}.restart-{restart}.log")
