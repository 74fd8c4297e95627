//===- BlockShifts.h - Shifts of a value by blocks --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_BLOCKSHIFTS_H
#define TESSERA_TRANSFORMS_BLOCKSHIFTS_H

#include "mlir/IR/BuiltinOps.h"

namespace tessera::dist {

/// Where a value is shifted along several dimensions at once, or by several distances along one,
/// and annotations cut these dimensions evenly: divides it into blocks, of which each gets a
/// border from its neighbors, one dimension after the other. The shifts are slices of blocks with
/// borders. For normalized programs; returns whether there was such a value.
bool blockShifts(mlir::ModuleOp module);

} // namespace tessera::dist

#endif // TESSERA_TRANSFORMS_BLOCKSHIFTS_H
