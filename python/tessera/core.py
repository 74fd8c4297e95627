# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiled module, and its errors as `tessera.Error`."""

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
    """`tessera._core`; an ImportError that says how to get it where it was not built."""
    try:
        return importlib.import_module("tessera._core")
    except ModuleNotFoundError as error:
        if error.name != "tessera._core":
            raise
        raise ImportError("tessera._core was not built: run scripts/setup-python BUILD, configure and build again, and put "
                          "BUILD/python on PYTHONPATH") from None


class errors:
    """`with errors() as module`: what the module refuses is raised as `tessera.Error`."""

    def __enter__(self):
        self._module = module()
        return self._module

    def __exit__(self, kind, error, trace):
        if isinstance(error, self._module.Error):
            raise as_error(error) from None


def as_error(refused: Exception) -> Error:
    """What is refused without a place in a program stands at the user's line."""
    text = str(refused).rstrip("\n")
    return refuse(Error, text.removeprefix("error: ")) if text.startswith("error: ") else Error(text)


MOST_DEVICES = 1 << 20  # the bound of meshes (M3)
_TEXTS = ("target", "name", "function", "compile_from", "objective", "passes", "search", "minimise", "fusion")
_OPTIONS = {"lower": (), "explain": (), "compile": ("target", "arch")}
_OF_ALL = (*_TEXTS[1:], "topology", "memory_budget", "time_limit", "devices", "remarks", "fully_use_devices", "overlap",
           "narrow_reductions")


def whole(name: str, value, least: int, most: int) -> int:
    """A whole number of a range; Error names the option otherwise."""
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
    """The options as the module takes them; None is a default. Error names what is of another type, or no option."""
    result = {}
    for name, value in options.items():
        if name not in (*_OPTIONS[function], *_OF_ALL):
            raise refuse(Error, f"{function} has no option '{name}'; {nearest(name, [*_OPTIONS[function], *_OF_ALL], 'it has')}")
        if value is None:
            continue
        if name in _TEXTS and not isinstance(value, str):
            raise refuse(Error, f"{name} {value!r} is not a string")
        if name == "topology":
            try:
                value = os.fsdecode(value)
            except TypeError:
                raise refuse(Error, f"topology {value!r} is not a path of a file") from None
        elif name == "arch":
            if not isinstance(value, str):
                if not isinstance(value, (list, tuple)) or not all(isinstance(each, str) for each in value):
                    raise refuse(Error, f"arch {value!r} is not an architecture and no list of them")
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
    """Error if reading a program would end the process: MLIR's parser and verifiers crash on some wrong text. Another process
    (tessera-read, beside the module) tries it first."""
    reader = os.path.join(os.path.dirname(os.path.abspath(module().__file__)), "tessera-read")
    try:
        done = subprocess.run([reader, name], input=text.encode(errors="surrogatepass"), capture_output=True, check=False)
    except OSError:
        return  # not installed
    if done.returncode == 1:
        raise Error(done.stdout.decode(errors="replace").rstrip("\n"))


def call(function: str, *args, **options):
    """A function of the module that returns (result, messages); messages become warnings."""
    options = _checked(function, options)
    with errors() as core:
        result, messages = getattr(core, function)(*args, **options)
    for line in messages.splitlines():
        warn(line)
    return result
