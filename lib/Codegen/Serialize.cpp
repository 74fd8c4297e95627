//===- Serialize.cpp - Convert rt.program to the step format --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Serializer.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

runtime::DType codegen::toDType(Type type) {
  if (type.isIndex())
    return runtime::DType::index;
  std::string text;
  llvm::raw_string_ostream(text) << type;
  std::optional<runtime::DType> dtype = runtime::parseDType(text);
  assert(dtype && "codegen-emit-rt lets no other element type through");
  return *dtype;
}

SmallVector<func::FuncOp> codegen::kernelsOf(ModuleOp module) {
  SmallVector<func::FuncOp> kernels;
  for (auto function : module.getOps<func::FuncOp>())
    if (rt::isKernel(function))
      kernels.push_back(function);
  return kernels;
}

Serializer::Serializer(rt::ProgramOp program, bool withConstants)
    : op(program), withConstants(withConstants), meshes(program->getParentOfType<ModuleOp>()) {}

sharding::Layout Serializer::layoutOf(dist::ShardingAttr layout, Type global) const {
  return sharding::makeLayout(dist::resolveVerified(layout, meshes, global), dist::shapeOf(global));
}

static runtime::DType elementOf(Type tensor) {
  return toDType(cast<RankedTensorType>(tensor).getElementType());
}

void Serializer::declarePorts() {
  runtime::Program &program = result.program;
  for (auto argument : op.getBody().front().getOps<rt::ArgumentOp>()) {
    runtime::Argument one;
    one.name = argument.getName().str();
    one.dtype = elementOf(argument.getType());
    one.globalShape = dist::shapeOf(argument.getType());
    if (std::optional<ArrayRef<int64_t>> range = argument.getRange())
      one.range = {(*range)[0], (*range)[1]};
    program.arguments.push_back(std::move(one));
  }
  for (auto port : op.getBody().front().getOps<rt::ResultOp>()) {
    runtime::Result one;
    one.name = port.getName().str();
    one.dtype = elementOf(port.getType());
    one.globalShape = dist::shapeOf(port.getType());
    if (std::optional<uint64_t> feeds = port.getFeeds())
      one.feeds = *feeds;
    program.results.push_back(std::move(one));
  }
}

/// The elements in the runtime's format: little endian, i1 in a byte, index in eight.
static std::string bytesOf(ElementsAttr value) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    ArrayRef<char> data = blob ? blob->getData() : ArrayRef<char>();
    return std::string(data.begin(), data.end());
  }
  auto dense = cast<DenseElementsAttr>(value);
  Type type = dense.getElementType();
  std::string bytes;
  if (type.isInteger(1)) {
    for (bool element : dense.getValues<bool>())
      bytes.push_back(static_cast<char>(element));
    return bytes;
  }
  ArrayRef<char> raw = dense.getRawData();
  int64_t copies = dense.isSplat() ? dense.getNumElements() : 1;
  bytes.reserve(raw.size() * copies);
  for (int64_t i = 0; i < copies; ++i)
    bytes.append(raw.begin(), raw.end());
  return bytes;
}

int64_t Serializer::addConstant(ElementsAttr value) {
  if (!withConstants)
    return 0;
  std::string bytes = bytesOf(value);
  runtime::Bytes &constants = result.constants;
  auto [it, isNew] = constantAt.try_emplace(bytes, 0);
  if (!isNew)
    return it->second;
  constants.resize((constants.size() + runtime::kAlignment - 1) / runtime::kAlignment *
                   runtime::kAlignment);
  it->second = static_cast<int64_t>(constants.size());
  auto *data = reinterpret_cast<const std::byte *>(bytes.data());
  constants.insert(constants.end(), data, data + bytes.size());
  return it->second;
}

void Serializer::addSlot(Operation *declaration, runtime::Part &part) {
  auto type = cast<rt::SlotType>(declaration->getResult(0).getType());
  runtime::Slot slot;
  slot.bytes = type.getNumBytes();
  slot.dtype = toDType(type.getElementType());
  slot.shape = type.getShape().vec();
  if (auto arena = dyn_cast<rt::SlotOp>(declaration)) {
    slot.name = arena.getName().str();
    slot.offset = arena.getOffset();
  } else {
    auto constant = cast<rt::ConstantOp>(declaration);
    slot.name = constant.getName().str();
    slot.space = runtime::Slot::Space::constant;
    slot.offset = addConstant(constant.getValue());
  }
  slots[declaration->getResult(0)] = static_cast<int64_t>(part.slots.size());
  part.slots.push_back(std::move(slot));
}

