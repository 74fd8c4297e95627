# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Source locations of the user's code, and diagnostics that begin with them."""

from __future__ import annotations

import ast
import contextlib
import difflib
import dis
import functools
import itertools
import linecache
import os
import re
import sys
import sysconfig
import threading
import warnings

from . import errors
from .ir import Location

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
# The standard library and installed packages: neither user code nor this package.
_LIBRARIES = tuple({os.path.abspath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_known: dict[tuple, Location] = {}  # by code object and instruction
_standing = threading.local()  # overrides of standing_at, innermost last


@contextlib.contextmanager
def standing_at(place: Location | None, what: str | None = None):
    """Context manager: operations and errors inside get location `place`; None keeps the running line.

    `what` is the operation's name in diagnostics.
    """
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
    """The name given by the innermost `standing_at`; None if diagnostics use the operation's own name."""
    return next(iter(_standing.__dict__.get("names", [])[-1:]), None)


def location() -> Location | None:
    """The location of the innermost frame outside this package; None if there is none."""
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
    """Whether a file belongs to this package, whose frames are left out of locations."""
    return file.startswith(_PACKAGE)


def is_of_library(file: str) -> bool:
    """Whether it is a file of Python's library or of an installed package."""
    return file.startswith((*_LIBRARIES, "<frozen")) or any(f"{os.sep}{folder}{os.sep}" in file for folder in ("site-packages", "dist-packages"))


def running_call() -> tuple[str | None, Location | None]:
    """What the innermost line outside of this and other packages calls, such as `np.sin`, and where; None for what is not known."""
    frame = sys._getframe(1)
    while frame is not None and (is_of_package(frame.f_code.co_filename) or is_of_library(frame.f_code.co_filename)):
        frame = frame.f_back
    return (None, None) if frame is None else _call_at(frame.f_code, frame.f_lasti, frame.f_lineno)


def failed_call(error: Exception) -> tuple[str | None, Location | None]:
    """As running_call, of the call from which an error came."""
    trace, found = error.__traceback__, (None, None)
    while trace is not None:
        code = trace.tb_frame.f_code
        if not is_of_package(code.co_filename) and not is_of_library(code.co_filename):
            found = _call_at(code, trace.tb_lasti, trace.tb_lineno)
        trace = trace.tb_next
    return found


def _call_at(code, instruction, line):
    file, none = code.co_filename, (None, None, None, None)
    positions = code.co_positions() if hasattr(code, "co_positions") else ()  # Python 3.11 on
    first, last, start, end = next(itertools.islice(positions, instruction // 2, None), none)
    if None in (first, last, start, end):
        return None, Location(file, line)
    lines = [linecache.getline(file, n).encode() for n in range(first, last + 1)]  # positions count bytes
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    try:
        call = ast.parse(b"".join(lines).decode(), mode="eval").body
    except (SyntaxError, ValueError):
        call = None
    named = isinstance(call, ast.Call) and isinstance(call.func, (ast.Attribute, ast.Name))
    return ast.unparse(call.func) if named else None, Location(file, first, start + 1)


def of_function(function) -> Location | None:
    """The location of a function's definition; None for a function without Python code."""
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    return Location(code.co_filename, code.co_firstlineno) if code else None


def refuse(kind: type[errors.Error], message: str, at: Location | None = None) -> errors.Error:
    """Makes, and does not raise, an exception with the text `file:line:column: error: message`.

    The location is `at`, by default the user's line.
    """
    at = at or location()
    return kind(f"{at.file}:{at.line}:{at.column}: error: {message}" if at else f"error: {message}")


def did_you_mean(name: str, known, ask: str = "did you mean") -> str:
    """The end of a message about an unknown name; empty if none of `known` is similar."""
    found = difflib.get_close_matches(name, sorted(known), 1)
    return f"; {ask} '{found[0]}'?" if found else ""


def misspelt(module: str, known):
    """The `__getattr__` of a module with the public names `known`, whose errors name the most similar one."""
    def missing(name):
        raise AttributeError(f"module '{module}' has no attribute '{name}'" + ("" if name.startswith("_") else did_you_mean(name, known)))
    return missing


def nearest(name: str, known: list[str], otherwise: str) -> str:
    """The end of a message about an unknown name: the most similar of `known`, or `otherwise` and all of them."""
    found = difflib.get_close_matches(name, known, 1)
    return f"did you mean '{found[0]}'?" if found else f"{otherwise} {', '.join(known)}"


def warn(message: str, at: Location | None = None) -> None:
    """Issues a TesseraWarning at the user's line."""
    at = at or location()
    if at is None:
        warnings.warn(message, errors.TesseraWarning, stacklevel=2)
    else:
        warnings.warn_explicit(message, errors.TesseraWarning, at.file, at.line, registry=globals().setdefault("__warningregistry__", {}))


def entry(function):
    """Decorator of public functions: raises internal failures as InternalError with the user's line.

    Such failures are assertions, KeyErrors, ... of this package. Errors raised on purpose, and errors of user
    functions, pass unchanged.
    """
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
    """Context manager around calls of a library: its exceptions are not internal errors and pass `entry` unchanged."""
    try:
        yield
    except Exception as error:
        _note(error, "_library", name)
        raise


def _note(error, name, value):
    with contextlib.suppress(AttributeError, TypeError):  # exceptions written in C may take no attributes
        setattr(error, name, value)


def _frames(error):
    """(file, line, code object, last instruction) of each frame, outermost first, without those of libraries."""
    trace, found = error.__traceback__, []
    while trace is not None:
        code = trace.tb_frame.f_code
        file = code.co_filename
        if is_of_package(file) or not is_of_library(file):
            found.append((file, trace.tb_lineno, code, trace.tb_lasti))
        trace = trace.tb_next
    return found


def _is_fault(error: Exception) -> bool:
    """Whether the error is a bug in this package: not raised on purpose, and not by a user function or a library."""
    if isinstance(error, (Warning, OSError, MemoryError, ImportError, NotImplementedError)) or hasattr(error, "_library"):
        return False
    frames = _frames(error)
    if not frames or not frames[-1][0].startswith(_PACKAGE):
        return False
    if isinstance(error, TypeError) and re.match(r"([\w.<>]+\(\)|function) (missing|takes|got) ", str(error)):
        return False  # a call with the wrong arguments
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
                                        f"(tessera/{file[len(_PACKAGE):]}:{line}); this is a bug in Tessera: please report it with the program", at)
