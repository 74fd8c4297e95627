//===- GroupCall.h - A collective on buffers of a rank ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GROUPS_GROUPCALL_H
#define TESSERA_LIB_RUNTIME_GROUPS_GROUPCALL_H

#include "../Ranks/AlgorithmChoice.h"
#include "Elements.h"

namespace tessera::runtime {

/// A collective on buffers of this rank. Counts, places and sharing of buffers are those of
/// PlanRequest; `root` is a rank of the job.
struct GroupCall {
  sharding::CollectiveKind kind = sharding::CollectiveKind::all_reduce;
  ElementType type;
  GroupReduction reduction = GroupReduction::sum;
  int64_t root = 0;
  std::vector<int64_t> counts, receives;
  const std::byte *input = nullptr;
  std::byte *output = nullptr;
  /// Overrides the choice; may add in another order than rank order.
  std::optional<Algorithm> algorithm;
  std::string where = {}; ///< of the caller: "train.py:12"; for messages

  bool isOnDevice = false; ///< the buffers are memory of the device
  /// On a device: the parts of each rank, if they are not contiguous in `input` and `output`;
  /// otherwise empty.
  std::vector<const std::byte *> inputs = {};
  std::vector<std::byte *> outputs = {};
  /// On a device: earlier work on this stream of the driver comes first.
  void *stream = nullptr;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_GROUPS_GROUPCALL_H
