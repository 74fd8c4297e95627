# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sliding windows: nests that read `stride * i + dilation * k` of a padded tensor, for convolutions and pooling.

Windows that tile their dimension are expressed by splitting the dimension and reducing the inner part.
"""

from __future__ import annotations

import re

from .scalars import row_major
from .types import AffineMap, TensorType


def place(out: int, window: int, stride: int, dilation: int, sizes) -> str:
    """The index expression `out * stride + window * dilation`; the longer loop first, because it is the one to shard.
    """
    term = lambda loop, factor: f"d{loop}" if factor == 1 else f"d{loop} * {factor}"
    terms = [(sizes[out], term(out, stride)), (sizes[window], term(window, dilation))]
    return " + ".join(text for _, text in sorted(terms, key=lambda t: -t[0]))


def edges(b, x, padding, fill):
    """Pads by (low, high) per dimension; negative numbers crop."""
    offsets = [max(0, -low) for low, _ in padding]
    sizes = [n + min(0, low) + min(0, high) for n, (low, high) in zip(x.type.shape, padding)]
    return b.pad(b.slice(x, offsets, sizes), [max(0, low) for low, _ in padding], [max(0, high) for _, high in padding], fill)


def convolve(b, lhs, rhs, specs, shape_out, strides, dilation, feature_groups, batch_groups, element):
    """A convolution of a padded and dilated lhs, with results of type `element`.

    specs: the dimension numbers of lhs (batch, channel, space...), rhs (output channel, input channel, space...) and
    the result (batch, channel, space...). feature_groups, batch_groups: numbers of independent groups.
    """
    (lhs_spec, rhs_spec, out_spec), space = specs, len(shape_out) - 2
    spatial, lhs_space, rhs_space = range(space), lhs_spec[2:], rhs_spec[2:]
    # Groups: split a dimension of lhs, and the output features of rhs, into (group, rest).
    groups = max(feature_groups, batch_groups)
    grouped = lhs_spec[1 if feature_groups > 1 else 0] if groups > 1 else None
    # Loops: batch, group, output feature, output space; input feature, window.
    batch, group, feature, first, channel, window = 0, 1, 2, 3, 3 + space, 4 + space
    lhs_places, rhs_places = [None] * lhs.type.rank, [None] * rhs.type.rank
    sizes = [0] * (4 + 2 * space)
    sizes[group] = groups
    sizes[batch] = lhs.type.shape[lhs_spec[0]] // batch_groups
    sizes[channel] = rhs.type.shape[rhs_spec[1]]
    sizes[feature] = rhs.type.shape[rhs_spec[0]] // groups
    lhs_places[lhs_spec[0]], lhs_places[lhs_spec[1]] = batch, channel
    rhs_places[rhs_spec[0]], rhs_places[rhs_spec[1]] = feature, channel
    for i in spatial:
        sizes[first + i], sizes[window + i] = shape_out[out_spec[2 + i]], rhs.type.shape[rhs_space[i]]
    for i in spatial:
        stride, d = strides[i], lhs_space[i]
        if sizes[window + i] == 1:  # no window: every stride-th element
            length = (sizes[first + i] - 1) * stride + 1
            if lhs.type.shape[d] != sizes[first + i]:
                shape = list(lhs.type.shape)
                shape[d] = sizes[first + i]
                ones = [stride if k == d else 1 for k in range(len(shape))]
                assert length <= lhs.type.shape[d]
                lhs = b.slice(lhs, [0] * len(shape), shape, ones)
            lhs_places[d], rhs_places[rhs_space[i]] = first + i, "0"
        elif sizes[first + i] == 1:  # the whole dimension is one window
            length = (sizes[window + i] - 1) * dilation[i] + 1
            shape, ones = list(lhs.type.shape), [1] * lhs.type.rank
            shape[d], ones[d] = sizes[window + i], dilation[i]
            assert length <= lhs.type.shape[d]
            lhs = b.slice(lhs, [0] * len(shape), shape, ones)
            lhs_places[d], rhs_places[rhs_space[i]] = window + i, window + i
        else:
            lhs_places[d] = place(first + i, window + i, stride, dilation[i], sizes)
            rhs_places[rhs_space[i]] = window + i
    if groups > 1:
        lhs, lhs_places = split(b, lhs, lhs_places, grouped, groups, group)
        rhs, rhs_places = split(b, rhs, rhs_places, rhs_spec[0], groups, group)
    written = [None] * len(shape_out)
    written[out_spec[0]], written[out_spec[1]] = batch, feature
    for i in spatial:
        written[out_spec[2 + i]] = first + i
    at = written.index(feature)
    written[at:at] = [group] if groups > 1 else []
    result = contract(b, lhs, lhs_places, rhs, rhs_places, written, sizes, element)
    return b.reshape(result, shape_out)


def split(b, x, places, dim, groups, loop):
    """Splits dimension `dim` into (groups, rest); `loop` iterates over the groups. Returns the tensor and its loops."""
    shape = x.type.shape
    x = b.reshape(x, (*shape[:dim], groups, shape[dim] // groups, *shape[dim + 1:]))
    return x, [*places[:dim], loop, *places[dim:]]


def contract(b, lhs, lhs_places, rhs, rhs_places, written, sizes, element):
    """The sum of products of two operands read at `lhs_places` and `rhs_places`.

    Unused loops and dimensions of size 1 are removed.
    """
    keep = [d for d, place in enumerate(rhs_places) if place != "0"]
    rhs = b.reshape(rhs, [rhs.type.shape[d] for d in keep])
    rhs_places = [rhs_places[d] for d in keep]
    used = sorted({loop for loop in (*rhs_places, *written, *[p for p in lhs_places if isinstance(p, int)])})
    number = {loop: i for i, loop in enumerate(used)}

    def renamed(place):
        if isinstance(place, int):
            return number[place]
        return re.sub(r"d(\d+)", lambda m: f"d{number[int(m[1])]}", place)
    lhs_places, rhs_places, written = [[renamed(p) for p in places] for places in (lhs_places, rhs_places, written)]
    sizes = [sizes[loop] for loop in used]
    if all(isinstance(p, int) for p in lhs_places):
        return b.contract(lhs, rhs, lhs_places, rhs_places, written, sizes, element)
    type = TensorType(tuple(sizes[i] for i in written), element)
    wider = lambda x: x if x.type == element else b.cast("arith.extf", x, element)
    result, = b.generic([(lhs, AffineMap(len(used), tuple(lhs_places))), (rhs, AffineMap(len(used), tuple(rhs_places)))],
                        [(b.constant(0, type), AffineMap(len(used), tuple(written)))],
                        ["parallel" if i in written else "reduction" for i in range(len(used))],
                        lambda x, w, acc: b.apply("arith.addf", acc, b.apply("arith.mulf", wider(x), wider(w))))
    return result


class Windows:
    """Sliding windows over the dimensions of a padded tensor.

    dims, strides, dilation: size, stride and dilation of the window per dimension; counts: number of windows. Only
    dimensions with a window longer than 1 get an inner loop.
    """

    def __init__(self, shape, dims, strides, dilation, counts):
        self.shape, self.dims, self.strides, self.dilation, self.counts = shape, dims, strides, dilation, counts
        self.moving = [d for d, n in enumerate(dims) if n > 1]
        # Loops: over the windows, then inside them.
        self.sizes = [*counts, *[dims[d] for d in self.moving]]
        inner = {d: len(counts) + i for i, d in enumerate(self.moving)}
        self.read = AffineMap(len(self.sizes), tuple(
            place(d, inner[d], strides[d], dilation[d], self.sizes) if d in inner else d if strides[d] == 1 else f"d{d} * {strides[d]}"
            for d in range(len(counts))))
        self.outer = AffineMap(len(self.sizes), tuple(range(len(counts))))
        self.inner = AffineMap(len(self.sizes), tuple(range(len(counts), len(self.sizes))))

    def tiles(self) -> bool:
        """Whether windows neither overlap nor leave gaps."""
        return all(s == n and d == 1 for s, n, d in zip(self.strides, self.dims, self.dilation))

    def extents(self, b, element):
        """An operand that gives the inner loops their extents; its elements are not read."""
        return b.empty(TensorType(tuple(self.dims[d] for d in self.moving), element)), self.inner

    def iterators(self):
        """The iterator types of a nest over positions, then over elements of a window."""
        return ["parallel"] * len(self.counts) + ["reduction"] * len(self.moving)

    def number(self, b, element):
        """Inside the body: the row-major position in the window."""
        return row_major(b, {len(self.counts) + i: self.dims[d] for i, d in enumerate(self.moving)}, element)

    def split(self, b, x):
        """For tiling windows: x with each dimension split into (window, inside), and the dimensions inside."""
        x = b.slice(x, [0] * len(self.counts), [c * n for c, n in zip(self.counts, self.dims)])
        shape, inner = [], []
        for d, count in enumerate(self.counts):
            shape.append(count)
            if d in self.moving:
                inner.append(len(shape))
                shape.append(self.dims[d])
        return b.reshape(x, shape), inner

    def fold(self, b, x, combine, identity, element, prepare=lambda x: x):
        """Reduces the elements of each window."""
        if self.tiles():
            parts, inner = self.split(b, x)
            return b.reduce(parts, inner, combine, identity, element, prepare)
        init = b.constant(identity, TensorType(tuple(self.counts), element))
        result, = b.generic([(x, self.read), self.extents(b, x.type.element)], [(init, self.outer)], self.iterators(),
                            lambda x, _, acc: combine(acc, prepare(x)))
        return result


def dilate(b, x, steps, fill):
    """Inserts step - 1 elements `fill` between neighbors, by padding a new inner dimension and collapsing it."""
    for d, step in enumerate(steps):
        n = x.type.shape[d]
        if step == 1 or n <= 1:
            continue
        shape = list(x.type.shape)
        apart = b.reshape(x, [*shape[:d + 1], 1, *shape[d + 1:]])
        high = [0] * (len(shape) + 1)
        high[d + 1] = step - 1
        padded = b.pad(apart, [0] * (len(shape) + 1), high, fill)
        shape[d] = n * step
        joined = b.reshape(padded, shape)
        shape[d] = (n - 1) * step + 1
        x = b.slice(joined, [0] * len(shape), shape)
    return x
