# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comparison of arrays with the tolerances that all checks of Tessera use."""

from __future__ import annotations

import math

import numpy as np

_RELATIVE = {"float64": 1e-10, "float32": 1e-4, "bfloat16": 2e-2, "float16": 2e-2}


def difference(actual, expected, steps: int = 1) -> str | None:
    """None if the arrays agree, else a sentence about the difference.

    Integers must be equal. Floats must satisfy |a - b| <= r * max(|b|, rms of the finite b) * sqrt(steps), with r =
    1e-10 for float64, 1e-4 for float32, 2e-2 for 16-bit floats. NaN equals NaN; infinities must have equal signs. Of
    complex arrays both parts must agree, with one rms of all parts.
    """
    a, b = np.asarray(actual), np.asarray(expected)
    if a.shape != b.shape:
        return f"shape {a.shape} instead of {b.shape}"
    if a.dtype != b.dtype:
        return f"type {a.dtype} instead of {b.dtype}"
    if b.dtype.kind == "c":
        a, b = (np.stack([x.real, x.imag], -1) for x in (a, b))
    if b.dtype.name not in _RELATIVE:
        wrong = int((a != b).sum())
        return f"{wrong} of {a.size} elements differ" if wrong else None
    relative = _RELATIVE[b.dtype.name] * math.sqrt(steps)
    a, b = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(b)
    special = (np.isnan(a) == np.isnan(b)) & ((a == b) | np.isnan(b) | finite)
    if not special.all():
        return f"{int((~special).sum())} of {a.size} elements are NaN or infinite on one side only"
    if not finite.any():
        return None
    a, b = a[finite], b[finite]
    bound = relative * np.maximum(np.abs(b), np.sqrt(np.mean(b * b)))
    error = np.abs(a - b)
    if (error <= bound).all():
        return None
    worst = int(np.argmax(error - bound))
    return f"{int((~(error <= bound)).sum())} of {a.size} elements differ, the worst is {a[worst]} instead of {b[worst]}"
