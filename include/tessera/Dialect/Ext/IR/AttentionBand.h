//===- AttentionBand.h - The keys that a query sees -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_EXT_IR_ATTENTIONBAND_H
#define TESSERA_DIALECT_EXT_IR_ATTENTIONBAND_H

#include "tessera/Dialect/Ext/IR/AttentionDomain.h"

#include <optional>

namespace tessera::ext {

/// A mask made of indices lets query i see keys i + first to i + last at most.
struct KeyBand {
  unsigned query; ///< the loop of the query position
  int64_t first, last;

  int64_t size() const { return last - first + 1; }
};

/// The band of an attention, forward or backward, where it has at most half of the keys: a block of
/// queries then needs a halo of its keys instead of all keys. Of the backward op, the band contains
/// the query's own position, and there are as many queries as keys.
///
/// A score that is masked by a finite number is equal to the others of a row without visible keys,
/// so such a mask counts only if each row has a visible key, and nothing but indices decides that.
std::optional<KeyBand> keyBandOf(const AttentionParts &parts);

/// The same of one loop over queries, however many keys the band has.
std::optional<KeyBand> visibleKeysOf(const AttentionParts &parts, unsigned query);

} // namespace tessera::ext

#endif // TESSERA_DIALECT_EXT_IR_ATTENTIONBAND_H
