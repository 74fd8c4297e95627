# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The user's lines: where operations are made, and errors that begin with them."""

from __future__ import annotations

import contextlib
import os
import sys
import threading

from . import errors
from .ir import Location

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_known: dict[tuple, Location] = {}


_standing = threading.local()


@contextlib.contextmanager
def standing_at(place: Location | None):
    """What is made inside stands at `place`, not at the line of Python that runs; None changes nothing."""
    places = _standing.__dict__.setdefault("places", [])
    if place is not None:
        places.append(place)
    try:
        yield
    finally:
        if place is not None:
            places.pop()


def location() -> Location | None:
    """Where the innermost frame outside of this package stands; None where there is none."""
    if getattr(_standing, "places", None):
        return _standing.places[-1]
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return None
    key = (frame.f_code, frame.f_lasti)
    found = _known.get(key)
    if found is None:
        column = 1
        if hasattr(frame.f_code, "co_positions"):  # Python 3.11 on
            for i, (_, _, start, _) in enumerate(frame.f_code.co_positions()):
                if i == frame.f_lasti // 2:
                    column = (start or 0) + 1
                    break
        found = _known[key] = Location(frame.f_code.co_filename, frame.f_lineno, column)
    return found


def of_function(function) -> Location | None:
    """Where a function is written."""
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    return Location(code.co_filename, code.co_firstlineno) if code else None


def refuse(kind: type[errors.Error], message: str, at: Location | None = None) -> errors.Error:
    """An exception whose text is `file:line:column: error: message` with the user's line; raise it."""
    at = at or location()
    return kind(f"{at.file}:{at.line}:{at.column}: error: {message}" if at else f"error: {message}")
