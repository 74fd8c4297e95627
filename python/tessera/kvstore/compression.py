# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradient compression to two bits per element with error feedback (Seide et al., Interspeech 2014)."""

from __future__ import annotations

import math

import numpy as np

from ..errors import ArgumentError

_KINDS = ("none", "2bit")


def threshold(parameters) -> float | None:
    """The threshold t of {"type": "2bit", "threshold": t}. Returns None for {"type": "none"}. Raises ArgumentError."""
    if not isinstance(parameters, dict) or set(parameters) - {"type", "threshold"} or "type" not in parameters:
        raise ArgumentError(f"gradient compression {parameters!r} is not a dict with 'type' and 'threshold'")
    kind, value = parameters["type"], parameters.get("threshold", 0.5)
    if kind not in _KINDS:
        raise ArgumentError(f"unknown gradient compression {kind!r}; expected one of {', '.join(_KINDS)}")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise ArgumentError(f"threshold {value!r} of gradient compression is not a number above 0")
    return None if kind == "none" else float(value)


def size(count: int) -> int:
    """Size in bytes of `count` compressed elements."""
    return -(-count // 4)


def encode(gradient: np.ndarray, residual: np.ndarray, limit: float) -> np.ndarray:
    """The codes of a flat gradient, four per byte: 1 for +limit, 2 for -limit, 0 for neither.

    The gradient is first added to `residual`, and what is encoded is subtracted from it. NaN is encoded as 0 and stays
    there.
    """
    residual += gradient
    up, down = residual >= limit, residual <= -limit
    codes = np.zeros(4 * size(residual.size), np.uint8)
    codes[:residual.size] = up + 2 * down.astype(np.uint8)
    residual[up] -= residual.dtype.type(limit)
    residual[down] += residual.dtype.type(limit)
    groups = codes.reshape(-1, 4)
    return groups[:, 0] | groups[:, 1] << 2 | groups[:, 2] << 4 | groups[:, 3] << 6


def decode(codes: np.ndarray, count: int, dtype: np.dtype, limit: float) -> np.ndarray:
    """The flat gradient of `count` elements that `codes` encode. Code 3, which `encode` never writes, means 0."""
    values = np.array([0, limit, -limit, 0], dtype)
    return values[np.stack([codes >> shift & 3 for shift in (0, 2, 4, 6)], axis=1).reshape(-1)[:count]]
