//===- Reduce.h - Combining contributions element by element ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_REDUCE_H
#define TESSERA_LIB_RUNTIME_EXECUTION_REDUCE_H

#include "tessera/Runtime/Artifact/DType.h"
#include "tessera/Sharding/TensorSharding.h"

#include <array>
#include <cstddef>

namespace tessera::runtime {

/// The most elements that one call of a ReduceFunction takes: some callers keep what it makes on the stack.
inline constexpr int64_t kReduceChunk = 512;

/// Combines `count` (at most kReduceChunk) elements of `numSources` arrays in the order given,
/// multiplies by `scale` where that is not 1, and writes them to `out`, which may be one of the
/// arrays. f16 and bf16 accumulate in f32; max and min propagate NaN; of i1, sum and max are or,
/// prod and min are and; integers wrap.
using ReduceFunction = void (*)(const std::byte *const *sources, int64_t numSources, int64_t count,
                                double scale, std::byte *out);
ReduceFunction reduceFunction(DType dtype, sharding::ReduceKind kind);

/// One element of a dtype as its bytes; the first sizeOf(dtype) count.
using ElementBytes = std::array<std::byte, 8>;

/// The value that changes nothing: 0, 1, the least, the greatest. Zero for `avg`, which has none.
ElementBytes identityOf(DType dtype, sharding::ReduceKind kind);
/// A number converted to a dtype; integers saturate, NaN becomes 0 there, and i1 asks for non-zero.
ElementBytes elementOf(DType dtype, double value);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_REDUCE_H
