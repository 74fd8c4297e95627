# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tessera debug`: analysis of the dumps of a job. Uses only the standard library."""

from tessera.debug.hang import Dump, DumpError, compare, read_dumps

__all__ = ["Dump", "DumpError", "compare", "read_dumps"]
