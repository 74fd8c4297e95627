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

/// Addresses of unique objects (types, attributes, interned values) that together determine a
/// result.
using AddressKey = llvm::SmallVector<const void *, 12>;

/// Hashes a key by its addresses; the result differs between runs.
struct AddressHash {
  size_t operator()(const AddressKey &key) const { return llvm::hash_combine_range(key); }
};

/// Caches results by such keys. Look-ups only, no iteration: the order of addresses differs between
/// runs.
template <typename T> using AddressMap = std::unordered_map<AddressKey, T, AddressHash>;

} // namespace tessera

#endif // TESSERA_SUPPORT_ADDRESSMAP_H
