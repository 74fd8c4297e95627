//===- ShardingPool.h - One copy of every sharding --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLANNING_SHARDINGPOOL_H
#define TESSERA_PLANNING_SHARDINGPOOL_H

#include "tessera/Sharding/TensorSharding.h"

#include <set>

namespace tessera::dist {

/// Interns shardings, so that equal shardings have one address. A program with thousands of tensors
/// has dozens of distinct shardings: results are cached by address.
class ShardingPool {
public:
  const sharding::TensorSharding *keep(sharding::TensorSharding sharding) {
    return &*kept.insert(std::move(sharding)).first;
  }

private:
  std::set<sharding::TensorSharding> kept;
};

} // namespace tessera::dist

#endif // TESSERA_PLANNING_SHARDINGPOOL_H
