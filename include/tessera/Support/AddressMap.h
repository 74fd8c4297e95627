//===- AddressMap.h - Maps from lists of unique addresses -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_ADDRESSMAP_H
#define TESSERA_SUPPORT_ADDRESSMAP_H

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SmallVector.h"

#include <unordered_map>

namespace tessera {

/// Addresses of things that exist once (types, attributes, kept values), which together say
/// everything that a result depends on.
using AddressKey = llvm::SmallVector<const void *, 12>;

struct AddressHash {
  size_t operator()(const AddressKey &key) const { return llvm::hash_combine_range(key); }
};

/// Remembers results by such keys. It is only ever looked up: addresses have no order that two runs
/// agree on.
template <typename T> using AddressMap = std::unordered_map<AddressKey, T, AddressHash>;

} // namespace tessera

#endif // TESSERA_SUPPORT_ADDRESSMAP_H
