# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of features share."""

import os


def refused(says, call):
    """That a call fails, and with what words."""
    try:
        call()
    except Exception as error:
        assert says in str(error), f"rank {os.environ.get('RANK', 0)}: expected '{says}' in: {error}"
        return
    raise AssertionError(f"rank {os.environ.get('RANK', 0)} was not refused; expected: {says}")
