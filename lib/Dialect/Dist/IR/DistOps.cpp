//===- DistOps.cpp - Meshes, annotations, asynchrony ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CollectiveRules.h"
#include "Limits.h"

#include "tessera/Dialect/Dist/IR/AttributeSyntax.h"
#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/IR/Pipeline.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

#define GET_TYPEDEF_CLASSES
#include "tessera/Dialect/Dist/IR/DistTypes.cpp.inc"

void DistDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "tessera/Dialect/Dist/IR/DistTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Custom directives of the assembly formats
//===----------------------------------------------------------------------===//

/// `#dist.sharding<…> {attributes} : type`; the attribute's parser may have consumed the type.
static ParseResult parseShardingAndType(OpAsmParser &parser, ShardingAttr &sharding, Type &operand,
                                        Type &result, NamedAttrList &attributes) {
  Type type;
  if (dist::parseShardingOperand(parser, sharding, type))
    return failure();
  if (!type && (parser.parseOptionalAttrDict(attributes) || parser.parseColonType(type)))
    return failure();
  operand = result = type;
  return success();
}

static void printShardingAndType(OpAsmPrinter &printer, Operation *op, ShardingAttr sharding,
                                 Type operand, Type, DictionaryAttr attributes) {
  printer.printAttribute(sharding);
  printer.printOptionalAttrDict(op->getAttrs(), {"sharding"});
  printer << " : " << operand;
}

static ParseResult parseAxisList(OpAsmParser &parser, AxisListAttr &axes) {
  return dist::parseAxes(parser, axes);
}

static void printAxisList(OpAsmPrinter &printer, Operation *, AxisListAttr axes) {
  dist::printAxes(printer.getStream(), axes);
}

/// `T, U` if every result has its operand's type, else `T, U -> V, W`.
static ParseResult parseCollectiveTypes(OpAsmParser &parser, SmallVectorImpl<Type> &operands,
                                        SmallVectorImpl<Type> &results) {
  if (parser.parseTypeList(operands))
    return failure();
  if (failed(parser.parseOptionalArrow())) {
    results.assign(operands.begin(), operands.end());
    return success();
  }
  return parser.parseTypeList(results);
}

static void printCollectiveTypes(OpAsmPrinter &printer, Operation *, TypeRange operands,
                                 TypeRange results) {
  llvm::interleaveComma(operands, printer);
  if (operands == results)
    return;
  printer << " -> ";
  llvm::interleaveComma(results, printer);
}

/// `#from to #to (fill = x)? {attributes} : T -> U`.
static ParseResult parseExchangeSpec(OpAsmParser &parser, ShardingAttr &from, ShardingAttr &to,
                                     Attribute &fill, SmallVectorImpl<Type> &operands,
                                     SmallVectorImpl<Type> &results, NamedAttrList &attributes) {
  Type swallowed;
  if (dist::parseShardingOperand(parser, from, swallowed) || parser.parseKeyword("to") ||
      dist::parseShardingOperand(parser, to, swallowed))
    return failure();
  if (swallowed) {
    operands.push_back(swallowed);
    while (succeeded(parser.parseOptionalComma()))
      if (parser.parseType(operands.emplace_back()))
        return failure();
    if (failed(parser.parseOptionalArrow())) {
      results.assign(operands.begin(), operands.end());
      return success();
    }
    return parser.parseTypeList(results);
  }
  if (succeeded(parser.parseOptionalKeyword("fill")) &&
      (parser.parseEqual() || parser.parseAttribute(fill)))
    return failure();
  if (parser.parseOptionalAttrDict(attributes) || parser.parseColon())
    return failure();
  return parseCollectiveTypes(parser, operands, results);
}

static void printExchangeSpec(OpAsmPrinter &printer, Operation *op, ShardingAttr from,
                              ShardingAttr to, Attribute fill, TypeRange operands,
                              TypeRange results, DictionaryAttr attributes) {
  printer.printAttribute(from);
  printer << " to ";
  printer.printAttribute(to);
  if (fill)
    printer << " fill = " << fill;
  printer.printOptionalAttrDict(op->getAttrs(), {"from", "to", "fill"});
  printer << " : ";
  printCollectiveTypes(printer, op, operands, results);
}

