# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MLIR types and affine maps, as far as programs need them."""

from __future__ import annotations

import dataclasses
import math

FLOATS = ("f64", "f32", "f16", "bf16")
INTEGERS = ("i64", "i32", "i16", "i8", "i1")


def is_float(element: str) -> bool:
    return element in FLOATS


def is_unsigned(element: str) -> bool:
    """Whether it is ui8, ..., ui64: printed as i8, ..., i64, but with unsigned comparison, division and extension."""
    return element.startswith("ui")


def signless(element: str) -> str:
    """The signless type that arith takes: i8 for ui8."""
    return element.removeprefix("u")


def width(element: str) -> int:
    """Bits of an element type; 64 for index."""
    return {"index": 64, "bf16": 16}.get(element) or int(signless(element)[1:])


@dataclasses.dataclass(frozen=True)
class TensorType:
    """A tensor type of static shape.

    `element`: an MLIR element type (f32, i64, i1, index, ...), or ui8, ..., which prints as i8.
    """

    shape: tuple[int, ...]
    element: str

    def __str__(self):
        return "tensor<" + "".join(f"{n}x" for n in self.shape) + signless(self.element) + ">"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


# The type of a value: a tensor, or a scalar named by its element type.
Type = TensorType | str


def written(type: Type) -> str:
    """The type as printed in a program."""
    return str(type) if isinstance(type, TensorType) else signless(type)


def element_of(type: Type) -> str:
    """The element type of a tensor; a scalar type itself."""
    return type.element if isinstance(type, TensorType) else type


@dataclasses.dataclass(frozen=True)
class AffineMap:
    """`(d0, ..., dN-1) -> (results)`. A result is an integer k for loop dk, or text such as "0" or "d0 * 2 + d1"."""

    loops: int
    results: tuple[int | str, ...]

    def __post_init__(self):  # convert NumPy integers
        object.__setattr__(self, "results", tuple(r if isinstance(r, str) else int(r) for r in self.results))

    def __str__(self):
        dims = ", ".join(f"d{i}" for i in range(self.loops))
        results = ", ".join(f"d{r}" if isinstance(r, int) else r for r in self.results)
        return f"affine_map<({dims}) -> ({results})>"

    @staticmethod
    def identity(rank: int) -> AffineMap:
        """(d0, d1, ...) -> (d0, d1, ...)."""
        return AffineMap(rank, tuple(range(rank)))
