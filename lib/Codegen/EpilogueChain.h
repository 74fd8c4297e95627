//===- EpilogueChain.h - Epilogue candidates after a product ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_EPILOGUECHAIN_H
#define TESSERA_LIB_CODEGEN_EPILOGUECHAIN_H

#include "Polynomial.h"
#include "tessera/Codegen/Gemm.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/SetVector.h"

namespace tessera::codegen {

/// Matches the epilogue of one contraction.
class EpilogueChain {
public:
  EpilogueChain(mlir::linalg::LinalgOp op, const GemmForm &form)
      : op(op), form(form), product(op->getResult(0)) {}
  /// Replaces the contraction and the longest epilogue after it.
  void run();

private:
  struct Found {
    mlir::Value result, bias; ///< bias: null for none
    llvm::StringRef epilogue; ///< empty for none
  };
  void collect();
  std::optional<Found> match(mlir::Value result);
  bool isPrivate(mlir::Value result) const;
  void rewrite(const Found &found);

  std::optional<Polynomial> read(mlir::Value value);
  std::optional<Polynomial> readBody(mlir::linalg::GenericOp generic, mlir::Value scalar,
                                     llvm::DenseMap<mlir::Value, Polynomial> &known);
  std::optional<Polynomial> readVector(mlir::Value value);
  Polynomial unary(unsigned function, const Polynomial &argument);

  /// Atoms of the polynomials.
  enum : unsigned { kProduct, kBias, kFirstFunction };
  enum : unsigned { kTanh, kRelu };

  mlir::linalg::LinalgOp op;
  const GemmForm &form;
  mlir::Value product, bias;
  llvm::SetVector<mlir::Operation *> behind; ///< ops that need the product, in order
  llvm::DenseMap<mlir::Value, std::optional<Polynomial>> memo;
  std::vector<std::pair<unsigned, Polynomial>> functions; ///< atoms from kFirstFunction on
};

/// Whether the result of the generic has an element for each iteration, in order.
bool isPointwise(mlir::linalg::GenericOp generic);
/// A constant scalar, also one from a tensor of one value.
std::optional<double> scalarConstant(mlir::Value value);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_EPILOGUECHAIN_H
