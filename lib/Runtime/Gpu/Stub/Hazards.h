//===- Hazards.h - Accesses that nothing orders -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Accesses to the same bytes are ordered by stream order or by events. Vector
// clocks (Fidge, Mattern) decide it without trying the other order: an access
// happened before an operation when the operation's clock has reached it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_STUB_HAZARDS_H
#define TESSERA_LIB_RUNTIME_GPU_STUB_HAZARDS_H

#include "../AccessMap.h"
#include "../Driver.h"

namespace tessera::runtime::gpu {

/// By stream: how many of its operations happened before.
using VectorClock = std::vector<int64_t>;

/// Raises `clock` to include `other`.
void join(VectorClock &clock, const VectorClock &other);

/// An operation as others meet it later.
struct Accessor {
  int64_t stream = 0;   ///< index
  int64_t sequence = 0; ///< from 1, within its stream
  const Step *step = nullptr;
  const char *what = "";
  int64_t device = 0;
};

/// "all_gather 'name' at file:3 on device 2".
std::string describe(const Accessor &accessor);

/// Checks each access against those before it.
class Hazards {
public:
  /// Notes an access, or says which earlier one it is not ordered with. `clock` is that of `by`,
  /// and includes it.
  Status access(const Touch &touch, const Accessor &by, const VectorClock &clock);

private:
  AccessMap<uintptr_t, Accessor> touched;
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_STUB_HAZARDS_H
