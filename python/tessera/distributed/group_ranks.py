# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Translation between ranks in the job and ranks within a group, and `is_available`."""

from __future__ import annotations

import importlib.util

from ..errors import ArgumentError
from .group import ProcessGroup, world


def is_available() -> bool:
    """Whether this package was built with process groups."""
    return importlib.util.find_spec("tessera._groups") is not None


def get_global_rank(group: ProcessGroup | None, group_rank: int) -> int:
    """The rank in the job of a rank within a group."""
    ranks = (group or world()).ranks
    if isinstance(group_rank, bool) or not isinstance(group_rank, int) or not 0 <= group_rank < len(ranks):
        raise ArgumentError(f"group_rank {group_rank!r} of a group of {len(ranks)}; ranks are counted from 0")
    return ranks[group_rank]


def get_group_rank(group: ProcessGroup | None, global_rank: int) -> int:
    """The rank within a group of a rank in the job."""
    ranks = list((group or world()).ranks)
    if global_rank not in ranks:
        raise ArgumentError(f"global_rank {global_rank!r} is not in the group {ranks}")
    return ranks.index(global_rank)
