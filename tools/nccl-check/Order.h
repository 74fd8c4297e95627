//===- Order.h - Comparison of the calls of ranks ---------------*- C++ -*-===//
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

/// A rank's note of a call for the others; plain bytes in a file.
struct Note {
  uint64_t sequence = 0; ///< from 1; 0: not written
  uint64_t count = 0;
  uint32_t kind = 0;
  int32_t type = 0, operation = 0, peer = 0;
};

/// The calls of one communicator. Each rank keeps a file of its last calls in a folder visible to
/// all ranks; the n-th call of a rank must equal the n-th of every other. The later of two ranks
/// detects a difference, before NCCL hangs or mixes data.
class Order {
public:
  static constexpr uint64_t kKept = 4096; ///< limit on unobserved calls that a rank may be ahead
  /// `name` is the communicator's, equal on all ranks.
  Order(std::string folder, std::string name, int rank, int ranks);
  ~Order();
  Order(const Order &) = delete;
  Order &operator=(const Order &) = delete;
  /// Empty, or the rank whose n-th call differs, and that call.
  std::string add(const Call &call);

private:
  std::string pathOf(int rank) const;
  std::string folder, name;
  int rank, ranks;
  uint64_t sequence = 0;
  int mine = -1;
  std::vector<int> others; ///< descriptors, -1 until their file exists
};

} // namespace tessera::nccl_check

#endif // TESSERA_TOOLS_NCCL_CHECK_ORDER_H
