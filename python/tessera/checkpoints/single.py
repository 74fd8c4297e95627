# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A state of one process in a single safetensors file, which other programs can read and write."""

from __future__ import annotations

import os
import secrets

from ..source import entry
from . import boxes, folder as folders
from .chunks import CHUNK
from .errors import CheckpointError, located
from .loading import load_checkpoint
from .saving import write_shard
from .state import extract


@entry
@located
def save_state(path, state) -> None:
    """Write the tensors of a state to one safetensors file, atomically; tied tensors are written once.

    The format has no checksums, unlike save_checkpoint. Raises CheckpointError, also if the state has values that are
    not tensors.
    """
    path = os.path.abspath(os.fspath(path))
    items, _, values = extract(state)
    if values:
        raise CheckpointError(f"{path}: '{next(iter(values))}' is not a tensor, and safetensors files hold only tensors; use save_checkpoint")
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
    """The state of a file or folder: `load_checkpoint(path, like, ...).state`."""
    return load_checkpoint(path, like, **options).state
