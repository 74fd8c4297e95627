//===- RtSteps.cpp - Syntax and rules of the steps ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/IR/AttributeSyntax.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Rt/IR/Bounds.h"
#include "tessera/Dialect/Rt/IR/Rt.h"

#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::rt;
using dist::AxisListAttr;

//===----------------------------------------------------------------------===//
// Custom directives of the assembly formats
//===----------------------------------------------------------------------===//

static ParseResult parseAxisList(OpAsmParser &parser, AxisListAttr &axes) {
  return dist::parseAxes(parser, axes);
}

static void printAxisList(OpAsmPrinter &printer, Operation *, AxisListAttr axes) {
  dist::printAxes(printer.getStream(), axes);
}

/// A loop bound: `8` or `%slot`.
static ParseResult parseBound(OpAsmParser &parser,
                              std::optional<OpAsmParser::UnresolvedOperand> &slot,
                              IntegerAttr &number) {
  OpAsmParser::UnresolvedOperand operand;
  OptionalParseResult parsed = parser.parseOptionalOperand(operand);
  if (parsed.has_value()) {
    slot = operand;
    return *parsed;
  }
  int64_t value = 0;
  if (parser.parseInteger(value))
    return failure();
  number = parser.getBuilder().getI64IntegerAttr(value);
  return success();
}

static void printBound(OpAsmPrinter &printer, Operation *, Value slot, IntegerAttr number) {
  if (slot)
    printer << slot;
  else
    printer << number.getInt();
}

#define GET_OP_CLASSES
#include "tessera/Dialect/Rt/IR/RtOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

/// Rule R9.
static LogicalResult verifyWritten(Operation *op, Value slot) {
  if (isa_and_nonnull<ConstantOp>(slot.getDefiningOp()))
    return op->emitOpError() << "writes a constant; only slots of the arena are written";
  return success();
}

/// Whether a tensor consists of `blocks` tensors of type `one`.
static bool hasBlocks(RankedTensorType tensor, Type one, int64_t blocks) {
  auto block = cast<RankedTensorType>(one);
  return tensor.getElementType() == block.getElementType() &&
         tensor.getNumElements() == blocks * block.getNumElements();
}

/// Rule R14 of an op that calls a kernel which reads its first `reads` operands.
static LogicalResult verifyBlocks(Operation *op, int64_t blocks, DenseBoolArrayAttr cut,
                                  int64_t reads) {
  if (blocks < 1)
    return op->emitOpError() << "has " << blocks << " blocks; the number must be positive";
  if (!cut)
    return blocks == 1 ? success()
                       : LogicalResult(op->emitOpError() << "has " << blocks
                                                         << " blocks, but no list of what is cut");
  if (cut.size() != op->getNumOperands())
    return op->emitOpError() << "says of " << cut.size()
                             << " operands whether they are cut, and has " << op->getNumOperands();
  for (int64_t index = reads; index < cut.size(); ++index)
    if (!cut[index] && blocks > 1)
      return op->emitOpError() << "writes operand " << index
                               << " in every block; what is written must be cut";
  return success();
}

