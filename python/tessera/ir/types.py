# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types and affine maps of MLIR, as far as programs for Tessera need them."""

from __future__ import annotations

import dataclasses
import math

FLOATS = ("f64", "f32", "f16", "bf16")
INTEGERS = ("i64", "i32", "i16", "i8", "i1")


def is_float(element: str) -> bool:
    return element in FLOATS


def is_unsigned(element: str) -> bool:
    """Whether it is one of ui8, .., ui64: written as i8, .., i64, but compared, divided, widened otherwise."""
    return element.startswith("ui")


def signless(element: str) -> str:
    """The element type as MLIR's arith takes it: ui8 is i8."""
    return element.removeprefix("u")


def width(element: str) -> int:
    """Bits of an element type; index counts as 64."""
    return {"index": 64, "bf16": 16}.get(element) or int(signless(element)[1:])


@dataclasses.dataclass(frozen=True)
class TensorType:
    """A tensor of static shape. `element` is an MLIR element type: f32, i64, i1, index, ..., or ui8, .., which is written i8."""

    shape: tuple[int, ...]
    element: str

    def __str__(self):
        return "tensor<" + "".join(f"{n}x" for n in self.shape) + signless(self.element) + ">"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


# A type of a value: a tensor, or a scalar named by its element type.
Type = TensorType | str


def written(type: Type) -> str:
    """A type as it stands in a program."""
    return str(type) if isinstance(type, TensorType) else signless(type)


def element_of(type: Type) -> str:
    return type.element if isinstance(type, TensorType) else type


@dataclasses.dataclass(frozen=True)
class AffineMap:
    """`(d0, .., dN-1) -> (results)`. A result is an integer k for the loop dk, or text such as "0" or "d0 * 2 + d1"."""

    loops: int
    results: tuple[int | str, ...]

    def __post_init__(self):  # integers of NumPy become Python's
        object.__setattr__(self, "results", tuple(r if isinstance(r, str) else int(r) for r in self.results))

    def __str__(self):
        dims = ", ".join(f"d{i}" for i in range(self.loops))
        results = ", ".join(f"d{r}" if isinstance(r, int) else r for r in self.results)
        return f"affine_map<({dims}) -> ({results})>"

    @staticmethod
    def identity(rank: int) -> AffineMap:
        return AffineMap(rank, tuple(range(rank)))
