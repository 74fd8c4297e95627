//===- ProductParts.h - Products in parts -----------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What DecomposeProducts.cpp and RingProducts.cpp share: both compute a product in parts,
// so that one part is sent while another one is multiplied.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TRANSFORMS_COLLECTIVES_PRODUCTPARTS_H
#define TESSERA_LIB_TRANSFORMS_COLLECTIVES_PRODUCTPARTS_H

#include "tessera/Planning/StepCosts.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tessera::dist {

/// The attribute that has the number of a part. Collectives of different parts are not joined: that
/// would undo the decomposition.
inline constexpr llvm::StringLiteral kPart = "part";
/// The least gain of a decomposition, as a fraction of the shorter of communication and products.
inline constexpr double kLeastGainInParts = 0.05;

/// The dimension of an operand that is exactly a loop; none if the operand does not depend on it.
/// Fails for other dependences.
mlir::FailureOr<std::optional<unsigned>> dimOfLoop(mlir::AffineMap map, unsigned loop);

/// The type with another size along a dimension.
mlir::RankedTensorType withSize(mlir::Type type, unsigned dim, int64_t size);
/// A part of a tensor along a dimension, from index `from` on; a constant of an equally filled one.
mlir::Value sliceOf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, unsigned dim,
                    mlir::OpFoldResult from, int64_t size);
/// `into` with a part along a dimension replaced, from index `from` on.
mlir::Value insertedAt(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value part,
                       mlir::Value into, unsigned dim, mlir::OpFoldResult from);

double bytesOf(mlir::Value tensor);

/// What `dist-decompose-products` makes of a product and a collective; infinite where it does not
/// cut them.
struct PartsCost {
  double seconds = std::numeric_limits<double>::infinity();
  double copiedBytes = 0; ///< read and written to take parts and to put them together
};
/// `gathered`: the operand that the collective gathers; null: it reduces and scatters the result.
PartsCost costInParts(mlir::linalg::LinalgOp product, mlir::Operation *collective,
                      mlir::OpOperand *gathered, const StepCosts &costs);

} // namespace tessera::dist

#endif // TESSERA_LIB_TRANSFORMS_COLLECTIVES_PRODUCTPARTS_H
