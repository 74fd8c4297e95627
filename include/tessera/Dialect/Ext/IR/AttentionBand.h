//===- AttentionBand.h - The keys visible to a query ------------*- C++ -*-===//
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

/// A mask of index comparisons under which query i sees at most keys i + first to i + last.
struct KeyBand {
  unsigned query; ///< the loop of the query position
  int64_t first, last;

  int64_t size() const { return last - first + 1; }
};

/// The band of an attention, forward or backward, if it has at most half of the keys: a block of
/// queries then needs a halo of its keys instead of all keys. For the backward op, the band
/// contains the query's own position, and there are as many queries as keys.
///
/// In a row without visible keys, scores masked by a finite number are equal, so such a mask counts
/// only if each row has a visible key, and only indices decide the mask.
std::optional<KeyBand> keyBandOf(const AttentionParts &parts);

/// The same for one loop over queries, with a band of any size.
std::optional<KeyBand> visibleKeysOf(const AttentionParts &parts, unsigned query);

/// Comparisons of the op's regions that have one value for all keys i + first to i + last of query
/// i: tiles of such scores are computed without the mask.
struct KnownConditions {
  int64_t first, last;
  llvm::SmallVector<std::pair<mlir::Operation *, bool>> values;
};
/// None if no comparison depends on the distance of key and query only, or if they have their
/// values for different keys.
std::optional<KnownConditions> knownConditionsOf(const AttentionParts &parts, unsigned query);

} // namespace tessera::ext

#endif // TESSERA_DIALECT_EXT_IR_ATTENTIONBAND_H
