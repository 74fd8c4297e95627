# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of checkpoints, located at the user's line."""

from __future__ import annotations

import functools

from ..errors import Error
from ..source import refuse


class CheckpointError(Error, ValueError):
    """A checkpoint is damaged, incomplete, of a newer format or of another model, or cannot be written.

    The message names the file and the tensor.
    """


class NotSafetensors(CheckpointError):
    """A file is not a safetensors file, or is truncated in its header."""


def located(function):
    """Decorate `function` so that its CheckpointErrors begin with the user's line."""
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
