# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that move elements: reshape, broadcast, transpose, slice, pad, concat."""

from __future__ import annotations

from collections.abc import Sequence

from .core import Block, Value
from .types import AffineMap, TensorType


def groups(source: Sequence[int], target: Sequence[int]) -> list[tuple[list[int], list[int]]] | None:
    """The finest groups of consecutive dimensions with equal products; None if there is an extent of 0.

        | source    | target     | groups               |
        |-----------|------------|----------------------|
        | 8,128,512 | 8,128,8,64 | (0|0) (1|1) (2|2,3)  |
        | 6,4       | 8,3        | (0,1|0,1)            |
        | 8,128     | 8,128,1    | (0|0) (1|1,2)        |
    """
    if 0 in source or 0 in target:
        return None
    result, i, j = [], 0, 0
    while i < len(source) and j < len(target):
        left, right, a, b = [i], [j], source[i], target[j]
        i, j = i + 1, j + 1
        while a != b:
            if a < b:
                left.append(i)
                a, i = a * source[i], i + 1
            else:
                right.append(j)
                b, j = b * target[j], j + 1
        result.append((left, right))
    if (i < len(source) or j < len(target)) and not result:
        return None
    if result:  # the remaining dimensions have size 1
        result[-1][0].extend(range(i, len(source)))
        result[-1][1].extend(range(j, len(target)))
    return result


def _align(source: Sequence[int], target: Sequence[int]) -> list[int | str] | None:
    """For each dimension of `source` the matching one of `target`, or "0" for size 1.

    None unless the shapes differ only by dimensions of size 1.
    """
    places, j = [], 0
    for i, n in enumerate(source):
        if n == 1 and (len(source) - i > len(target) - j or j == len(target) or target[j] != 1):
            places.append("0")
            continue
        while j < len(target) and target[j] == 1 and target[j] != n:
            j += 1
        if j == len(target) or target[j] != n:
            return None
        places.append(j)
        j += 1
    return places if all(n == 1 for n in target[j:]) else None


