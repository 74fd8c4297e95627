# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations and imported modules outside `jit`: compiled and run immediately."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from . import tree
from .arguments import Arguments
from .record import Recorded
from .source import entry
from .trace import current

_MOST_PROGRAMS = 4096  # cached programs
_programs: dict[Any, Recorded] = {}
_lock = threading.RLock()


@entry
def run_eagerly(function: Callable, args, kwargs):
    """Runs `function(trace, ...)` on tensors with values as one program, cached by structure, shapes and types."""
    def record(*args, **kwargs):
        return function(current(), *args, **kwargs)
    record.__name__ = function.__name__
    arguments = Arguments(record, args, kwargs, tree.is_array, ())
    key = function, arguments.key()
    with _lock:
        if key not in _programs:
            if len(_programs) > _MOST_PROGRAMS:
                _programs.clear()
            _programs[key] = Recorded(record, arguments, feeds=False, eager=True)
        found = _programs[key]
    return found.run(arguments)


def run_whole(programs: dict, function: Callable, args, kwargs):
    """Runs `function(...)` as one program, cached in `programs`. Its errors name the lines where it was recorded.

    Indices that the program computes are results too, so that one out of range raises OutOfRangeError as it does
    operation by operation.
    """
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
