//===- MoveJob.h - Strided moves on the host --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_MOVEJOB_H
#define TESSERA_LIB_RUNTIME_EXECUTION_MOVEJOB_H

#include "Issue.h"
#include "Move.h"

namespace tessera::runtime {

/// A strided copy, reduction or fill between buffers of one address space. Pointers are those of
/// the box's first element.
struct MoveJob {
  const Strides *strides; ///< outlives the job; a fill uses only `target`
  DType dtype = DType::f32;
  sharding::ReduceKind reduction = sharding::ReduceKind::sum;
  double scale = 1;
  std::vector<const std::byte *> sources; ///< reduced in order; none: `value` is written
  std::vector<std::byte *> targets;
  ElementBytes value{};
};

/// Whether values are combined or scaled, not just copied.
inline bool reduces(const MoveJob &job) {
  return job.sources.size() > 1 || (job.sources.size() == 1 && job.scale != 1);
}
/// Number of elements from the first to the last of a box, inclusive.
int64_t spanOf(const Strides &strides, const std::vector<int64_t> &steps);
/// The accesses of a job.
std::vector<Touch> touchesOf(const MoveJob &job);
/// Executes a job in host memory.
void runMoveJob(const MoveJob &job);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_MOVEJOB_H