LogicalResult CallBlocksOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto function = symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getKernelAttr());
  if (!function || !isKernel(function)) // (R14)
    return emitOpError() << "'" << getKernel() << "' is not a kernel of the module";
  FunctionType type = function.getFunctionType();
  if (type.getNumInputs() != getNumOperands() || type.getNumResults() != getNumResults()) // (R14)
    return emitOpError() << "passes " << getNumOperands() << " tensors, kernel '" << getKernel()
                         << "' takes " << type.getNumInputs();
  if (failed(verifyBlocks(*this, getBlocks(), getCutAttr(), getNumOperands() - getNumResults())))
    return failure();
  for (auto [index, operand, input] : llvm::enumerate(getOperands(), type.getInputs())) {
    auto passed = cast<RankedTensorType>(operand.getType());
    if (getCut()[index] ? !hasBlocks(passed, input, getBlocks()) : passed != input) // (R14)
      return emitOpError() << "passes " << passed << " where kernel '" << getKernel() << "' takes "
                           << input;
  }
  for (auto [result, init] :
       llvm::zip_equal(getResults(), getOperands().take_back(getNumResults())))
    if (result.getType() != init.getType()) // (R14)
      return emitOpError() << "has a result of " << result.getType() << " in a destination of "
                           << init.getType();
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto function = symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getKernelAttr());
  if (!function || !isKernel(function)) // (R3)
    return emitOpError() << "'" << getKernel() << "' is not a kernel of the module";
  int64_t reads = function->getAttrOfType<IntegerAttr>(RtDialect::kKernelReads).getInt();
  FunctionType type = function.getFunctionType();
  if (reads != static_cast<int64_t>(getReads().size()) ||
      type.getNumInputs() != getReads().size() + getWrites().size()) // (R3)
    return emitOpError() << "passes " << getReads().size() << " and " << getWrites().size()
                         << " slots, kernel '" << getKernel() << "' reads " << reads
                         << " and writes " << static_cast<int64_t>(type.getNumInputs()) - reads;
  if (failed(verifyBlocks(*this, getBlocks(), getCutAttr(), reads)))
    return failure();
  for (auto [index, slot, input] : llvm::enumerate(getOperands(), type.getInputs())) {
    RankedTensorType passed = cast<SlotType>(slot.getType()).getTensorType();
    bool isCut = getCut() && (*getCut())[index];
    if (isCut ? !hasBlocks(passed, input, getBlocks()) : passed != input) // (R3, R14)
      return emitOpError() << "passes " << slot.getType() << " where kernel '" << getKernel()
                           << "' takes " << input;
  }
  if (getJoins() && !isa_and_nonnull<GemmOp, ContractOp>((*this)->getPrevNode())) // (R14)
    return emitOpError() << "joins no product: the step before it must be a gemm or a contract";
  for (Value slot : getWrites())
    if (failed(verifyWritten(*this, slot)))
      return failure();
  return success();
}

/// Rule R12 of a product of elements `operand` to elements `result`; `bias` is null for none.
static LogicalResult verifyEpilogue(Operation *op, std::optional<StringRef> epilogue, Type operand,
                                    Type bias, Type result) {
  if (epilogue && *epilogue != "relu" && *epilogue != "gelu")
    return op->emitOpError() << "'" << *epilogue
                             << "' is not a valid epilogue; expected relu or gelu";
  if (bias && bias != result)
    return op->emitOpError() << "has a bias of " << bias << " and a product of " << result
                             << "; both must have the same type";
  if ((bias || epilogue) && !operand.isF32() && !operand.isF16() && !operand.isBF16())
    return op->emitOpError()
           << "a product of " << operand
           << " cannot have a bias or an epilogue; only f32, f16 and bf16 products can";
  return success();
}

SmallVector<AffineMap> ProductOp::getMapValues() {
  return llvm::map_to_vector(getMaps().getAsRange<AffineMapAttr>(),
                             [](AffineMapAttr map) { return map.getValue(); });
}

SmallVector<int64_t> ProductOp::getLoopExtents() {
  SmallVector<AffineMap> maps = getMapValues();
  SmallVector<int64_t> extents(maps.front().getNumDims(), 1);
  for (auto [map, type] :
       llvm::zip(maps, TypeRange({getA().getType(), getB().getType(), getInit().getType()})))
    for (auto [expr, extent] : llvm::zip(map.getResults(), cast<RankedTensorType>(type).getShape()))
      extents[cast<AffineDimExpr>(expr).getPosition()] = extent;
  return extents;
}

