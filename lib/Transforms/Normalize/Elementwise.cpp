//===- Elementwise.cpp - Elementwise ops as linalg.generic ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Transforms/Elementwise.h"

#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;

bool dist::isElementwiseOnTensors(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() > 0 &&
         llvm::all_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
}

void dist::elementwiseToGeneric(Operation *op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  OpBuilder builder(op);
  MLIRContext *context = op->getContext();
  AffineMap identity = AffineMap::getMultiDimIdentityMap(type.getRank(), context);
  SmallVector<AffineMap> maps;
  for (Value operand : op->getOperands())
    maps.push_back(isa<RankedTensorType>(operand.getType())
                       ? identity
                       : AffineMap::get(type.getRank(), 0, context));
  SmallVector<Value> inits;
  for (Type result : op->getResultTypes()) {
    auto tensor = cast<RankedTensorType>(result);
    inits.push_back(
        tensor::EmptyOp::create(builder, op->getLoc(), tensor.getShape(), tensor.getElementType()));
    maps.push_back(identity);
  }
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      builder, op->getLoc(), op->getResultTypes(), op->getOperands(), inits, maps, iterators,
      [&](OpBuilder &body, Location loc, ValueRange arguments) {
        SmallVector<Type> types;
        for (Type result : op->getResultTypes())
          types.push_back(getElementTypeOrSelf(result));
        OperationState state(loc, op->getName(), arguments.take_front(op->getNumOperands()), types);
        state.propertiesAttr = op->getPropertiesAsAttribute();
        Operation *scalar = body.create(state);
        linalg::YieldOp::create(body, loc, scalar->getResults());
      });
  // Keeps the user's annotations of the results, such as shardings.
  for (NamedAttribute attribute : op->getDiscardableAttrs())
    generic->setAttr(attribute.getName(), attribute.getValue());
  op->replaceAllUsesWith(generic->getResults());
  op->erase();
}

void dist::dropDerivativeMarks(Operation *function) {
  SmallVector<Operation *> marks;
  function->walk([&](Operation *op) { // inner ops first
    if (isa<CheckpointOp, StopGradientOp>(op))
      marks.push_back(op);
  });
  for (Operation *op : marks) {
    if (auto stop = dyn_cast<StopGradientOp>(op)) {
      stop.getResult().replaceAllUsesWith(stop.getOperand());
    } else {
      Block &body = op->getRegion(0).front();
      op->replaceAllUsesWith(body.getTerminator()->getOperands());
      body.getTerminator()->erase();
      op->getBlock()->getOperations().splice(op->getIterator(), body.getOperations());
    }
    op->erase();
  }
}
