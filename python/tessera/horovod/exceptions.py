# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exceptions of this package."""

from __future__ import annotations

from ..distributed import DistributedError
from ..errors import ArgumentError


class NotInitializedError(DistributedError, ValueError):
    """A function was called before init()."""


class HorovodInternalError(DistributedError):
    """A collective failed because a rank was lost or has shut down. `elastic.run` then restores the last commit."""


class HostsUpdatedInterrupt(Exception):
    """The hosts of the job changed. `elastic.run` then synchronizes the state and calls the function again."""

    def __init__(self, skip_sync: bool = False):
        super().__init__("the hosts of the job changed")
        self.skip_sync = skip_sync


class CallError(DistributedError, ArgumentError):
    """A call differs between ranks, or has an invalid argument on one.

    All ranks get the same message and can continue.
    """