LogicalResult ProductOp::verify() {
  Type types[] = {getA().getType(), getB().getType(), getInit().getType()};
  SmallVector<AffineMap> maps = getMapValues();
  if (maps.size() != 3)
    return emitOpError() << "needs three maps, of a, b and the result";
  for (auto [map, type] : llvm::zip_equal(maps, types))
    if (!map.isProjectedPermutation() || map.getNumDims() != maps.front().getNumDims() ||
        static_cast<int64_t>(map.getNumResults()) != cast<RankedTensorType>(type).getRank() ||
        !cast<RankedTensorType>(type).hasStaticShape())
      return emitOpError() << "the map " << AffineMapAttr::get(map) << " does not select loops for "
                           << type;
  SmallVector<int64_t> extents = getLoopExtents();
  for (auto [map, type] : llvm::zip_equal(maps, types))
    for (auto [expr, extent] :
         llvm::zip_equal(map.getResults(), cast<RankedTensorType>(type).getShape())) {
      unsigned loop = cast<AffineDimExpr>(expr).getPosition();
      if (extents[loop] != extent)
        return emitOpError() << "loop " << loop << " has the extents " << extent << " and "
                             << extents[loop];
    }
  auto elementOf = [](Type type) { return cast<RankedTensorType>(type).getElementType(); };
  return verifyEpilogue(*this, getEpilogue(), elementOf(types[0]),
                        getBias() ? elementOf(getBias().getType()) : Type(), elementOf(types[2]));
}

/// Rule R13, for operands of these element types and sizes.
static LogicalResult verifyContraction(Operation *op, ArrayRef<Type> elements,
                                       ArrayRef<int64_t> sizes, ArrayRef<int64_t> starts,
                                       ArrayRef<int64_t> extents,
                                       ArrayRef<ArrayRef<int64_t>> strides, bool narrow) {
  DenseI64ArrayAttr within = withinOf(op);
  if ((op->hasAttr(kWithin) && !within) || (within && within.size() % (extents.size() + 2) != 0))
    return op->emitOpError() << "has '" << kWithin << "' = " << op->getAttr(kWithin)
                             << "; each bound has " << extents.size() + 2
                             << " numbers, a begin, an end and a stride for each loop";
  if (starts.size() != 3)
    return op->emitOpError() << "has " << starts.size() << " starts; expected three, of a, b and c";
  Type a = elements[0], b = elements[1], c = elements[2];
  if (a != b || !(a.isF32() || a.isF16() || a.isBF16()) || !(c.isF32() || (narrow && c == a)))
    return op->emitOpError() << "contracts elements of " << a << " and " << b << " to " << c
                             << "; a and b must be of one type, f32, f16 or bf16, and c f32"
                             << (narrow ? " or that type" : "");
  for (int64_t extent : extents)
    if (extent < 1)
      return op->emitOpError() << "has a loop of extent " << extent << "; extents are positive";
  static constexpr const char *kNames[] = {"a", "b", "c"};
  for (unsigned operand = 0; operand < 3; ++operand) {
    if (strides[operand].size() != extents.size())
      return op->emitOpError() << "has " << strides[operand].size() << " strides of "
                               << kNames[operand] << " for " << extents.size() << " loops";
    std::optional<int64_t> least = starts[operand], most = least;
    for (auto [extent, stride] : llvm::zip_equal(extents, strides[operand])) {
      std::optional<int64_t> &end = stride < 0 ? least : most;
      if (end)
        end = llvm::checkedMulAdd(extent - 1, stride, *end);
    }
    if (!least || !most || *least < 0 || *most >= sizes[operand])
      return op->emitOpError() << "reaches beyond the " << sizes[operand] << " elements of "
                               << kNames[operand];
  }
  return success();
}

LogicalResult ContractionOp::verify() {
  SmallVector<Type> elements;
  SmallVector<int64_t> sizes;
  for (Value operand : getOperands()) {
    auto type = cast<RankedTensorType>(operand.getType());
    if (!type.hasStaticShape())
      return emitOpError() << "contracts " << type << "; shapes must be static";
    elements.push_back(type.getElementType());
    sizes.push_back(type.getNumElements());
  }
  return verifyContraction(*this, elements, sizes, getStarts(), getExtents(),
                           {getAStrides(), getBStrides(), getCStrides()}, /*narrow=*/true);
}

