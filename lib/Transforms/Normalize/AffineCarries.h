//===- AffineCarries.h - Recurrences h' = a h + b ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_NORMALIZE_AFFINECARRIES_H
#define TESSERA_LIB_TRANSFORMS_NORMALIZE_AFFINECARRIES_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/SmallBitVector.h"

namespace tessera::dist {

/// The part of an op's result that is linear in operands which come from a carry: the others count
/// where they are factors alone. Each element is computed from the same element of these operands.
class LinearPart {
public:
  /// Nothing if the op computes anything else. `carried`: by operand.
  static std::optional<LinearPart> of(mlir::linalg::LinalgOp op,
                                      const llvm::SmallBitVector &carried);

  /// Whether it is the operand itself.
  bool isOperand() const;
  /// Whether operand `index` is a factor, or decides between factors.
  bool reads(unsigned index) const { return isRead.test(index); }
  /// The loops of the op along which factors differ.
  llvm::SmallBitVector loopsOfFactors() const;
  /// Writes it on scalars, where `map` has the arguments of the op's body that are read.
  mlir::Value write(mlir::OpBuilder &b, mlir::IRMapping &map, llvm::ArrayRef<unsigned> loops) const;

  mlir::linalg::LinalgOp op;

private:
  explicit LinearPart(mlir::linalg::LinalgOp op)
      : op(op), isRead(op->getNumOperands()), indexed(op.getNumLoops()) {}
  bool isLinear(mlir::Value value) const { return linear.contains(value); }
  bool accept(mlir::Operation &inner);
  void read(mlir::Value value);
  void readFactors(mlir::Value value);
  mlir::Value copy(mlir::OpBuilder &b, mlir::Value value, mlir::IRMapping &map,
                   llvm::ArrayRef<unsigned> loops) const;
  mlir::Value write(mlir::OpBuilder &b, mlir::Value value, mlir::IRMapping &map,
                    llvm::ArrayRef<unsigned> loops) const;

  llvm::SmallBitVector isRead;        ///< by operand
  llvm::SmallBitVector indexed;       ///< by loop: whether its index is read
  llvm::DenseSet<mlir::Value> linear; ///< looked up only
};

/// The factor of a carry in what replaces it.
enum class CarryFactor {
  zero, ///< it is replaced
  one,  ///< something is added to it
  any,
};

/// A carry h of a loop that each iteration replaces by a h + b, element by element. The ops that do
/// so compute one element of their result from the same element of h.
struct AffineCarry {
  CarryFactor factor = CarryFactor::any;
  /// What multiplies it, from the carry to what is yielded, in order; empty if the factor is zero.
  llvm::SmallVector<LinearPart> parts;
  /// The dimensions of h, ascending, along which a differs.
  llvm::SmallVector<unsigned> dims;
  /// Whether contributions are added to the carry, which the loop reads nowhere else.
  bool isSum = false;

  /// Nothing if `carry`, a ranked tensor of floats or integers, is replaced in another way.
  static std::optional<AffineCarry> match(mlir::scf::ForOp loop, mlir::BlockArgument carry);
};

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_NORMALIZE_AFFINECARRIES_H
