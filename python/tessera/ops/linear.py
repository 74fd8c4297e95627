# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Contractions: matmul, einsum and relatives. 16-bit floats are accumulated in float32."""

from __future__ import annotations

from ..errors import ArgumentError, ShapeError
from ..ir.scalars import wide
from ..source import refuse
from ..trace import check_meshes
from .base import broadcast_shapes, cast, common_type, op, operand, tensor_of
from .elementwise import multiply
from .reductions import sum
from .shapes import permute_dims


def contract(trace, name, lhs, rhs, lhs_loops, rhs_loops, loops, sizes):
    """The sum of lhs[lhs_loops] * rhs[rhs_loops] over the loops that are not in `loops`."""
    b, element = trace.builder, common_type(name, [lhs, rhs]).element
    values = [operand(trace, lhs, element), operand(trace, rhs, element)]
    if all(i in loops for i in (*lhs_loops, *rhs_loops)):  # no sum
        spread = []
        for value, of in zip(values, (lhs_loops, rhs_loops)):
            order = sorted(range(len(of)), key=lambda d: loops.index(of[d]))
            spread.append(b.broadcast(b.transpose(value, order), [sizes[i] for i in loops], sorted(loops.index(i) for i in of)))
        multiply = "arith.mulf" if element[0] in "fb" else "arith.muli"
        return trace.tensor(b.pointwise(spread, [sizes[i] for i in loops], lambda x, y: b.apply(multiply, x, y)))
    result = b.contract(*values, lhs_loops, rhs_loops, loops, sizes, wide(element))
    return trace.tensor(cast(trace, result, element))


@op
def matmul(trace, x1, x2):
    """Matrix product over the last two axes, (..., m, k) @ (..., k, n) -> (..., m, n); leading axes are broadcast.

    A 1-D operand is a row (x1) or column (x2) vector whose axis is dropped. Raises ShapeError for scalars and
    mismatched extents.
    """
    x1, x2 = tensor_of(x1, "matmul"), tensor_of(x2, "matmul")
    check_meshes("matmul", [x1, x2])
    if x1.ndim == 0 or x2.ndim == 0:
        raise refuse(ShapeError, f"'matmul' of shapes {x1.shape} and {x2.shape}: operands have at least one axis; use * for numbers")
    inner = x2.shape[-2] if x2.ndim > 1 else x2.shape[0]
    if x1.shape[-1] != inner:
        raise refuse(ShapeError, f"'matmul' of shapes {x1.shape} and {x2.shape}: {x1.shape[-1]} columns do not match {inner} rows")
    batch1, batch2 = x1.shape[:-2], x2.shape[:-2]
    batch = broadcast_shapes("matmul", [batch1, batch2])
    # Broadcast axes of extent 1 are removed; other leading axes become loops.
    def loops_of(x, shape):
        kept = [d for d, n in enumerate(shape) if n == batch[len(batch) - len(shape) + d]]
        if len(kept) < len(shape):
            x = x.reshape([n for d, n in enumerate(x.shape) if d in kept or d >= len(shape)])
        return x, [len(batch) - len(shape) + d for d in kept]
    x1, loops1 = loops_of(x1, batch1)
    x2, loops2 = loops_of(x2, batch2)
    sizes, loops = list(batch), list(range(len(batch)))
    if x1.ndim > len(loops1) + 1:
        loops1.append(len(sizes)), loops.append(len(sizes)), sizes.append(x1.shape[-2])
    columns = x2.ndim > len(loops2) + 1
    if columns:
        loops.append(len(sizes))
        sizes.append(x2.shape[-1])
    inner = len(sizes)
    sizes.append(x1.shape[-1])
    loops1.append(inner)
    loops2 += [inner, inner - 1] if columns else [inner]
    return contract(trace, "matmul", x1, x2, loops1, loops2, loops, sizes)


def _parse(text, operands):
    if not isinstance(text, str):
        raise refuse(ArgumentError, f"subscripts {text!r} of 'einsum' are not a string")
    if "->" not in text:
        joined = text.replace(",", "").replace(" ", "")
        text += "->" + "".join(sorted(c for c in set(joined) if joined.count(c) == 1))
    left, _, right = text.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) != len(operands) or not all(c.isalpha() for c in (left + right).replace(",", "")):
        raise refuse(ShapeError, f"'einsum' of '{text}' with {len(operands)} operands: give one letter per axis, with "
                                 "commas between operands")
    sizes: dict[str, int] = {}
    for part, x in zip(parts, operands):
        if len(part) != x.ndim or len(set(part)) != len(part):
            raise refuse(ShapeError, f"'einsum' of '{text}': '{part}' names {len(part)} axes, an operand has shape {x.shape}; each letter once")
        for letter, n in zip(part, x.shape):
            if sizes.setdefault(letter, n) != n:
                raise refuse(ShapeError, f"'einsum' of '{text}': axis '{letter}' has extents {sizes[letter]} and {n}")
    unknown = [c for c in right if c not in sizes]
    if unknown or len(set(right)) != len(right):
        raise refuse(ShapeError, f"'einsum' of '{text}': the result names '{unknown[0] if unknown else right}', which "
                                 "is unknown or duplicated")
    return parts, right, sizes


@op
def einsum(trace, text, *operands):
    """Einstein summation: einsum("bqhd,bkhd->bhqk", q, k).

    More than two operands are contracted from left to right. Raises ShapeError if the subscripts do not match the
    operands.
    """
    operands = [tensor_of(x, "einsum") for x in operands]
    check_meshes("einsum", operands)
    parts, right, sizes = _parse(text, operands)
    part, value = parts[0], operands[0]
    for i in range(1, len(operands)):
        later = set(right).union(*parts[i + 1:])
        both = part + "".join(c for c in parts[i] if c not in part)
        kept = [c for c in both if c in later]
        if i == len(operands) - 1:
            kept = list(right)
        letters = kept + [c for c in both if c not in kept]
        number = {c: n for n, c in enumerate(letters)}
        value = contract(trace, "einsum", value, operands[i], [number[c] for c in part], [number[c] for c in parts[i]],
                         list(range(len(kept))), [sizes[c] for c in letters])
        part = "".join(kept)
    gone = tuple(d for d, c in enumerate(part) if c not in right)
    value, part = (sum(value, gone) if gone else value), [c for c in part if c in right]
    return permute_dims(value, [part.index(c) for c in right]) if part != list(right) else value


def tensordot(x1, x2, axes=2):
    """Contracts the last `axes` axes of x1 with the first of x2, or the pairs of axes (axes of x1, axes of x2)."""
    x1, x2 = tensor_of(x1, "tensordot"), tensor_of(x2, "tensordot")
    if isinstance(axes, int):
        axes = list(range(x1.ndim - axes, x1.ndim)), list(range(axes))
    letters = [chr(97 + i) for i in range(x1.ndim + x2.ndim)]
    left, right = letters[:x1.ndim], letters[x1.ndim:]
    for a, c in zip(*axes):
        right[c] = left[a]
    free = [c for c in left if c not in right] + [c for c in right if c not in left]
    return einsum(f"{''.join(left)},{''.join(right)}->{''.join(free)}", x1, x2)


def outer(x1, x2):
    """Outer product of two vectors, (n,) and (m,) -> (n, m)."""
    return einsum("a,b->ab", x1, x2)


def vecdot(x1, x2, axis=-1):
    """Sum of x1 * x2 along `axis`."""
    return sum(multiply(x1, x2), axis)