class ShapeOps:
    """The part of the builder that moves elements."""

    def _read(self, value: Value, shape: Sequence[int], constants: bool = True):
        """How a nest over `shape` reads `value`: (source, places, number).

        places: for each dimension of the source its loop, or "0" if it has size 1. number: the element of a splat
        constant, else None.
        """
        places = tuple(d if n == value.type.shape[d] and n != 1 or n == 1 else "0" for d, n in enumerate(shape)) \
            if value.type.rank else ()
        while value.owner is not None:
            owner = value.owner
            if constants and "splat" in owner.attributes:
                return value, places, owner.attributes["splat"]
            if "broadcast" in owner.attributes:
                places = tuple(places[r] if isinstance(r, int) else "0" for r in owner.attributes["broadcast"])
                value = owner.operands[0]
            elif owner.name in ("tensor.expand_shape", "tensor.collapse_shape"):
                aligned = _align(owner.operands[0].type.shape, value.type.shape)
                if aligned is None:
                    break
                places = tuple(places[r] if isinstance(r, int) else "0" for r in aligned)
                value = owner.operands[0]
            else:
                break
        return value, places, None

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """The same elements in row-major order; collapses dimensions first, then expands."""
        shape = tuple(map(int, shape))
        while value.owner is not None and value.owner.name in ("tensor.expand_shape", "tensor.collapse_shape"):
            value = value.owner.operands[0]
        source, element = value.type.shape, value.type.element
        if source == shape:
            return value
        if value.owner is not None and "splat" in value.owner.attributes:
            return self.constant(value.owner.attributes["splat"], TensorType(shape, element))
        pairs = groups(source, shape)
        if pairs is None and 0 in shape:
            return self.constant(0, TensorType(shape, element))
        if pairs is None:  # from or to rank 0
            pairs = []
        joined = tuple(source[left[0]] if len(left) == 1 else _product(source, left) for left, _ in pairs)
        if any(len(left) > 1 for left, _ in pairs) or (source and not joined):
            if joined != source:
                value = self.op("tensor.collapse_shape", [value], [TensorType(joined, element)],
                                {"groups": tuple(tuple(left) for left, _ in pairs)}).result
        if joined != shape:
            value = self.op("tensor.expand_shape", [value], [TensorType(shape, element)],
                            {"groups": tuple(tuple(right) for _, right in pairs)}).result
        return value

    def broadcast(self, value: Value, shape: Sequence[int], dims: Sequence[int]) -> Value:
        """Dimension i of `value` becomes dimension dims[i] of the result.

        Extents of 1 are repeated; other dimensions of the result are new.
        """
        shape, type = tuple(map(int, shape)), value.type
        if value.owner is not None and "splat" in value.owner.attributes:
            return self.constant(value.owner.attributes["splat"], TensorType(shape, type.element))
        if type.size == TensorType(shape, type.element).size and list(dims) == sorted(dims):
            return self.reshape(value, shape)
        places = tuple(d if type.shape[i] == shape[d] else "0" for i, d in enumerate(dims))
        block = Block([type.element, type.element])
        with self.inside(block):
            self.op("linalg.yield", [block.arguments[0]], [])
        # Read through reshapes that only add dimensions of size 1.
        while value.owner is not None and value.owner.name in ("tensor.expand_shape", "tensor.collapse_shape"):
            aligned = _align(value.owner.operands[0].type.shape, value.type.shape)
            if aligned is None:
                break
            places = tuple(places[r] if isinstance(r, int) else "0" for r in aligned)
            value = value.owner.operands[0]
        maps = [AffineMap(len(shape), places), AffineMap.identity(len(shape))]
        result, = self._generic([value], [self.empty(TensorType(shape, type.element))], maps, ["parallel"] * len(shape),
                                block, broadcast=places)
        return result

    def transpose(self, value: Value, permutation: Sequence[int]) -> Value:
        """Dimension i of the result is dimension permutation[i] of `value`."""
        permutation = tuple(map(int, permutation))
        type = TensorType(tuple(value.type.shape[d] for d in permutation), value.type.element)
        moved = [d for d in permutation if value.type.shape[d] != 1]
        if moved == sorted(moved):
            return self.reshape(value, type.shape)
        return self.op("linalg.transpose", [value, self.empty(type)], [type], {"permutation": permutation}).result

    def slice(self, value: Value, offsets: Sequence[int | Value], sizes: Sequence[int], strides: Sequence[int] | None = None) -> Value:
        """A slice of the same rank. Offsets are integers, or values of type index."""
        strides = tuple(strides or [1] * len(sizes))
        if 0 in sizes:
            return self.constant(0, TensorType(tuple(map(int, sizes)), value.type.element))
        static, dynamic = _split(offsets)
        if tuple(sizes) == value.type.shape and all(o == 0 for o in static):
            return value
        return self.op("tensor.extract_slice", [value, *dynamic], [TensorType(tuple(map(int, sizes)), value.type.element)],
                       dict(offsets=static, sizes=tuple(map(int, sizes)), strides=tuple(map(int, strides)))).result

    def update(self, value: Value, part: Value, offsets: Sequence[int | Value], strides: Sequence[int] | None = None) -> Value:
        """`value` with `part`, of the same rank, inserted at the offsets."""
        static, dynamic = _split(offsets)
        return self.op("tensor.insert_slice", [part, value, *dynamic], [value.type],
                       dict(offsets=static, sizes=part.type.shape, strides=tuple(map(int, strides or [1] * len(static))))).result

    def concat(self, values: Sequence[Value], dim: int) -> Value:
        """The values concatenated along `dim`."""
        values = [v for v in values if v.type.shape[dim]] or list(values[:1])
        if len(values) == 1:
            return values[0]
        shape = list(values[0].type.shape)
        shape[dim] = sum(v.type.shape[dim] for v in values)
        return self.op("tensor.concat", values, [TensorType(tuple(shape), values[0].type.element)], {"dim": dim}).result

    def pad(self, value: Value, low: Sequence[int], high: Sequence[int], fill) -> Value:
        """Adds `low` elements before and `high` after each dimension (both non-negative), equal to the number `fill`.
        """
        if not any(low) and not any(high):
            return value
        shape = tuple(int(l + n + h) for l, n, h in zip(low, value.type.shape, high))
        element = value.type.element
        return self.op("tensor.pad", [value, self.constant(fill, element)], [TensorType(shape, element)],
                       dict(low=tuple(map(int, low)), high=tuple(map(int, high)))).result


def _product(shape, dims):
    result = 1
    for d in dims:
        result *= shape[d]
    return result


def _split(offsets):
    return tuple(None if isinstance(o, Value) else int(o) for o in offsets), [o for o in offsets if isinstance(o, Value)]
