# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Process sets: subsets of ranks that make calls together."""

from __future__ import annotations

import operator
from collections.abc import Iterable

from ..errors import ArgumentError
from .calls import Call
from .job import exchange, submit


class ProcessSet:
    """Some ranks of the job (default: all), ascending. Register it with init(process_sets=[...]) or add_process_set."""

    def __init__(self, ranks: Iterable[int] | None = None):
        self._ranks = None if ranks is None else _ranks(ranks)
        self.process_set_id: int | None = None

    @property
    def ranks(self) -> list[int]:
        """The ranks of the job, ascending; the global set has all of them."""
        return list(range(exchange().size)) if self._ranks is None else list(self._ranks)

    def included(self) -> bool:
        """Whether this rank is in the set."""
        return exchange().rank in self.ranks

    def rank(self) -> int:
        """This process's rank within the set. Raises ArgumentError if it is not in the set."""
        if not self.included():
            raise ArgumentError(f"rank {exchange().rank} is not in {self!r}")
        return self.ranks.index(exchange().rank)

    def size(self) -> int:
        return len(self.ranks)

    def __repr__(self):
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self._ranks if self._ranks is not None else 'all'})"


def _ranks(ranks) -> list[int]:
    try:
        found = sorted({operator.index(rank) for rank in ranks})
    except TypeError:
        raise ArgumentError(f"ranks {ranks!r} of a process set are not whole numbers") from None
    if not found:
        raise ArgumentError("a process set has at least one rank")
    return found


global_process_set = ProcessSet()
global_process_set.process_set_id = 0


def add_process_set(process_set) -> ProcessSet:
    """Register a set of ranks and return it.

    All ranks of the job call it with the same ranks; equal sets share an id.
    """
    made = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
    here, error = exchange(), ""
    if outside := [rank for rank in made.ranks if not 0 <= rank < here.size]:
        error = f"rank {outside[0]} of {made.ranks} is not in the job, which has {here.size} ranks"
    number = submit(Call("add_process_set", "", ranks=made.ranks, error=error), lambda _, more: more["set"]).wait()
    made.process_set_id = number
    return made


def remove_process_set(process_set: ProcessSet) -> bool:
    """Remove a set; all ranks of the job call it. Returns False if it is not registered."""
    if process_set.process_set_id is None:
        return False
    if process_set.process_set_id == 0:
        raise ArgumentError("the global process set cannot be removed; shutdown() ends the job")
    submit(Call("remove_process_set", "", root=process_set.process_set_id), lambda *_: None).wait()
    process_set.process_set_id = None
    return True


def number_of(process_set) -> int:
    """The id of a set. Raises ArgumentError if it is not registered or does not include this rank."""
    here = exchange()
    if not isinstance(process_set, ProcessSet):
        raise ArgumentError(f"process_set {process_set!r} is not a ProcessSet")
    if process_set.process_set_id is None or process_set.process_set_id not in here.members:
        raise ArgumentError(f"{process_set!r} is not registered; call add_process_set, or pass it to init")
    if here.rank not in here.members[process_set.process_set_id]:
        raise ArgumentError(f"rank {here.rank} is not in {process_set!r}; only its ranks make calls with it")
    return process_set.process_set_id