LogicalResult ContractOp::verify() {
  if (failed(verifyWritten(*this, getC())))
    return failure();
  SmallVector<Type> elements;
  SmallVector<int64_t> sizes;
  for (SlotType slot : {getA().getType(), getB().getType(), getC().getType()}) {
    elements.push_back(slot.getElementType());
    sizes.push_back(slot.getNumElements());
  }
  return verifyContraction(*this, elements, sizes, getStarts(), getExtents(),
                           {getAStrides(), getBStrides(), getCStrides()}, /*narrow=*/false);
}

LogicalResult GemmOp::verify() {
  if (failed(verifyWritten(*this, getC())))
    return failure();
  if (getLd().size() != 3 || getStride().size() != 3) // (R4)
    return emitOpError() << "needs three leading dimensions and three strides";
  for (int64_t extent : {getBatch(), getM(), getN(), getK()})
    if (extent < 0)
      return emitOpError() << "an extent is negative";
  auto isHalf = [](Type type) { return type.isF16() || type.isBF16(); };
  Type a = getA().getType().getElementType(), b = getB().getType().getElementType();
  Type c = getC().getType().getElementType();
  if (a != b || (c != a && !(isHalf(a) && c.isF32()))) // (R4)
    return emitOpError() << "element types " << a << ", " << b << " and " << c
                         << " are not a supported combination";
  auto check = [&](StringRef what, SlotType slot, int64_t rows, int64_t columns, int64_t ld,
                   int64_t stride) -> LogicalResult {
    if (ld < columns) // (R4)
      return emitOpError() << what << " has rows of " << columns << " elements " << ld << " apart";
    int64_t batch = getBatch();
    if (stride < 0)
      return emitOpError() << what << " has the stride " << stride;
    if (batch == 0 || rows == 0 || columns == 0)
      return success();
    std::optional<int64_t> batches = llvm::checkedMul(batch - 1, stride);
    std::optional<int64_t> before = llvm::checkedMulAdd(rows - 1, ld, columns);
    std::optional<int64_t> sum;
    if (batches && before)
      sum = llvm::checkedAdd(*batches, *before);
    if (!sum) // (R4)
      return emitOpError() << what << " exceeds " << slot;
    int64_t reach = *sum;
    if (reach > slot.getNumElements()) // (R4)
      return emitOpError() << what << " reaches element " << reach << " of " << slot;
    return success();
  };
  int64_t m = getM(), n = getN(), k = getK();
  if (failed(check("a", getA().getType(), getTransA() ? k : m, getTransA() ? m : k, getLd()[0],
                   getStride()[0])) ||
      failed(check("b", getB().getType(), getTransB() ? n : k, getTransB() ? k : n, getLd()[1],
                   getStride()[1])))
    return failure();
  if (failed(check("c", getC().getType(), m, n, getLd()[2], getStride()[2])))
    return failure();
  if (!getBias())
    return verifyEpilogue(*this, getEpilogue(), a, Type(), c);
  if (getBias().getType().getNumElements() != n) // (R12)
    return emitOpError() << "the bias is " << getBias().getType() << ", the rows have " << n
                         << " elements";
  return verifyEpilogue(*this, getEpilogue(), a, getBias().getType().getElementType(), c);
}

/// Rule R5: a slot has the shape of its layout. Emits on failure.
static LogicalResult verifyBuffer(Operation *op, Value slot, dist::ShardingAttr layout, Type global,
                                  StringRef what) {
  dist::ProcessMeshOp mesh = dist::lookupMesh(op, layout.getMesh());
  if (!mesh) // (R2)
    return op->emitOpError() << "mesh '" << layout.getMesh().getValue() << "' is not declared";
  auto resolved = layout.resolve(mesh.getMesh(), global, [&]() { return op->emitOpError(); });
  if (failed(resolved))
    return failure();
  SlotType expected = SlotType::get(dist::localType(cast<RankedTensorType>(global), *resolved));
  auto type = cast<SlotType>(slot.getType());
  if (expected.getElementType() != type.getElementType() ||
      expected.getNumElements() != type.getNumElements()) // (R5)
    return op->emitOpError() << what << " is " << type << ", its layout of " << global << " has "
                             << expected;
  return success();
}