#include "tessera/Dialect/Dist/IR/DistInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "tessera/Dialect/Dist/IR/DistOps.cpp.inc"

void DistDialect::registerOperations() {
  addOperations<
#define GET_OP_LIST
#include "tessera/Dialect/Dist/IR/DistOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "tessera/Dialect/Dist/IR/DistPipeline.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// ProcessMeshOp
//===----------------------------------------------------------------------===//

sharding::Mesh ProcessMeshOp::getMesh() {
  sharding::Mesh mesh;
  mesh.name = getSymName().str();
  mesh.shape = getShape().vec();
  for (auto name : getDimNames().getAsRange<StringAttr>())
    mesh.axisNames.push_back(name.str());
  if (std::optional<ArrayRef<int64_t>> ids = getProcessIds()) {
    mesh.processIds = ids->vec();
  } else {
    int64_t count = 1;
    for (int64_t extent : mesh.shape)
      count *= extent;
    mesh.processIds = sharding::DeviceIds::range(count);
  }
  return mesh;
}

/// The number of process ids that an artifact supports (M4).
static constexpr int64_t kMaxDevices = 1 << 20;

LogicalResult ProcessMeshOp::verify() {
  ArrayRef<int64_t> shape = getShape();
  if (shape.empty()) // (M1)
    return emitOpError() << "'" << getSymName() << "' has no axes; a mesh has at least one";
  if (getDimNames().size() != shape.size()) // (M1)
    return emitOpError() << "'" << getSymName() << "' has " << shape.size() << " axes and "
                         << getDimNames().size() << " names; give one name per axis";
  std::set<StringRef> names;
  for (auto name : getDimNames().getAsRange<StringAttr>()) { // (M2)
    if (name.empty())
      return emitOpError() << "'" << getSymName() << "' has an axis without a name";
    if (!names.insert(name.getValue()).second)
      return emitOpError() << "duplicate axis name '" << name.getValue() << "' in mesh '"
                           << getSymName() << "'";
  }
  int64_t count = 1;
  for (int64_t extent : shape) { // (M3)
    if (extent <= 0)
      return emitOpError() << "'" << getSymName() << "' has extent " << extent
                           << "; extents are positive";
    if (extent > kMaxDevices / count)
      return emitOpError() << "'" << getSymName() << "' has more than " << kMaxDevices
                           << " devices, the maximum";
    count *= extent;
  }
  std::optional<ArrayRef<int64_t>> ids = getProcessIds();
  if (!ids)
    return success();
  if (static_cast<int64_t>(ids->size()) != count) // (M4)
    return emitOpError() << "'" << getSymName() << "' has " << count << " devices and "
                         << ids->size() << " process ids; give one id per device";
  std::set<int64_t> seen;
  for (int64_t id : *ids) {
    if (id < 0)
      return emitOpError() << "'" << getSymName() << "' has process id " << id
                           << "; ids are not negative";
    if (id > kMaxProcessId)
      return emitOpError() << "'" << getSymName() << "' has process id " << id
                           << "; the largest is " << kMaxProcessId;
    if (!seen.insert(id).second)
      return emitOpError() << "duplicate process id " << id << " in mesh '" << getSymName() << "'";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// ShardTensorOp, ReshardOp, AxisIndexOp
//===----------------------------------------------------------------------===//

/// The declared mesh, or an error.
static FailureOr<sharding::Mesh> findMesh(Operation *op, FlatSymbolRefAttr name) {
  ProcessMeshOp mesh = lookupMesh(op, name);
  if (!mesh) // (S1, C1)
    return op->emitOpError() << "mesh '" << name.getValue()
                             << "' is not declared; add dist.process_mesh @" << name.getValue();
  if (failed(mesh.verify()))
    return failure();
  return mesh.getMesh();
}

static LogicalResult verifyShardingUse(Operation *op, ShardingAttr sharding, Type type) {
  FailureOr<sharding::Mesh> mesh = findMesh(op, sharding.getMesh());
  if (failed(mesh))
    return failure();
  return sharding.resolve(*mesh, type, [&]() { return op->emitOpError(); });
}

LogicalResult ShardTensorOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyShardingUse(*this, getSharding(), getType());
}

LogicalResult ReshardOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyShardingUse(*this, getSharding(), getType());
}

LogicalResult ReshardOp::verify() { // (R5)
  TypedAttr fill = getFillAttr();
  if (!fill)
    return success();
  if (fill.getType() != getType().getElementType())
    return emitOpError() << "has fill " << fill << " for windows of " << getType()
                         << "; give it the element type, " << getType().getElementType();
  if (getSharding().getWindows().empty())
    return emitOpError() << "has fill " << fill << ", but " << getSharding()
                         << " has no windows, which alone extend beyond the tensor; leave it out";
  return success();
}

OpFoldResult ShardTensorOp::fold(FoldAdaptor) {
  // A repeated constraint is redundant.
  auto producer = getOperand().getDefiningOp<ShardTensorOp>();
  return producer && producer.getSharding() == getSharding() ? getOperand() : OpFoldResult();
}

OpFoldResult ReshardOp::fold(FoldAdaptor) {
  auto producer = getOperand().getDefiningOp<ReshardOp>();
  return producer && producer.getSharding() == getSharding() &&
                 (!getFill() || getFillAttr() == producer.getFillAttr())
             ? getOperand()
             : OpFoldResult();
}

LogicalResult AxisIndexOp::verifySymbolUses(SymbolTableCollection &) {
  FailureOr<sharding::Mesh> mesh = findMesh(*this, getMeshAttr());
  if (failed(mesh))
    return failure();
  return resolveAxes(getAxes(), *mesh, [&]() { return emitOpError(); });
}

//===----------------------------------------------------------------------===//
// StartOp, WaitOp
//===----------------------------------------------------------------------===//

LogicalResult StartOp::verify() {
  Block &block = getBody().front();
  if (block.getNumArguments() != 0 || block.getOperations().size() != 2 ||
      !isa<CollectiveOpInterface>(block.front()) || !isa<YieldOp>(block.back()))
    return emitOpError() << "holds one collective and its dist.yield, nothing else";
  auto yield = cast<YieldOp>(block.back());
  if (!llvm::equal(yield->getOperands(), block.front().getResults()))
    return emitOpError() << "must yield the results of its collective, all and in order";
  if (TypeRange(getToken().getType().getValueTypes()) != yield->getOperandTypes())
    return emitOpError() << "has token type " << getToken().getType() << " but yields "
                         << yield->getOperandTypes();
  if (!getToken().hasOneUse()) // (C7)
    return emitOpError() << "is waited for " << llvm::range_size(getToken().getUses())
                         << " times; a token is waited for exactly once";
  Operation *wait = *getToken().getUsers().begin();
  if (!isa<WaitOp>(wait) || wait->getBlock() != (*this)->getBlock()) // (C7)
    return emitOpError() << "has no dist.wait in its block";
  return success();
}

WaitOp StartOp::getWait() {
  return cast<WaitOp>(*getToken().getUsers().begin());
}

LogicalResult WaitOp::verify() {
  if (!getStart()) // (C7)
    return emitOpError() << "waits for a token that no dist.start of its block made; add the start";
  if (TypeRange(getToken().getType().getValueTypes()) != getResultTypes())
    return emitOpError() << "waits for " << getToken().getType() << " but gives "
                         << getResultTypes();
  return success();
}

//===----------------------------------------------------------------------===//
// CheckpointOp
//===----------------------------------------------------------------------===//

LogicalResult CheckpointOp::verify() {
  auto yield = dyn_cast<YieldOp>(getBody().front().getTerminator());
  if (!yield)
    return emitOpError() << "ends with '" << getBody().front().back().getName()
                         << "'; a checkpoint ends with dist.yield";
  if (yield->getOperandTypes() != getResultTypes()) // (D1)
    return emitOpError() << "yields (" << yield->getOperandTypes() << ") but has results ("
                         << getResultTypes() << "); types must be equal";
  return success();
}

//===----------------------------------------------------------------------===//
// RearrangeOp
//===----------------------------------------------------------------------===//

static constexpr int64_t kSegmentFields = 5;

/// Whether two segments write the same element.
static bool intersects(const sharding::Segment &a, const sharding::Segment &b) {
  auto lowest = [](const sharding::Segment &s) {
    return s.toStep > 0 ? s.to : s.to + s.toStep * (s.count - 1);
  };
  if (a.count == 0 || b.count == 0)
    return false;
  int64_t stepA = std::abs(a.toStep), stepB = std::abs(b.toStep);
  int64_t lowA = lowest(a), lowB = lowest(b);
  int64_t last = std::min(lowA + stepA * (a.count - 1), lowB + stepB * (b.count - 1));
  int64_t first = lowA + sharding::ceilDiv(std::max(lowB - lowA, int64_t(0)), stepA) * stepA;
  // Common elements repeat after as many steps as the step size of the other.
  for (int64_t n = 0; n < stepB && first + n * stepA <= last; ++n)
    if ((first + n * stepA - lowB) % stepB == 0)
      return true;
  return false;
}

sharding::Segment RearrangeOp::getSegment(unsigned index) {
  ArrayRef<int64_t> fields = getSegments().slice(index * kSegmentFields, kSegmentFields);
  return {fields[0], fields[1], fields[2], fields[3], fields[4]};
}

LogicalResult RearrangeOp::verify() {
  RankedTensorType type = getResult().getType();
  int64_t dim = getDim();
  if (dim < 0 || dim >= type.getRank()) // (R1)
    return emitOpError() << "dim = " << dim << " of a rank-" << type.getRank() << " tensor " << type
                         << "; it must be in [0, " << type.getRank() << ")";
  if (getInputs().empty() || getSegments().size() != getInputs().size() * kSegmentFields) // (R2)
    return emitOpError() << "has " << getInputs().size() << " operands and " << getSegments().size()
                         << " numbers in 'segments'; give at least one operand, and per operand "
                            "five numbers: from, from step, to, to step, count";
  int64_t extent = type.getDimSize(dim);
  if (!type.hasStaticShape())
    return emitOpError() << "makes " << type << "; its shape must be static";
  // Steps and counts are bounded by extents before they are multiplied.
  auto isInside = [](int64_t first, int64_t step, int64_t count, int64_t size) {
    if (first < 0 || first >= size || step == 0 || step < -size || step > size)
      return count == 0;
    return (count - 1) <= (step > 0 ? size - 1 - first : first) / std::abs(step);
  };
  int64_t covered = 0;
  for (auto [index, input] : llvm::enumerate(getInputs())) {
    auto operand = cast<RankedTensorType>(input.getType());
    bool agrees = operand.getElementType() == type.getElementType() &&
                  operand.getRank() == type.getRank() && operand.hasStaticShape();
    for (int64_t d = 0; agrees && d < type.getRank(); ++d)
      agrees = d == dim || operand.getDimSize(d) == type.getDimSize(d);
    if (!agrees) // (R3)
      return emitOpError() << "operand " << index << " is " << operand << ", the result " << type
                           << "; they must be equal except in dimension " << dim;
    sharding::Segment segment = getSegment(index);
    if (segment.count < 0 || segment.fromStep < 1 ||
        !isInside(segment.from, segment.fromStep, segment.count, operand.getDimSize(dim)) ||
        !isInside(segment.to, segment.toStep, segment.count, extent)) // (R2)
      return emitOpError() << "segment " << index << " moves " << segment.count << " elements from "
                           << segment.from << " in steps of " << segment.fromStep << " to "
                           << segment.to << " in steps of " << segment.toStep
                           << "; they must be within the " << operand.getDimSize(dim)
                           << " elements of the operand and the " << extent
                           << " of the result, and the first step must be positive";
    for (unsigned other = 0; other < index; ++other)
      if (intersects(segment, getSegment(other))) // (R4)
        return emitOpError() << "segments " << other << " and " << index
                             << " write the same element; segments must be disjoint";
    covered += segment.count;
  }
  if (covered < extent && (!getFill() || getFillAttr().getType() != type.getElementType())) // (R4)
    return emitOpError() << "leaves " << extent - covered << " of " << extent
                         << " elements unwritten; give a 'fill' of type " << type.getElementType();
  return success();
}
