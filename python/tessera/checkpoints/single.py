# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One file of safetensors: a state of one process, as others read and write it."""

from __future__ import annotations

import os
import secrets

from ..source import entry
from . import boxes, folder as folders
from .chunks import CHUNK
from .errors import CheckpointError, located
from .loading import load_checkpoint
from .saving import write_shard
from .state import take


@entry
@located
def save_state(path, state) -> None:
    """Writes the tensors of a state into one file of safetensors, which is whole or not there; what is tied is written once. The
    format has no checksums: save_checkpoint has. Raises CheckpointError, also for plain values in the state, which the format cannot say.
    """
    path = os.path.abspath(os.fspath(path))
    items, _, values = take(state)
    if values:
        raise CheckpointError(f"{path}: '{next(iter(values))}' is not a tensor, and a file of safetensors has only those; use save_checkpoint")
    part = f"{path}.{secrets.token_hex(4)}.part"
    try:
        try:
            write_shard(part, [(item, boxes.whole(item.shape)) for item in items], CHUNK, {"format": "pt"})
            os.rename(part, path)
            folders.sync(os.path.dirname(path))
        finally:
            if os.path.exists(part):
                os.unlink(part)
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from None


def load_state(path, like=None, **options):
    """The state of a file or folder, alone: `load_checkpoint(path, like, ...).state`."""
    return load_checkpoint(path, like, **options).state
