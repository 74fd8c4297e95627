//===- RtDialect.cpp - The rt dialect and its types -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Rt/IR/Rt.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::rt;

#include "tessera/Dialect/Rt/IR/RtDialect.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "tessera/Dialect/Rt/IR/RtTypes.cpp.inc"

void RtDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "tessera/Dialect/Rt/IR/RtTypes.cpp.inc"
      >();
}

void RtDialect::initialize() {
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "tessera/Dialect/Rt/IR/RtOps.cpp.inc"
      >();
}

bool rt::isKernel(Operation *function) {
  return function->hasAttr(RtDialect::kKernelReads);
}

SlotType SlotType::get(RankedTensorType tensor) {
  return get(tensor.getContext(), tensor.getShape(), tensor.getElementType());
}

RankedTensorType SlotType::getTensorType() const {
  return RankedTensorType::get(getShape(), getElementType());
}

int64_t SlotType::getNumElements() const {
  return ShapedType::getNumElements(getShape());
}

int64_t SlotType::getNumBytes() const {
  return getNumElements() * dist::bytesPerElement(getElementType());
}

Type SlotType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(element) || parser.parseGreater())
    return {};
  if (!element.isIntOrIndexOrFloat()) {
    parser.emitError(loc, "elements of a slot are integers, indices or floats");
    return {};
  }
  return SlotType::get(parser.getContext(), shape, element);
}

void SlotType::print(AsmPrinter &printer) const {
  printer << "<";
  for (int64_t extent : getShape())
    printer << extent << "x";
  printer << getElementType() << ">";
}
