//===- Selections.h - Operands of which an op needs a part ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A slice needs the elements that it takes, whether its dimension is cut or whole.
// Where it is whole, the sharding that it asks for is a window without axes: devices
// that have the whole tensor have that, too.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_SELECTIONS_H
#define TESSERA_SHARDING_SELECTIONS_H

#include "tessera/Sharding/TensorSharding.h"

#include <algorithm>

namespace tessera::sharding {

/// The sharding of the whole tensor that has what `sharding` asks for: without selections in
/// dimensions that no axis cuts.
inline TensorSharding withoutSelections(TensorSharding sharding) {
  std::erase_if(sharding.windows, [&](const Window &window) {
    return window.isSelection() && sharding.dims[window.dim].empty();
  });
  return sharding;
}

/// Whether every device of `source` has what `target` asks for, as a slice of its buffer.
inline bool hasSelection(const TensorSharding &source, const TensorSharding &target) {
  return !target.windows.empty() && source.windows.empty() && withoutSelections(target) == source;
}

} // namespace tessera::sharding

#endif // TESSERA_SHARDING_SELECTIONS_H
