//===- Selections.h - Selections of elements of operands --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A slice needs its selected elements, whether its dimension is cut or whole. If it is
// whole, the required sharding is a window without axes; devices that hold the whole
// tensor satisfy it, too.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_SELECTIONS_H
#define TESSERA_SHARDING_SELECTIONS_H

#include "tessera/Sharding/TensorSharding.h"

#include <algorithm>

namespace tessera::sharding {

/// The sharding of the whole tensor that contains the elements of `sharding`: without selections in
/// dimensions that no axis cuts.
inline TensorSharding withoutSelections(TensorSharding sharding) {
  std::erase_if(sharding.windows, [&](const Window &window) {
    return window.isSelection() && sharding.dims[window.dim].empty();
  });
  return sharding;
}

/// Whether every device of `source` holds the elements that `target` requires, as a slice of its
/// buffer.
inline bool hasSelection(const TensorSharding &source, const TensorSharding &target) {
  return !target.windows.empty() && source.windows.empty() && withoutSelections(target) == source;
}

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_SELECTIONS_H
