# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counter-based random bits inside a loop nest: Threefry-2x32 with 20 rounds.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from .core import Value

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry(b, k0: Value, k1: Value, x0: Value | None, x1: Value) -> tuple[Value, Value]:
    """The cipher of the words (x0, x1) under the key (k0, k1), all i32. x0 None is 0."""
    add, xor = (lambda x, y: b.apply("arith.addi", x, y)), (lambda x, y: b.apply("arith.xori", x, y))
    word = lambda n: b.constant(n, "i32")
    keys = [k0, k1, xor(xor(k0, k1), word(_PARITY))]
    x0, x1 = k0 if x0 is None else add(x0, k0), add(x1, k1)
    for group in range(5):
        for bits in _ROTATIONS[group % 2]:
            x0 = add(x0, x1)
            x1 = xor(b.apply("arith.ori", b.apply("arith.shli", x1, word(bits)), b.apply("arith.shrui", x1, word(32 - bits))), x0)
        x0 = add(x0, keys[(group + 1) % 3])
        x1 = add(add(x1, keys[(group + 2) % 3]), word(group + 1))
    return x0, x1
