# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers as MLIR literals, and constant folding."""

from __future__ import annotations

import math
import struct

from .types import is_float, is_unsigned, width

_BITS = {"f64": ("<d", "<Q"), "f32": ("<f", "<I"), "f16": ("<e", "<H")}


def literal(value, element: str) -> str:
    """`value` (a Python number) as a scalar literal of type `element`. Infinities and NaN are written as bits."""
    if element == "i1":
        return "true" if value else "false"
    if not is_float(element):
        return str(as_signed(int(value), element) if is_unsigned(element) else int(value))
    value = float(value)
    if math.isfinite(value):
        text = repr(value)
        mantissa, _, exponent = text.partition("e")
        mantissa = mantissa if "." in mantissa else mantissa + ".0"
        return f"{mantissa}e{exponent}" if exponent else mantissa
    if element == "bf16":
        bits = struct.unpack("<I", struct.pack("<f", value))[0] >> 16
        return f"0x{bits:04X}"
    pack, unpack = _BITS[element]
    bits = struct.unpack(unpack, struct.pack(pack, value))[0]
    return f"0x{bits:0{width(element) // 4}X}"


def as_signed(value: int, element: str) -> int:
    """The signed integer with the same bits: MLIR literals of signless types are signed."""
    return value - (1 << width(element)) if value >= 1 << (width(element) - 1) else value


def splat(value, element: str) -> str:
    """The literal of a tensor whose elements are all equal to value."""
    return f"dense<{literal(value, element)}>"


def dense(values, element: str) -> str:
    """A dense constant from nested lists of numbers, which must be regular and not empty."""
    def write(v):
        return "[" + ", ".join(map(write, v)) + "]" if isinstance(v, (list, tuple)) else literal(v, element)
    return f"dense<{write(values)}>"


def raw(data: bytes) -> str:
    """A dense constant from row-major little-endian bytes; for element types of whole bytes."""
    return f'dense<"0x{data.hex().upper()}">'


def least(element: str) -> float | int:
    """The identity of max: -inf, or the least integer of the type."""
    return -math.inf if is_float(element) else (0 if element == "i1" or is_unsigned(element) else -(1 << (width(element) - 1)))


def greatest(element: str) -> float | int:
    """The identity of min: inf, or the greatest integer of the type."""
    return math.inf if is_float(element) else (1 if element == "i1" else (1 << (width(element) - (not is_unsigned(element)))) - 1)


_FOLDS = {"arith.addf": lambda a, b: a + b, "arith.subf": lambda a, b: a - b, "arith.mulf": lambda a, b: a * b,
          "arith.divf": lambda a, b: a / b, "arith.negf": lambda a: -a}


def fold(name: str, numbers: list, element: str) -> float | None:
    """The result of an f32 or f64 op on constants; None if it is not folded.

    Rounding the f64 result to f32 is exact for these ops.
    """
    if name not in _FOLDS or element not in ("f32", "f64") or any(n is None or not math.isfinite(n) for n in numbers):
        return None
    if name == "arith.divf" and numbers[1] == 0:
        return None
    value = _FOLDS[name](*map(float, numbers))
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0] if element == "f32" else value
    except OverflowError:
        return None


def fold_cast(name: str, number, element: str) -> float | int | None:
    """The result of a cast of a constant; None if it is not folded. Integers up to 2^24 are exact in f32 and f64."""
    if number is None or not math.isfinite(number):
        return None
    if name == "arith.sitofp" and element in ("f32", "f64") and abs(number) <= 1 << 24:
        return float(number)
    return float(number) if name == "arith.extf" else None
