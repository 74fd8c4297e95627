# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is wrong with a checkpoint, said at the user's line."""

from __future__ import annotations

import functools

from ..errors import Error
from ..source import refuse


class CheckpointError(Error, ValueError):
    """A checkpoint that is damaged, incomplete, of a newer format or another model, or that cannot be written. The text names the
    file and the tensor."""


class NotSafetensors(CheckpointError):
    """A file that is no file of safetensors, or one that was cut off in its header."""


def located(function):
    """Puts the user's line in front of the errors of this package that `function` raises."""
    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except CheckpointError as error:
            if getattr(error, "placed", False):
                raise
            made = refuse(CheckpointError, str(error))
            made.placed = True
            raise made from error.__cause__
    return call
