# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exceptions of the package."""

from __future__ import annotations


class Error(Exception):
    """A program, an artifact or a run that was refused. The text is that of the diagnostics, `file:line:column: error: ...`,
    one a line."""