LogicalResult CollectiveOp::verify() {
  if (!sharding::parseCollectiveKind(getKind()) || getKind() == "transfer")
    return emitOpError() << "'" << getKind() << "' is not a valid kind of collective";
  size_t count = getSources().size();
  if (count == 0 || getTargets().size() != count || getSourceLayouts().size() != count ||
      getTargetLayouts().size() != count || getGlobalTypes().size() != count) // (R5)
    return emitOpError() << "needs as many sources as targets, layouts and global types, at least "
                            "one";
  for (Attribute layout : getSourceLayouts())
    if (!isa<dist::ShardingAttr>(layout))
      return emitOpError() << "'" << layout << "' is not a sharding";
  for (Attribute layout : getTargetLayouts())
    if (!isa<dist::ShardingAttr>(layout))
      return emitOpError() << "'" << layout << "' is not a sharding";
  for (Attribute global : getGlobalTypes())
    if (auto type = dyn_cast<TypeAttr>(global); !type || !isa<RankedTensorType>(type.getValue()))
      return emitOpError() << "'" << global << "' is not a tensor type";
  for (Value target : getTargets())
    if (failed(verifyWritten(*this, target)))
      return failure();
  if (Value token = getToken()) // (R6)
    if (!token.hasOneUse() || (*token.user_begin())->getBlock() != (*this)->getBlock())
      return emitOpError() << "its token must have exactly one rt.wait, in the same block";
  return success();
}

LogicalResult CollectiveOp::verifySymbolUses(SymbolTableCollection &) {
  auto part = (*this)->getParentOfType<PartOp>();
  if (!dist::lookupMesh(*this, part.getMeshAttr()))
    return success(); // reported by the part
  for (FlatSymbolRefAttr name : {getMeshAttr(), getTargetMeshAttr()})
    if (name && failed(verifySameDevices(*this, name)))
      return failure();
  auto mesh = dist::lookupMesh(*this, getMeshAttr());
  if (failed(dist::resolveAxes(getAxes(), mesh.getMesh(), [&]() { return emitOpError(); })))
    return failure();
  for (size_t i = 0; i < getSources().size(); ++i) {
    Type global = cast<TypeAttr>(getGlobalTypes()[i]).getValue();
    if (failed(verifyBuffer(*this, getSources()[i], cast<dist::ShardingAttr>(getSourceLayouts()[i]),
                            global, "a source")) ||
        failed(verifyBuffer(*this, getTargets()[i], cast<dist::ShardingAttr>(getTargetLayouts()[i]),
                            global, "a target")))
      return failure();
  }
  return success();
}

LogicalResult SendOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyBuffer(*this, getSlot(), getSourceLayout(), getGlobalType(), "the slot");
}

LogicalResult RecvOp::verifySymbolUses(SymbolTableCollection &) {
  if (failed(verifyWritten(*this, getSlot())))
    return failure();
  return verifyBuffer(*this, getSlot(), getTargetLayout(), getGlobalType(), "the slot");
}

LogicalResult CopyOp::verify() {
  auto source = getSource().getType(), target = getTarget().getType();
  if (source.getNumBytes() != target.getNumBytes()) // (R8)
    return emitOpError() << "from " << source << " to " << target << ", which differ in size";
  return verifyWritten(*this, getTarget());
}

LogicalResult LoopOp::verify() {
  auto one = [&](Value slot, IntegerAttr number) {
    return (slot != nullptr) != (number != nullptr);
  };
  if (!one(getLowerSlot(), getLowerAttr()) || !one(getUpperSlot(), getUpperAttr()) ||
      !one(getStepSlot(), getStepAttr()))
    return emitOpError() << "expected a constant or a slot as loop bound";
  if (getStepAttr() && getStepAttr().getInt() < 1) // (R10)
    return emitOpError() << "the step " << getStepAttr().getInt() << " is not positive";
  return success();
}
