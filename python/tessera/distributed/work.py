# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls under way."""

from __future__ import annotations


class Work:
    """A call under way. Its arrays belong to it until `wait` has returned."""

    def __init__(self, group, handle, keeps=(), finish=None):
        self._group, self._handle, self._finish = group, handle, finish
        group.keep(handle, keeps)

    def is_completed(self) -> bool:
        """Whether it has ended, or failed. Results are there after `wait`."""
        return self._handle.is_completed()

    def wait(self) -> bool:
        """Waits for the end. Raises DistributedError where the call failed."""
        with self._group.errors():
            self._handle.wait()
        finish, self._finish = self._finish, None
        if finish:
            finish()
        return True

    @property
    def source(self) -> int:
        """Of a receive that has ended: the rank that sent; otherwise -1."""
        return self._handle.source
