# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints: training states on disk, written atomically, by any number of processes (docs/checkpoints.md)."""

from .errors import CheckpointError
from .loading import Checkpoint, latest, load_checkpoint, load_distributed_checkpoint
from .manager import CheckpointManager
from .reading import Source
from .saving import Save, save_checkpoint
from .single import load_state, save_state
from .state import LocalTensor

__all__ = ["Checkpoint", "CheckpointError", "CheckpointManager", "LocalTensor", "Save", "Source", "latest", "load_checkpoint",
           "load_distributed_checkpoint", "load_state", "save_checkpoint", "save_state"]
