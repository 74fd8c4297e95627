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

/// The result of a map, a projected permutation, that is the loop.
unsigned dimOf(mlir::AffineMap map, unsigned loop);

/// A part of an attention: the operands, and where they lie.
class Part {
public:
  explicit Part(dist::PartitionContext &context);

  /// The index that iteration `local` of a loop has in the global view.
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
  std::optional<KeyBand> band;  ///< where it is cut
  std::optional<unsigned> ring; ///< the loop over queries whose cut is that of the keys, too

private:
  /// Operands are zero, and scores left out, where the index in a loop is none of the tensor's.
  void leaveOutBeyond(unsigned loop);

  llvm::SmallVector<int64_t> factors;
  llvm::SmallVector<int64_t> shifts; ///< by loop: where a device's window begins, from its own part
};

} // namespace tessera::ext

#endif // TESSERA_LIB_DIALECT_EXT_IR_ATTENTIONPART_H
