//===- ExtOps.cpp - Verifiers of the ext dialect --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyRegion.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace tessera::ext;

#define GET_OP_CLASSES
#include "tessera/Dialect/Ext/IR/ExtOps.cpp.inc"

static Type elementType(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getElementType();
}

/// Checks (E1): the inputs have one shape, and `dim` is one of its dimensions.
static LogicalResult verifyShapes(Operation *op, int64_t dim, ValueRange inputs) {
  if (inputs.empty())
    return op->emitOpError("has no inputs; give at least one tensor");
  auto first = cast<RankedTensorType>(inputs.front().getType());
  if (dim < 0 || dim >= first.getRank())
    return op->emitOpError() << "has dim = " << dim << ", and its inputs are " << first
                             << "; dim must be in [0, " << first.getRank() << ")";
  for (auto [index, input] : llvm::enumerate(inputs.getTypes()))
    if (cast<RankedTensorType>(input).getShape() != first.getShape())
      return op->emitOpError() << "has input " << index << " of " << input << " beside " << first
                               << "; inputs must have the same shape";
  return success();
}

LogicalResult tessera::ext::verifyScalarRegion(Operation *op, Region &region) {
  for (Operation &inner : region.front().without_terminator())
    if (!isMemoryEffectFree(&inner) || inner.getNumRegions() > 0 ||
        llvm::any_of(inner.getResultTypes(), llvm::IsaPred<ShapedType>))
      return inner.emitOpError() << "is not allowed in the region of '" << op->getName()
                                 << "'; its ops must compute scalars and have no regions";
  if (!isa<YieldOp>(region.front().getTerminator()))
    return op->emitOpError() << "has a region that ends in '"
                             << region.front().getTerminator()->getName()
                             << "'; end it with ext.yield";
  return success();
}

//===----------------------------------------------------------------------===//
// ext.scan
//===----------------------------------------------------------------------===//

LogicalResult ScanOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                       ScanOp::Adaptor adaptor, SmallVectorImpl<Type> &inferred) {
  llvm::append_range(inferred, adaptor.getInputs().getTypes());
  return success();
}

LogicalResult ScanOp::verify() {
  if (failed(verifyShapes(*this, getDimension(), getInputs())))
    return failure();
  if (!getIdentity())
    return getExclusive() ? emitOpError("is exclusive without an identity, which is its first "
                                        "element; give 'identity'")
                          : success();
  ArrayAttr identity = *getIdentity();
  if (identity.size() != getInputs().size()) // (E4)
    return emitOpError() << "has " << identity.size() << " identities for " << getInputs().size()
                         << " inputs; give one per input";
  for (auto [index, value, input] : llvm::enumerate(identity, getInputs())) // (E4)
    if (auto typed = dyn_cast<TypedAttr>(value); !typed || typed.getType() != elementType(input))
      return emitOpError() << "has identity " << value << " for input " << index << " of "
                           << input.getType() << "; expected a value of the element type";
  return success();
}

LogicalResult ScanOp::verifyRegions() {
  Block &body = getBody();
  SmallVector<Type> elements = llvm::map_to_vector(getInputs(), elementType);
  SmallVector<Type> arguments(elements);
  llvm::append_range(arguments, elements);
  if (TypeRange(body.getArgumentTypes()) != TypeRange(arguments)) // (E2)
    return emitOpError() << "has a region over (" << body.getArgumentTypes()
                         << "); expected two scalars of each element type: (" << arguments << ")";
  if (failed(verifyScalarRegion(*this, getCombiner())))
    return failure();
  if (TypeRange yielded = body.getTerminator()->getOperandTypes(); // (E2)
      yielded != TypeRange(elements))
    return body.getTerminator()->emitOpError()
           << "yields (" << yielded << ") in '" << getOperationName() << "'; expected (" << elements
           << ")";
  return success();
}

//===----------------------------------------------------------------------===//
// ext.sort
//===----------------------------------------------------------------------===//

LogicalResult SortOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                       SortOp::Adaptor adaptor, SmallVectorImpl<Type> &inferred) {
  int64_t dim = adaptor.getDimension();
  for (Type input : adaptor.getInputs().getTypes()) {
    auto type = cast<RankedTensorType>(input);
    SmallVector<int64_t> shape(type.getShape());
    if (std::optional<int64_t> limit = adaptor.getLimit();
        limit && *limit >= 0 && dim >= 0 && dim < type.getRank()) // else the verifier rejects it
      shape[dim] = *limit;
    inferred.push_back(type.clone(shape));
  }
  return success();
}

LogicalResult SortOp::verify() {
  if (failed(verifyShapes(*this, getDimension(), getInputs())))
    return failure();
  int64_t keys = getKeys(), inputs = getInputs().size(), extent = getShape()[getDim()];
  if (keys < 1 || keys > inputs) // (E5)
    return emitOpError() << "has keys = " << keys << " and " << inputs
                         << " inputs; keys must be in [1, " << inputs << "]";
  if (std::optional<int64_t> limit = getLimit(); limit && (*limit < 0 || *limit > extent)) // (E6)
    return emitOpError() << "has limit = " << *limit << ", and dimension " << getDim() << " has "
                         << extent << " elements; limit must be in [0, " << extent << "]";
  return success();
}
