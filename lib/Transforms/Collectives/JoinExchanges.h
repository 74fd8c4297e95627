//===- JoinExchanges.h - Join exchanges that send less together -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_COLLECTIVES_JOINEXCHANGES_H
#define TESSERA_LIB_TRANSFORMS_COLLECTIVES_JOINEXCHANGES_H

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/IR/Block.h"

namespace tessera::dist {

/// Joins the exchanges that one op reads: together they cost the busiest device less than one by
/// one.
void joinExchangesReadBy(mlir::Operation *reader);

/// Joins the exchanges of each value of a block where that sends less.
void joinExchangesOfValues(mlir::Block &block, const MeshTable &meshes);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_COLLECTIVES_JOINEXCHANGES_H
