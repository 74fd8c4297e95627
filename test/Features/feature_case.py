# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared by the tests of features."""

import os


def refused(says, call):
    """Checks that a call fails with a message."""
    try:
        call()
    except Exception as error:
        assert says in str(error), f"rank {os.environ.get('RANK', 0)}: expected '{says}' in: {error}"
        return
    raise AssertionError(f"rank {os.environ.get('RANK', 0)} was not refused; expected: {says}")
