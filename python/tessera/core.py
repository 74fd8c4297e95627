# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiled module, and its errors as `tessera.Error`."""

from __future__ import annotations

import contextlib
import importlib
import warnings

from .errors import Error


def module():
    """`tessera._core`; an ImportError that says how to get it where it was not built."""
    try:
        return importlib.import_module("tessera._core")
    except ModuleNotFoundError as error:
        if error.name != "tessera._core":
            raise
        raise ImportError("tessera._core was not built: run scripts/setup-python BUILD, configure and build again, and put "
                          "BUILD/python on PYTHONPATH") from None


@contextlib.contextmanager
def errors():
    """Raises what the module refuses as `tessera.Error`."""
    core = module()
    try:
        yield core
    except core.Error as error:
        raise Error(str(error).rstrip("\n")) from None


def call(function: str, *args, **options):
    """A function of the module that returns (result, messages); messages become warnings."""
    with errors() as core:
        result, messages = getattr(core, function)(*args, **options)
    for line in messages.splitlines():
        warnings.warn(line, stacklevel=3)
    return result
