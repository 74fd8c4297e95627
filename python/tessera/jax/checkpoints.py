# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which uses of `jax.checkpoint` recompute nothing, since the compiler merges equal operations of one block.

A derivative in the block of its forward pass finds there what it would compute again. In the body of a loop over the
derivatives it does not: the forward pass is another loop, and only the values between iterations are kept.
"""

from __future__ import annotations

import itertools

import numpy as np
from jax.extend import core as jex_core

from .. import ir
from .importer import NO_PROGRAM_INSIDE, subprograms, user_location
from .rewriting import CALLS, mentions, program_of

_CHECKPOINTS = ("remat", "remat2", "checkpoint")
# Operations that move elements: derivatives have them for other reasons, too.
_FREE = {"broadcast_in_dim", "convert_element_type", "copy", "expand_dims", "iota", "reshape", "slice", "squeeze", "transpose"}


def merged_checkpoints(jaxpr) -> list[ir.Location | None]:
    """The locations of differentiated checkpoints with an operation whose value is known where they stand."""
    found: list = []
    if mentions(jaxpr, _CHECKPOINTS):
        _Block(found).run(jaxpr, (), [None] * len(jaxpr.invars), None)
    return found


class _Block:
    """Numbers of the values of a block, the same for equal operations."""

    def __init__(self, found: list):
        self.found, self._known, self._fresh = found, {}, itertools.count()

    def run(self, jaxpr, consts, values, location) -> tuple[list, set]:
        """The numbers of the results of a jaxpr, and of the operations in it that compute. None: a new value."""
        numbers = {v: next(self._fresh) if n is None else n for v, n in zip(jaxpr.invars, values)}
        given = {v: self._number("constant", id(c)) for v, c in zip(jaxpr.constvars, consts)}
        numbers.update(given or {v: next(self._fresh) for v in jaxpr.constvars})
        used: set = set()

        def read(v):
            return self._number(str(v.aval), np.asarray(v.val).tobytes()) if isinstance(v, jex_core.Literal) else numbers[v]
        for eqn in jaxpr.eqns:
            operands, name, here = [read(v) for v in eqn.invars], eqn.primitive.name, user_location(eqn, location)
            if name in CALLS:
                before = next(self._fresh)
                results, computed = self.run(*program_of(eqn), operands, here)
                if name in _CHECKPOINTS and eqn.params.get("differentiated") and any(n < before for n in computed):
                    self.found.append(here)
                used |= computed
            else:
                for inner in () if name in NO_PROGRAM_INSIDE else subprograms(eqn):
                    if mentions(inner, _CHECKPOINTS):
                        _Block(self.found).run(inner, (), [None] * len(inner.invars), here)
                results = [self._number(name, str(eqn.params), *operands, i) for i in range(len(eqn.outvars))]
                if name not in _FREE and eqn.invars:
                    used.update(results)
            numbers.update(zip(eqn.outvars, results))
        return [read(v) for v in jaxpr.outvars], used

    def _number(self, *key) -> int:
        if key not in self._known:
            self._known[key] = next(self._fresh)
        return self._known[key]
