# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The exception for JAX programs that cannot be imported."""

from __future__ import annotations

from ..errors import Error
from ..ir import Location
from ..source import refuse


class ImportFailure(Error):
    """A JAX program that cannot be imported.

    `location`: the line of the program at fault; if None, the text begins with the line that calls the importer.
    """

    def __init__(self, message: str, location: Location | None = None):
        self.message, self.location = message, location
        super().__init__(str(refuse(Error, message, location)))
