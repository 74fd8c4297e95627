# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations, and whole imported modules, outside of `jit`: compiled and run at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from . import tree
from .arguments import Arguments
from .record import Recorded
from .source import entry
from .trace import current

_MOST = 4096  # programs that are kept
_programs: dict[Any, Recorded] = {}
_lock = threading.RLock()


@entry
def run_eagerly(function: Callable, args, kwargs):
    """`function(trace, ...)` on tensors with values: a program of its own, made once for each kind of operands."""
    def record(*args, **kwargs):
        return function(current(), *args, **kwargs)
    record.__name__ = function.__name__
    arguments = Arguments(record, args, kwargs, tree.is_array, ())
    key = function, arguments.key()
    with _lock:
        if key not in _programs:
            if len(_programs) > _MOST:
                _programs.clear()
            _programs[key] = Recorded(record, arguments, feeds=False, eager=True)
        found = _programs[key]
    return found.run(arguments)


def run_whole(programs: dict, function: Callable, args, kwargs):
    """`function(...)` as one program, which `programs` keeps. Its errors name the lines at which it was recorded. Indices that it computes
    are results, too, so that those outside of their axes raise OutOfRangeError as they do one operation at a time."""
    checks: list = []

    def record(*args, **kwargs):
        current().watched = watched = []
        result = function(*args, **kwargs)
        checks.extend(check for _, check in watched)
        return result, [indices for indices, _ in watched]
    record.__name__ = function.__name__
    arguments = Arguments(function, args, kwargs, tree.is_array)
    key = arguments.key()
    with _lock:
        if key not in programs:
            programs[key] = Recorded(record, arguments, feeds=False), checks
        found, checks = programs[key]
    result, computed = found.run(arguments)
    for indices, check in zip(computed, checks):
        check(indices.numpy())
    return result
