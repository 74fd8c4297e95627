# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command of a rank: a Python script, a Python module, or any program."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys

from ..errors import Error


def command(script: str, args: list[str], *, module: bool = False, local_rank: int | None = None, python: str = sys.executable) -> list[str]:
    """The command line of a rank.

    `python` runs modules, .py files and files that are not executable, with unbuffered output.

    local_rank: passed as --local_rank=I before the script's arguments, unless None.
    """
    passed = [] if local_rank is None else [f"--local_rank={local_rank}"]
    if module:
        return [python, "-u", "-m", script, *passed, *args]
    if is_program(script):
        return [script, *passed, *args]
    return [python, "-u", script, *passed, *args]


def is_program(script: str) -> bool:
    """Whether `script` is an executable file or program on PATH, not Python source."""
    if script.endswith(".py"):
        return False
    if os.sep in script:
        return os.path.isfile(script) and os.access(script, os.X_OK)
    return not os.path.exists(script) and shutil.which(script) is not None


def check(script: str, module: bool = False) -> None:
    """Raise Error if the script or module does not exist or cannot be read."""
    if module:
        top = script.partition(".")[0]
        sys.path.insert(0, os.getcwd())
        try:
            found = top.isidentifier() and importlib.util.find_spec(top) is not None
        except (ImportError, ValueError):
            found = True  # importing it reports the cause
        finally:
            sys.path.pop(0)
        if not found:
            raise Error(f"there is no Python module '{script}' here or in {sys.executable}; without --module, SCRIPT is a file")
    elif os.path.isdir(script):
        if not os.path.isfile(os.path.join(script, "__main__.py")):
            raise Error(f"script '{script}' is a folder without __main__.py")
    elif not os.path.isfile(script) and not is_program(script):
        raise Error(f"there is no script '{script}' in {os.getcwd()}"
                    + ("" if os.sep in script or script.endswith(".py") else ", and no program of this name on PATH"))
    elif os.path.isfile(script) and not os.access(script, os.R_OK) and not is_program(script):
        raise Error(f"script '{script}' cannot be read")