runtime::Home Serializer::homeOf(int64_t part, Value slot, dist::ShardingAttr layout, Type global) {
  runtime::Home home{part, slotOf(slot), layoutOf(layout, global), {}};
  int64_t mesh = meshIndex.lookup(layout.getMesh().getValue());
  if (mesh != result.program.parts[part].mesh)
    home.mesh = mesh;
  return home;
}

void Serializer::addPart(rt::PartOp op, int64_t index) {
  runtime::Program &program = result.program;
  program.parts.emplace_back();
  runtime::Part &part = program.parts.back();
  part.name = op.getName().str();
  part.mesh = meshIndex.lookup(op.getMesh());
  part.arenaBytes = op.getArenaBytes();
  part.packedBytes = static_cast<int64_t>(op.getPackedBytes().value_or(0));
  const sharding::Mesh &mesh = meshes.get(op.getMeshAttr());
  for (Operation &declaration : op.getBody().front()) {
    if (isa<rt::SlotOp, rt::ConstantOp>(declaration)) {
      addSlot(&declaration, part);
    } else if (auto coordinate = dyn_cast<rt::CoordinateOp>(declaration)) {
      FlatSymbolRefAttr name = coordinate.getMeshAttr();
      auto axes = dist::resolveAxes(coordinate.getAxes(), name ? meshes.get(name) : mesh,
                                    [&]() { return coordinate.emitOpError(); });
      std::optional<int64_t> other;
      if (name)
        other = meshIndex.lookup(name.getValue());
      part.coordinates.push_back({slotOf(coordinate.getSlot()), *axes, other});
    } else if (auto home = dyn_cast<rt::ArgumentHomeOp>(declaration)) {
      runtime::Argument &argument = program.arguments[home.getIndex()];
      Type global =
          RankedTensorType::get(argument.globalShape, home.getSlot().getType().getElementType());
      argument.homes.push_back(homeOf(index, home.getSlot(), home.getLayout(), global));
    } else if (auto home = dyn_cast<rt::ResultHomeOp>(declaration)) {
      runtime::Result &port = program.results[home.getIndex()];
      Type global =
          RankedTensorType::get(port.globalShape, home.getSlot().getType().getElementType());
      port.home = homeOf(index, home.getSlot(), home.getLayout(), global);
    }
  }
  part.steps = stepsOf(op.getBody().front());
}

FailureOr<SerializedProgram> Serializer::run() {
  for (auto &[name, mesh] : meshes) {
    meshIndex[name.getValue()] = static_cast<int64_t>(result.program.meshes.size());
    result.program.meshes.push_back(mesh);
  }
  for (func::FuncOp kernel : kernelsOf(op->getParentOfType<ModuleOp>())) {
    kernelIndex[kernel.getName()] = static_cast<int64_t>(result.program.kernels.size());
    result.program.kernels.push_back(kernel.getName().str());
    std::vector<int64_t> &bytes = result.program.kernelBytes.emplace_back();
    for (Type type : kernel.getArgumentTypes()) {
      auto shaped = dyn_cast<ShapedType>(type);
      bytes.push_back((shaped ? shaped.getNumElements() : 1) *
                      dist::bytesPerElement(getElementTypeOrSelf(type)));
    }
  }
  // Ids of collectives follow those of transfers.
  op.walk([&](rt::SendOp send) {
    nextCollective = std::max(nextCollective, static_cast<int64_t>(send.getId()) + 1);
  });
  declarePorts();
  for (auto [index, part] : llvm::enumerate(op.getBody().front().getOps<rt::PartOp>()))
    addPart(part, index);
  if (failed(assignOrders()))
    return failure();
  return std::move(result);
}

FailureOr<SerializedProgram> codegen::serialize(ModuleOp module, bool withConstants) {
  SmallVector<rt::ProgramOp> programs(module.getOps<rt::ProgramOp>());
  if (programs.size() != 1)
    return module.emitError() << "the module has " << programs.size()
                              << " rt.program ops; expected one";
  return Serializer(programs.front(), withConstants).run();
}
