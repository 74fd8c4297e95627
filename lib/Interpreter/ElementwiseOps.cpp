//===- ElementwiseOps.cpp - arith and math on whole tensors ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tessera::interpreter;

static Outcome executeConstant(Evaluator &evaluator, arith::ConstantOp op) {
  Tensor &value = evaluator.program.constants[op.getValue()];
  if (!value)
    value = toTensor(op.getValue());
  if (!value) {
    evaluator.error(op) << "has a value of type " << op.getType()
                        << " that the interpreter cannot read";
    return Outcome::failed;
  }
  evaluator.set(op.getResult(), value);
  return Outcome::done;
}

Outcome tessera::interpreter::executeElementwise(Evaluator &evaluator, Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return executeConstant(evaluator, constant);
  ScalarKernel kernel = getScalarKernel(op);
  if (!kernel)
    return Outcome::unknown;

  // The condition of a select on tensors may be a scalar, and so may operands of clampf: an operand
  // of rank 0 represents all elements.
  SmallVector<Tensor> operands = evaluator.get(op->getOperands());
  ArrayRef<int64_t> shape;
  for (const Tensor &operand : operands)
    if (operand.rank() > 0)
      shape = operand.shape();
  for (const Tensor &operand : operands)
    if (operand.rank() > 0 && operand.shape() != shape) {
      evaluator.error(op) << "has operands of different shapes";
      return Outcome::failed;
    }
  SmallVector<Tensor> results;
  for (Type type : op->getResultTypes())
    results.emplace_back(getElementTypeOrSelf(type), shape);

  SmallVector<Scalar, 4> in(operands.size()), out(results.size());
  for (int64_t i = 0, n = results.front().numElements(); i < n; ++i) {
    for (auto [value, operand] : llvm::zip_equal(in, operands))
      value = operand.load(operand.rank() == 0 ? 0 : i);
    if (const char *reason = kernel(in.data(), out.data())) {
      evaluator.error(op) << reason;
      return Outcome::failed;
    }
    for (auto [value, result] : llvm::zip_equal(out, results))
      result.store(i, value);
  }
  for (auto [value, result] : llvm::zip_equal(op->getResults(), results))
    evaluator.set(value, result);
  return Outcome::done;
}
