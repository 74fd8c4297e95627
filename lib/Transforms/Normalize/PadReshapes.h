//===- PadReshapes.h - Reshapes of dimensions cut unevenly ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_PADRESHAPES_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_PADRESHAPES_H

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

namespace tessera::dist {

/// Pads the outermost of merged dimensions to a multiple of the devices that may cut it, and slices
/// what is merged, so that both may be cut; the same for dimensions that are split.
void padReshapes(mlir::func::FuncOp function, const MeshTable &meshes);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_PADRESHAPES_H
