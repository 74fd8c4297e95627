//===- GroupedProduct.h - Rows times the matrix of their group --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product in which each row has a matrix of its own, as in a mixture of experts,
// and its derivative by the matrices are sums of which one group counts:
//
//   y[r, n]    = sum over g, k of select(group[r] == g, x[r, k] w[g, k, n], 0)
//   d[g, k, n] = sum over r    of select(group[r] == g, x[r, k] y[r, n], 0)
//
// Rows may have several dimensions, of which x or y may lack some: the choices of a token.
// In this form they have a sharding rule like any other product: a device has some of
// the rows, or some of the groups, or some of k and n. Costs count one group for each
// row. Code generation multiplies blocks of rows of one group.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_RULES_GROUPEDPRODUCT_H
#define TESSERA_DIALECT_DIST_RULES_GROUPEDPRODUCT_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <array>

namespace tessera::dist {

struct GroupedProduct {
  llvm::SmallVector<unsigned, 2> rows;       ///< loops, in the order of the index
  unsigned group;                            ///< a loop
  mlir::OpOperand *index;                    ///< the tensor of the rows' groups
  std::array<mlir::OpOperand *, 2> factors;  ///< of the product
  mlir::Value number;                        ///< in the body: the group of the row
  llvm::SmallVector<mlir::Value, 2> offsets; ///< added to the loop before it is compared
  llvm::SmallVector<mlir::Value, 2> guards;  ///< in the body: other conditions of a term
};

/// The parts of such a sum, possibly of one device: with an offset of the groups, and conditions
/// that leave out the padding of uneven parts.
std::optional<GroupedProduct> matchGroupedProduct(mlir::linalg::GenericOp op);

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_RULES_GROUPEDPRODUCT_H
