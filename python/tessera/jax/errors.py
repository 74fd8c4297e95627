# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is raised when a JAX program cannot be imported."""

from __future__ import annotations

from ..errors import Error
from ..ir import Location


class ImportFailure(Error):
    """A program that cannot be imported. `location` is the line of the user's program, None when there is none."""

    def __init__(self, message: str, location: Location | None = None):
        self.message, self.location = message, location
        place = f"{location.file}:{location.line}:{location.column}: " if location else ""
        super().__init__(place + message)
