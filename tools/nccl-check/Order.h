//===- Order.h - Whether ranks make the same calls --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_NCCL_CHECK_ORDER_H
#define TESSERA_TOOLS_NCCL_CHECK_ORDER_H

#include "Check.h"

#include <vector>

namespace tessera::nccl_check {

/// What a rank notes of a call for the others to read; plain bytes in a file.
struct Note {
  uint64_t sequence = 0; ///< from 1; 0: not written
  uint64_t count = 0;
  uint32_t kind = 0;
  int32_t type = 0, operation = 0, peer = 0;
};

/// The calls of one communicator. Each rank keeps a file of its last calls in a folder that all
/// ranks see; the n-th call of a rank must be the n-th of every other. Whoever comes later sees the
/// difference, so one of the two always does, before NCCL hangs or mixes data.
class Order {
public:
  static constexpr uint64_t kKept = 4096; ///< a rank may be so many calls ahead unseen
  /// `name` is the communicator's, equal on all ranks.
  Order(std::string folder, std::string name, int rank, int ranks);
  ~Order();
  Order(const Order &) = delete;
  Order &operator=(const Order &) = delete;
  /// Empty, or which rank called what else as its n-th.
  std::string add(const Call &call);

private:
  std::string pathOf(int rank) const;
  std::string folder, name;
  int rank, ranks;
  uint64_t sequence = 0;
  int mine = -1;
  std::vector<int> others; ///< descriptors, -1 until their file is there
};

} // namespace tessera::nccl_check

#endif // TESSERA_TOOLS_NCCL_CHECK_ORDER_H
