# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tessera bench`: the speed-up of a script with the number of processes, and the total throughput of a job's logs."""

from .logs import Log, read_log, total
from .scaling import Point, measure, table

__all__ = ["Log", "Point", "measure", "read_log", "table", "total"]
