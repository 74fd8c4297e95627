//===- AttentionPart.h - A device's part of an attention --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_DIALECT_EXT_IR_ATTENTIONPART_H
#define TESSERA_LIB_DIALECT_EXT_IR_ATTENTIONPART_H

#include "Local.h"
#include "tessera/Dialect/Ext/IR/AttentionBand.h"
#include "tessera/Dialect/Ext/IR/AttentionRing.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"

namespace tessera::ext {

/// The position of the loop among the results of a map, a projected permutation.
unsigned dimOf(mlir::AffineMap map, unsigned loop);

/// The part of an attention on a device: operands and their positions in the global view.
class Part {
public:
  explicit Part(dist::PartitionContext &context);

  /// The global index of iteration `local` of a loop.
  mlir::Value globalIndex(mlir::OpBuilder &at, mlir::Location loc, unsigned loop,
                          mlir::Value local) const;
  auto indices() const {
    return [this](mlir::OpBuilder &at, mlir::Location loc, unsigned loop, mlir::Value local) {
      return globalIndex(at, loc, loop, local);
    };
  }

  dist::PartitionContext &context;
  AttentionParts parts;
  llvm::SmallVector<mlir::Value> operands;
  llvm::SmallVector<std::pair<unsigned, int64_t>> limits;
  std::optional<KeyBand> band;  ///< if its queries are sharded
  std::optional<unsigned> ring; ///< the loop over queries that is sharded together with the keys

private:
  /// Zeroes operands and skips scores at indices of a loop outside of its tensors.
  void leaveOutBeyond(unsigned loop);

  llvm::SmallVector<int64_t> factors;
  llvm::SmallVector<int64_t> shifts; ///< by loop: begin of a window relative to the device's part
};

} // namespace tessera::ext

#endif // TESSERA_LIB_DIALECT_EXT_IR_ATTENTIONPART_H
