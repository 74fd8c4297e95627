//===- AtomicParts.h - Parts of mesh axes that layouts name -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SHARDING_ATOMICPARTS_H
#define TESSERA_LIB_SHARDING_ATOMICPARTS_H

#include "tessera/Sharding/Layout.h"

namespace tessera::sharding {

/// The mesh axes split at every boundary that a layout names, so that devices can be compared part
/// by part: "x" of 4 becomes (1)2 and (2)2 if one of them is named.
AxisList atomicParts(const Mesh &mesh, const std::vector<const Layout *> &layouts);

} // namespace tessera::sharding

#endif // TESSERA_LIB_SHARDING_ATOMICPARTS_H
