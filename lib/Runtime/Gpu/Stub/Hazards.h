//===- Hazards.h - Detect unordered accesses --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Accesses to the same bytes are ordered by streams or by events. Vector clocks
// (Fidge, Mattern) decide this without executing another order: an access happened
// before an operation if the clock of the operation has reached it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_STUB_HAZARDS_H
#define TESSERA_LIB_RUNTIME_GPU_STUB_HAZARDS_H

#include "../AccessMap.h"
#include "../Driver.h"

namespace tessera::runtime::gpu {

/// By stream: the number of its operations that happened before.
using VectorClock = std::vector<int64_t>;

/// Raises `clock` to include `other`.
void join(VectorClock &clock, const VectorClock &other);

/// An operation as recorded for later accesses.
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
  /// Records an access; the error names an earlier access that is not ordered before it. `clock` is
  /// the clock of `by`, including `by` itself.
  Status access(const Touch &touch, const Accessor &by, const VectorClock &clock);

private:
  AccessMap<uintptr_t, Accessor> touched;
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_STUB_HAZARDS_H
