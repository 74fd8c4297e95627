//===- ValueShardings.cpp - Reading and writing shardings in the IR -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

MeshTable::MeshTable(ModuleOp module) {
  for (ProcessMeshOp mesh : module.getOps<ProcessMeshOp>())
    meshes.insert({mesh.getSymNameAttr(), mesh.getMesh()});
}

const sharding::Mesh *MeshTable::lookup(StringAttr name) const {
  auto it = meshes.find(name);
  return it == meshes.end() ? nullptr : &it->second;
}

const sharding::Mesh &MeshTable::get(FlatSymbolRefAttr name) const {
  const sharding::Mesh *mesh = lookup(name.getAttr());
  assert(mesh && "the verifier lets no undeclared mesh through");
  return *mesh;
}

FlatSymbolRefAttr MeshTable::single() const {
  return meshes.size() == 1 ? FlatSymbolRefAttr::get(meshes.begin()->first) : FlatSymbolRefAttr();
}

bool dist::isLocalView(Operation *function) {
  auto view = function->getAttrOfType<StringAttr>(DistDialect::kView);
  return view && view.getValue() == "local";
}

/// The attribute that holds the sharding of a value: of an op's result, or of a function argument.
/// The region arguments of a loop share that of the loop's result.
static std::pair<Operation *, unsigned> homeOf(Value value, StringRef &name) {
  name = DistDialect::kShardings;
  if (auto result = dyn_cast<OpResult>(value))
    return {result.getOwner(), result.getResultNumber()};
  auto argument = cast<BlockArgument>(value);
  Operation *parent = argument.getOwner()->getParentOp();
  unsigned index = argument.getArgNumber();
  if (auto loop = dyn_cast<scf::ForOp>(parent)) {
    if (index < loop.getNumInductionVars())
      return {nullptr, 0};
    return {parent, index - loop.getNumInductionVars()};
  }
  if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
    if (argument.getOwner() == loop.getBeforeBody())
      name = DistDialect::kBeforeShardings;
    return {parent, index};
  }
  name = DistDialect::kSharding;
  return {isa<FunctionOpInterface>(parent) ? parent : nullptr, index};
}

ShardingAttr dist::getSharding(Value value) {
  StringRef name;
  auto [op, index] = homeOf(value, name);
  if (!op)
    return {};
  if (name == DistDialect::kSharding)
    return cast<FunctionOpInterface>(op).getArgAttrOfType<ShardingAttr>(index, name);
  auto list = op->getAttrOfType<ArrayAttr>(name);
  return list && index < list.size() ? dyn_cast<ShardingAttr>(list[index]) : ShardingAttr();
}

void dist::setSharding(Value value, ShardingAttr sharding) {
  StringRef name;
  auto [op, index] = homeOf(value, name);
  assert(op && "this value has no place for a sharding");
  if (name == DistDialect::kSharding) {
    auto function = cast<FunctionOpInterface>(op);
    if (sharding)
      function.setArgAttr(index, name, sharding);
    else
      function.removeArgAttr(index, StringAttr::get(op->getContext(), name));
    return;
  }
  unsigned size = op->getNumResults();
  if (name == DistDialect::kBeforeShardings)
    size = cast<scf::WhileOp>(op).getBeforeArguments().size();
  SmallVector<Attribute> list(size, UnitAttr::get(op->getContext()));
  if (auto old = op->getAttrOfType<ArrayAttr>(name))
    llvm::copy(old, list.begin());
  list[index] = sharding ? Attribute(sharding) : UnitAttr::get(op->getContext());
  op->setAttr(name, ArrayAttr::get(op->getContext(), list));
}

void dist::setResultShardings(Operation *op, ArrayRef<ShardingAttr> shardings) {
  if (shardings.empty())
    return;
  SmallVector<Attribute> list;
  for (ShardingAttr sharding : shardings)
    list.push_back(sharding ? Attribute(sharding) : UnitAttr::get(op->getContext()));
  op->setAttr(DistDialect::kShardings, ArrayAttr::get(op->getContext(), list));
}

sharding::TensorSharding dist::resolveVerified(ShardingAttr attr, const MeshTable &meshes,
                                               Type type) {
  FailureOr<sharding::TensorSharding> result =
      attr.resolve(meshes.get(attr.getMesh()), type, [&]() -> InFlightDiagnostic {
        return mlir::emitError(UnknownLoc::get(attr.getContext()));
      });
  assert(succeeded(result) && "the verifier lets no wrong sharding through");
  return *result;
}

std::vector<int64_t> dist::shapeOf(Type type) {
  return cast<RankedTensorType>(type).getShape().vec();
}

int64_t dist::bytesPerElement(Type elementType) {
  if (elementType.isIndex())
    return 8;
  return (elementType.getIntOrFloatBitWidth() + 7) / 8;
}

RankedTensorType dist::localType(RankedTensorType global,
                                 const sharding::TensorSharding &sharding) {
  return RankedTensorType::get(sharding::localShape(sharding, global.getShape().vec()),
                               global.getElementType());
}

RankedTensorType dist::getGlobalType(Value value) {
  auto own = cast<RankedTensorType>(value.getType());
  StringRef name;
  auto [op, index] = homeOf(value, name);
  if (!op)
    return own;
  Attribute attr = name == DistDialect::kSharding
                       ? cast<FunctionOpInterface>(op).getArgAttr(index, DistDialect::kGlobalType)
                       : op->getAttr(DistDialect::kGlobalType);
  if (auto list = dyn_cast_or_null<ArrayAttr>(attr))
    attr = index < list.size() ? list[index] : Attribute();
  auto type = dyn_cast_or_null<TypeAttr>(attr);
  return type ? cast<RankedTensorType>(type.getValue()) : own;
}

void dist::setGlobalType(Value value, RankedTensorType type) {
  StringRef name;
  auto [op, index] = homeOf(value, name);
  assert(op && "this value has no place for a global type");
  TypeAttr attr = TypeAttr::get(type);
  if (name == DistDialect::kSharding) {
    cast<FunctionOpInterface>(op).setArgAttr(index, DistDialect::kGlobalType, attr);
    return;
  }
  if (op->getNumResults() == 1) {
    op->setAttr(DistDialect::kGlobalType, attr);
    return;
  }
  SmallVector<Attribute> list;
  if (auto old = op->getAttrOfType<ArrayAttr>(DistDialect::kGlobalType))
    list.assign(old.begin(), old.end());
  else
    for (Type result : op->getResultTypes())
      list.push_back(TypeAttr::get(result));
  list[index] = attr;
  op->setAttr(DistDialect::kGlobalType, ArrayAttr::get(op->getContext(), list));
}

std::string dist::argumentName(FunctionOpInterface function, unsigned index) {
  if (auto name = function.getArgAttrOfType<StringAttr>(index, DistDialect::kName))
    return name.str();
  return "arg" + std::to_string(index);
}

std::string dist::resultName(FunctionOpInterface function, unsigned index) {
  if (auto name = function.getResultAttrOfType<StringAttr>(index, DistDialect::kName))
    return name.str();
  return "result" + std::to_string(index);
}
