# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The user's lines: where operations are made, and errors that begin with them."""

from __future__ import annotations

import contextlib
import difflib
import dis
import functools
import os
import re
import sys
import sysconfig
import threading
import warnings

from . import errors
from .ir import Location

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
# Python's own modules and what is installed beside it: neither the user's nor ours.
_LIBRARIES = tuple({os.path.abspath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_known: dict[tuple, Location] = {}


_standing = threading.local()


@contextlib.contextmanager
def standing_at(place: Location | None, what: str | None = None):
    """What is made inside stands at `place`, not at the line of Python that runs; None changes nothing. `what` is the name that the
    user knows it by."""
    places, names = _standing.__dict__.setdefault("places", []), _standing.__dict__.setdefault("names", [])
    names.append(what)
    if place is not None:
        places.append(place)
    try:
        yield
    except Exception as error:
        if place is not None and not hasattr(error, "_place"):
            _note(error, "_place", place)
        raise
    finally:
        names.pop()
        if place is not None:
            places.pop()


def standing_name() -> str | None:
    """The name that the user knows what is made by; None where that is the operation's own."""
    return next(iter(_standing.__dict__.get("names", [])[-1:]), None)


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


def is_of_package(file: str) -> bool:
    return file.startswith(_PACKAGE)


def of_function(function) -> Location | None:
    """Where a function is written."""
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    return Location(code.co_filename, code.co_firstlineno) if code else None


def refuse(kind: type[errors.Error], message: str, at: Location | None = None) -> errors.Error:
    """An exception whose text is `file:line:column: error: message` with the user's line; raise it."""
    at = at or location()
    return kind(f"{at.file}:{at.line}:{at.column}: error: {message}" if at else f"error: {message}")


def nearest(name: str, known: list[str], otherwise: str) -> str:
    """The end of a message about a name that is not `known`: the most similar one, or all of them behind `otherwise`."""
    found = difflib.get_close_matches(name, known, 1)
    return f"did you mean '{found[0]}'?" if found else f"{otherwise} {', '.join(known)}"


def warn(message: str, at: Location | None = None) -> None:
    """A TesseraWarning that stands at the user's line."""
    at = at or location()
    if at is None:
        warnings.warn(message, errors.TesseraWarning, stacklevel=2)
    else:
        warnings.warn_explicit(message, errors.TesseraWarning, at.file, at.line, registry=globals().setdefault("__warningregistry__", {}))


def entry(function):
    """Makes a public function a boundary: what goes wrong in this package itself (an assertion, a KeyError, ...) leaves it as an
    InternalError with the user's line. Errors that are raised on purpose pass, so do those of functions that the user gave."""
    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except errors.Error:
            raise
        except Exception as error:
            if not _is_fault(error):
                raise
            raise _fault(error) from error
    return call


@contextlib.contextmanager
def of_library(name: str):
    """Around calls of a library that refuses in its own words: what it raises passes every boundary."""
    try:
        yield
    except Exception as error:
        _note(error, "_library", name)
        raise


def _note(error, name, value):
    with contextlib.suppress(AttributeError, TypeError):  # exceptions written in C may take no attributes
        setattr(error, name, value)


def _frames(error):
    """(file, line, frame's code, last instruction) from the outermost frame to where it was raised, without the libraries'."""
    trace, found = error.__traceback__, []
    while trace is not None:
        code = trace.tb_frame.f_code
        file = code.co_filename
        if file.startswith(_PACKAGE) or not (file.startswith(_LIBRARIES) or file.startswith("<frozen")):
            found.append((file, trace.tb_lineno, code, trace.tb_lasti))
        trace = trace.tb_next
    return found


def _is_fault(error: Exception) -> bool:
    """Whether it happened to this package, in place of being raised by it on purpose or by the user's function."""
    if isinstance(error, (Warning, OSError, MemoryError, ImportError, NotImplementedError)) or hasattr(error, "_library"):
        return False
    frames = _frames(error)
    if not frames or not frames[-1][0].startswith(_PACKAGE):
        return False
    if isinstance(error, TypeError) and re.match(r"([\w.<>]+\(\)|function) (missing|takes|got) ", str(error)):
        return False  # the call of a function with other arguments than it takes
    _, _, code, at = frames[-1]
    raised = error.__traceback__ is not None and dis.opname[code.co_code[at]] == "RAISE_VARARGS"
    return isinstance(error, AssertionError) or not raised


def _fault(error: Exception) -> errors.InternalError:
    frames = _frames(error)
    file, line, *_ = frames[-1]
    users = [Location(f, n, 1) for f, n, *_ in frames if not f.startswith(_PACKAGE)]
    at = getattr(error, "_place", None) or (users[-1] if users else location())
    text = " ".join(str(error).split())[:300]
    return refuse(errors.InternalError, f"internal error: {type(error).__name__}{': ' + text if text else ''} "
                                        f"(tessera/{file[len(_PACKAGE):]}:{line}); this is a fault of Tessera: please report it with the program", at)
