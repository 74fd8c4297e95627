//===- GemmFormer.h - Rewrite contractions as products ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_GEMMFORMER_H
#define TESSERA_LIB_CODEGEN_GEMMFORMER_H

#include "tessera/Codegen/Gemm.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

namespace tessera::codegen {

/// An operand or the result, with its map over the loops.
struct ContractionOperand {
  mlir::Value value;
  llvm::SmallVector<unsigned> loops; ///< loop of each dimension
};

/// The description of a contraction before its op is created.
struct Contraction {
  llvm::SmallVector<int64_t> extents; ///< of the loops
  ContractionOperand operands[2];
  llvm::SmallVector<unsigned> result;

  llvm::SmallVector<mlir::AffineMap> maps(mlir::MLIRContext *context) const {
    llvm::SmallVector<mlir::AffineMap> maps;
    for (llvm::ArrayRef<unsigned> loops :
         {llvm::ArrayRef(operands[0].loops), llvm::ArrayRef(operands[1].loops),
          llvm::ArrayRef(result)}) {
      llvm::SmallVector<mlir::AffineExpr> exprs;
      for (unsigned loop : loops)
        exprs.push_back(mlir::getAffineDimExpr(loop, context));
      maps.push_back(mlir::AffineMap::get(extents.size(), 0, exprs, context));
    }
    return maps;
  }
  bool isGemm(mlir::MLIRContext *context) const {
    return matchGemm(maps(context), extents).has_value();
  }
  llvm::SmallVector<int64_t> shapeOf(llvm::ArrayRef<unsigned> loops) const {
    return llvm::map_to_vector(loops, [&](unsigned loop) { return extents[loop]; });
  }
};

/// Rewrites one contraction.
class GemmFormer {
public:
  explicit GemmFormer(mlir::linalg::LinalgOp op) : op(op), builder(op) {}
  void run();

private:
  void splitLoops(Contraction &contraction);
  void takeReorderings(Contraction &contraction);
  void takeResultReorderings(Contraction &contraction);
  /// Finds operand copies of as few elements as possible that make it a gemm. Returns false if
  /// there are none.
  bool pack(Contraction &contraction);
  void rewrite(const Contraction &contraction, llvm::ArrayRef<unsigned> wanted);

  mlir::linalg::LinalgOp op;
  mlir::OpBuilder builder;
  llvm::SmallVector<llvm::SmallVector<unsigned>>
      parts;            ///< the loops that each original loop became
  mlir::Value replaced; ///< the value that the new result replaces
  bool tookAny = false; ///< a reordering is in the maps
};

/// The groups of dimensions, of an operand with its loops split into `parts`, that form each of its
/// original dimensions.
llvm::SmallVector<mlir::ReassociationIndices>
gemmGroupsOf(llvm::ArrayRef<llvm::SmallVector<unsigned>> parts, llvm::ArrayRef<unsigned> loops);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_GEMMFORMER_H
