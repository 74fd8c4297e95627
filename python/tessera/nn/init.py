# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Initial values of parameters, drawn on the host from one seeded generator."""

from __future__ import annotations

import math

import numpy as np

from .. import dtypes
from ..tensor import Tensor, _array
from .module import parameter

_generator = np.random.default_rng(0)


def seed(value: int) -> None:
    """Reseeds the generator: the same modules made afterwards in the same order get the same values."""
    global _generator
    _generator = np.random.default_rng(value)


def _make(shape, dtype, draw) -> Tensor:
    kind = dtypes.dtype(dtype)
    number = _generator.integers(1 << 62)  # parameters made under LazyGuard draw the same values later
    return parameter(shape, kind, lambda: _array(np.asarray(draw(np.random.default_rng(number))), kind))


def _scaled(array, *factors, minus=0.0):
    """Multiplies and subtracts in place: large parameters are drawn without copies."""
    array = np.asarray(array)
    for factor in factors:
        array *= np.float32(factor)
    if minus:
        array -= np.float32(minus)
    return array


def normal(shape, std: float = 1.0, dtype="float32") -> Tensor:
    """A parameter with normally distributed values of standard deviation `std`."""
    return _make(shape, dtype, lambda g: _scaled(g.standard_normal(shape, np.float32), std))


def uniform(shape, bound: float, dtype="float32") -> Tensor:
    """A parameter with values uniform in [-bound, bound)."""
    return _make(shape, dtype, lambda g: _scaled(g.random(shape, np.float32), 2, bound, minus=bound))


def fan_in(shape, inputs: int, dtype="float32") -> Tensor:
    """A parameter with values uniform in +-1 / sqrt(inputs), the default of PyTorch's layers."""
    return uniform(shape, 1 / math.sqrt(max(1, inputs)), dtype)


def constant(shape, value: float, dtype="float32") -> Tensor:
    """A parameter with all elements equal to `value`."""
    return _make(shape, dtype, lambda g: np.full(shape, value, np.float32))
