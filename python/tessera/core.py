# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Access to the compiled module `tessera._core`; its errors become `tessera.Error`."""

from __future__ import annotations

import importlib
import math
import numbers
import operator
import os
import subprocess

from .errors import Error
from .source import nearest, refuse, warn


def module():
    """The compiled module `tessera._core`. Raises ImportError with build instructions if it was not built."""
    try:
        return importlib.import_module("tessera._core")
    except ModuleNotFoundError as error:
        if error.name != "tessera._core":
            raise
        raise ImportError("tessera._core was not built: run scripts/setup-python BUILD, configure and build again, and put "
                          "BUILD/python on PYTHONPATH") from None


class errors:
    """Context manager over the module, `with errors() as module`: its exceptions are raised as `tessera.Error`."""

    def __enter__(self):
        self._module = module()
        return self._module

    def __exit__(self, kind, error, trace):
        if isinstance(error, self._module.Error):
            raise as_error(error) from None


def as_error(refused: Exception) -> Error:
    """The module's exception as an Error; a message without a location gets the user's line."""
    text = str(refused).rstrip("\n")
    return refuse(Error, text.removeprefix("error: ")) if text.startswith("error: ") else Error(text)


MOST_DEVICES = 1 << 20  # the bound of meshes (M3)
_STRINGS = ("target", "name", "function", "compile_from", "objective", "passes", "search", "minimise", "fusion",
            "attention_sequence")
# Options of single functions; those of _COMMON apply to every function.
_OPTIONS = {"lower": (), "explain": (), "compile": ("target", "arch")}
_COMMON = (*_STRINGS[1:], "topology", "memory_budget", "time_limit", "devices", "remarks", "fully_use_devices", "overlap",
           "narrow_reductions")


def whole(name: str, value, least: int, most: int) -> int:
    """An integer in [least, most]. Raises Error, naming the option, for anything else."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or not least <= number <= most:
        raise refuse(Error, f"{name} {value!r} is not a whole number from {least} to {most}")
    return number


def _amount(name: str, value, unit: str) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 <= value < math.inf:
        raise refuse(Error, f"{name} {value!r} is not a number of {unit}, at least 0")
    return float(value)


def _checked(function: str, options: dict) -> dict:
    """The options as the module takes them, without those that are None (default).

    Raises Error for an unknown option and for a value of the wrong type.
    """
    result = {}
    for name, value in options.items():
        if name not in (*_OPTIONS[function], *_COMMON):
            raise refuse(Error, f"{function} has no option '{name}'; {nearest(name, [*_OPTIONS[function], *_COMMON], 'it has')}")
        if value is None:
            continue
        if name in _STRINGS and not isinstance(value, str):
            raise refuse(Error, f"{name} {value!r} is not a string")
        if name == "topology":
            try:
                value = os.fsdecode(value)
            except TypeError:
                raise refuse(Error, f"topology {value!r} is not a file path") from None
        elif name == "arch":
            if not isinstance(value, str):
                if not isinstance(value, (list, tuple)) or not all(isinstance(each, str) for each in value):
                    raise refuse(Error, f"arch {value!r} is not an architecture or a list of them")
                value = ",".join(value)
        elif name == "devices":
            value = whole(name, value, 0, MOST_DEVICES)
        elif name == "memory_budget":
            value = _amount(name, value, "GiB")
        elif name == "time_limit":
            value = _amount(name, value, "seconds")
            if value == 0:
                raise refuse(Error, "time_limit 0 leaves no time for a search")
        elif name == "fully_use_devices":
            if not isinstance(value, bool):
                raise refuse(Error, f"fully_use_devices {value!r} is not True or False")
        elif name in ("remarks", "overlap", "narrow_reductions"):
            value = bool(value)
        result[name] = value
    return result


def check_readable(text: str, name: str):
    """Raises Error if `text` is not a program or would crash MLIR's parser or verifiers.

    A child process (`tessera-read`, installed beside the module) parses the text first, so that a crash does not end
    this one.
    """
    reader = os.path.join(os.path.dirname(os.path.abspath(module().__file__)), "tessera-read")
    try:
        done = subprocess.run([reader, name], input=text.encode(errors="surrogatepass"), capture_output=True, check=False)
    except OSError:
        return  # not installed
    if done.returncode == 1:
        raise Error(done.stdout.decode(errors="replace").rstrip("\n"))


def call(function: str, *args, **options):
    """Calls a function of the module that returns (result, messages); the messages become warnings."""
    options = _checked(function, options)
    with errors() as core:
        result, messages = getattr(core, function)(*args, **options)
    for line in messages.splitlines():
        warn(line)
    return result
