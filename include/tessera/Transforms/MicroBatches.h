//===- MicroBatches.h - Devices that share a micro-batch --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRANSFORMS_MICROBATCHES_H
#define TESSERA_TRANSFORMS_MICROBATCHES_H

#include "mlir/IR/BuiltinOps.h"

namespace tessera::dist {

/// Cuts the parts of a batch that a loop takes in turn. `x.reshape(A, B / A, …)` of a batch whose
/// rows are cut over n devices has whole parts on few devices: while a loop over A computes one of
/// them, the others have nothing to do, or repeat the work. Each part gets the cut of the batch,
/// a dist.shard_tensor behind the reshape, if n divides B / A. The same for parts of a shuffled
/// batch, x[order].reshape(A, B / A, …), and for those that are looked up by part of an order,
/// x[order[i : i + B / A]]: rows of a batch whose cut dimension is merged with others have no cut
/// to follow. For normalized programs; returns whether there was such a batch.
bool cutMicroBatches(mlir::ModuleOp module);

} // namespace tessera::dist

#endif // TESSERA_TRANSFORMS_MICROBATCHES_H
