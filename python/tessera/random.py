# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counter-based random numbers: element i depends on the key and i alone, for any placement of the tensor.

The bits are Threefry-2x32 (tessera.ir.random) of the counter (0, i) under the key.
"""

from __future__ import annotations

import math

from . import ops
from .ir import AffineMap, TensorType
from .ir.random import threefry
from .ir.scalars import row_major
from .ops.base import op, operand, tensor_of
from .ops.shapes import _extents
from .tensor import Tensor


def key(seed: int, counter=0) -> Tensor:
    """A key, shape (2,) int32, from a seed and a counter, which may be a traced integer."""
    low = tensor_of(counter, "key").astype("int32").reshape((1,))
    seed = (seed + (1 << 31)) % (1 << 32) - (1 << 31)
    return ops.concat([ops.full((1,), seed, "int32"), low])


@op
def bits(trace, key, shape):
    """Random int32 tensor of a shape."""
    b, shape = trace.builder, _extents("bits", shape)
    words = operand(trace, tensor_of(key, "bits"), "i32")
    result = TensorType(shape, "i32")
    if not result.size:
        return trace.tensor(b.constant(0, result))
    k0, k1 = [b.reshape(b.slice(words, [i], [1]), ()) for i in (0, 1)]
    none = AffineMap(len(shape), ())
    value, = b.generic([(k0, none), (k1, none)], [(b.empty(result), AffineMap.identity(len(shape)))], ["parallel"] * len(shape),
                       lambda k0, k1, _: b.apply("arith.xori", *threefry(b, k0, k1, None, row_major(b, dict(enumerate(shape))))))
    return trace.tensor(value)


@op
def uniform(trace, key, shape, low=0.0, high=1.0):
    """float32 tensor, uniform in [low, high): low plus multiples of (high - low) / 2^24."""
    b = trace.builder
    words = operand(trace, bits(key, shape))
    scale = (high - low) / (1 << 24)

    def body(x):
        whole = b.cast("arith.sitofp", b.apply("arith.shrui", x, b.constant(8, "i32")), "f32")
        scaled = b.apply("arith.mulf", whole, b.constant(scale, "f32"))
        return scaled if low == 0 else b.apply("arith.addf", scaled, b.constant(low, "f32"))
    return trace.tensor(b.pointwise([words], words.type.shape, body))


def normal(key, shape) -> Tensor:
    """float32 tensor, standard normal distribution (Box and Muller, 1958)."""
    shape = _extents("normal", shape)
    pair = uniform(key, (*shape, 2))
    radius = ops.sqrt(-2 * ops.log(1 - pair[..., 0]))
    return radius * ops.cos(2 * math.pi * pair[..., 1])
