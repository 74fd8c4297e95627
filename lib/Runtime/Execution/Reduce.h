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

/// Limit on the elements of one call of a ReduceFunction: some callers keep its results on the
/// stack.
inline constexpr int64_t kReduceChunk = 512;

/// Combines `count` (at most kReduceChunk) elements of `numSources` arrays in the order given,
/// multiplies by `scale` if that is not 1, and writes them to `out`, which may be one of the
/// arrays. f16 and bf16 accumulate in f32; max and min propagate NaN; for i1, sum and max are or,
/// prod and min are and; integers wrap.
using ReduceFunction = void (*)(const std::byte *const *sources, int64_t numSources, int64_t count,
                                double scale, std::byte *out);
ReduceFunction reduceFunction(DType dtype, sharding::ReduceKind kind);

/// One element of a dtype as its bytes; the first sizeOf(dtype) count.
using ElementBytes = std::array<std::byte, 8>;

/// The identity: 0, 1, the least, the greatest. Zero for `avg`, which has none.
ElementBytes identityOf(DType dtype, sharding::ReduceKind kind);
/// A number converted to a dtype; integers saturate and turn NaN into 0, i1 is true if non-zero.
ElementBytes elementOf(DType dtype, double value);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_REDUCE_H
