//===- MoveJob.h - Strided moves on the host --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_MOVEJOB_H
#define TESSERA_LIB_RUNTIME_EXECUTION_MOVEJOB_H

#include "../Gpu/Driver.h"

namespace tessera::runtime::gpu {

/// Whether values are combined or scaled, not just copied.
inline bool reduces(const MoveJob &job) {
  return job.sources.size() > 1 || (job.sources.size() == 1 && job.scale != 1);
}
/// Elements a step of each outer loop where the box lies dense.
std::vector<int64_t> denseStrides(const Strides &strides);
/// Elements from the first to behind the last that a box touches.
int64_t spanOf(const Strides &strides, const std::vector<int64_t> &steps);
/// What a job reads and writes.
std::vector<Touch> touchesOf(const MoveJob &job);
/// Does it, in memory of the host.
void runMoveJob(const MoveJob &job);

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_EXECUTION_MOVEJOB_H
