//===- Hazards.h - Accesses that nothing orders -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two operations that touch the same bytes, one of them writing, must be ordered
// by stream order or by events. Vector clocks (Fidge, Mattern) decide it without
// trying the other order: an access happened before an operation when the
// operation's clock has reached it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_HAZARDS_H
#define TESSERA_LIB_RUNTIME_GPU_HAZARDS_H

#include "Driver.h"

#include <map>

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

/// Who touched which bytes last.
class Hazards {
public:
  /// Notes an access, or says which earlier one it is not ordered with. `clock` is that of `by`,
  /// and includes it.
  Status access(const Touch &touch, const Accessor &by, const VectorClock &clock);

private:
  struct Interval {
    uintptr_t end = 0;
    bool written = false;
    Accessor writer;
    std::vector<Accessor> readers; ///< since the last write, the latest of each stream
  };
  void cutAt(uintptr_t address);
  Status check(const Interval &interval, uintptr_t begin, const Touch &touch, const Accessor &by,
               const VectorClock &clock) const;

  std::map<uintptr_t, Interval> intervals; ///< by begin; disjoint
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_HAZARDS_H
