# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pending calls."""

from __future__ import annotations


class Work:
    """A pending call. Its arrays must not be used until `wait` has returned."""

    def __init__(self, group, handle, keeps=(), finish=None):
        self._group, self._handle, self._finish = group, handle, finish
        group.keep(handle, keeps)

    def is_completed(self) -> bool:
        """Whether the call has ended or failed. Results are available only after `wait`."""
        return self._handle.is_completed()

    def wait(self) -> bool:
        """Wait for the end of the call. Raises DistributedError if it failed."""
        with self._group.errors():
            self._handle.wait()
        finish, self._finish = self._finish, None
        if finish:
            finish()
        return True

    @property
    def source(self) -> int:
        """The sender, if this is a receive that has ended; otherwise -1."""
        return self._handle.source
