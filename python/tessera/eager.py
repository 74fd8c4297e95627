# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations outside of `jit`: compiled and run at once."""

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
    arguments = Arguments(record, args, kwargs, tree.is_array)
    key = function, arguments.key()
    with _lock:
        if key not in _programs:
            if len(_programs) > _MOST:
                _programs.clear()
            _programs[key] = Recorded(record, arguments, feeds=False, eager=True)
        found = _programs[key]
    return found.run(arguments)
