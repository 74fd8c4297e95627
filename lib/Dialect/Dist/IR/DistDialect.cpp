//===- DistDialect.cpp - The dist dialect ----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Registration, and the rules of the discardable attributes (S, F).
//
//===----------------------------------------------------------------------===//

#include "PartialUses.h"
#include "tessera/Dialect/Dist/IR/ReshardCache.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

#include "tessera/Dialect/Dist/IR/DistDialect.cpp.inc"

namespace {
/// Annotations have no effect, so functions that hold them can be inlined.
struct DistInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const override { return true; }
};
} // namespace

void DistDialect::initialize() {
  registerAttributes();
  registerTypes();
  registerOperations();
  addInterfaces<DistInlinerInterface, ReshardCacheInterface>();
}

sharding::ReshardPlanner &dist::plannerOf(MLIRContext *context, sharding::Objective objective,
                                          const sharding::Topology &topology) {
  auto *dialect = context->getLoadedDialect<DistDialect>();
  return dialect->getRegisteredInterface<ReshardCacheInterface>()->plans().planner(objective,
                                                                                   topology);
}

ProcessMeshOp dist::lookupMesh(Operation *op, FlatSymbolRefAttr name) {
  return SymbolTable::lookupNearestSymbolFrom<ProcessMeshOp>(op, name);
}

/// Checks one sharding of a value of `type` (rules S1 to S10).
static LogicalResult verifySharding(Operation *op, ShardingAttr attr, Type type, const Twine &what,
                                    std::optional<Location> loc = {}) {
  auto emitError = [&]() { return mlir::emitError(loc.value_or(op->getLoc())) << what << ": "; };
  ProcessMeshOp mesh = lookupMesh(op, attr.getMesh());
  if (!mesh) // (S1)
    return emitError() << "mesh '" << attr.getMesh().getValue()
                       << "' is not declared; add dist.process_mesh @" << attr.getMesh().getValue();
  // A broken mesh reports itself.
  if (failed(mesh.verify()))
    return failure();
  return attr.resolve(mesh.getMesh(), type, emitError);
}

/// Checks `dist.shardings` and its kin: an array with a sharding for every tensor of `types`.
static LogicalResult verifyShardingList(Operation *op, StringRef name, Attribute value,
                                        TypeRange types) {
  auto list = dyn_cast<ArrayAttr>(value);
  if (!list || list.size() != types.size()) // (S10)
    return op->emitError() << "'" << name << "' has "
                           << (list ? std::to_string(list.size()) : std::string("no list of"))
                           << " shardings, '" << op->getName() << "' has " << types.size()
                           << " results; give one each";
  for (auto [index, element, type] : llvm::enumerate(list, types)) {
    if (isa<UnitAttr>(element))
      continue;
    auto sharding = dyn_cast<ShardingAttr>(element);
    if (!sharding)
      return op->emitError() << "'" << name << "' entry " << index << " is " << element
                             << ", not a #dist.sharding";
    if (failed(verifySharding(op, sharding, type, "'" + name + "' entry " + Twine(index))))
      return failure();
    if (name == DistDialect::kShardings &&
        failed(verifyPartialUses(op->getResult(index), sharding)))
      return failure();
  }
  return success();
}

static LogicalResult verifyName(Operation *op, Attribute value, const Twine &what) {
  auto text = dyn_cast<StringAttr>(value);
  if (!text || text.empty()) // (F2)
    return op->emitError() << what << ": dist.name " << value
                           << " is not a name; give a non-empty string";
  return success();
}

/// Checks that a call's derivative takes the call's arguments and results and the cotangents of its
/// results, and gives those of its arguments.
static LogicalResult verifyCustomVjp(Operation *op, Attribute value) {
  auto name = dyn_cast<FlatSymbolRefAttr>(value);
  auto call = dyn_cast<func::CallOp>(op);
  if (!name || !call) // (D2)
    return op->emitError() << "'" << DistDialect::kCustomVjp << "' is the name of a function and "
                           << "stands on func.call";
  auto function = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, name);
  if (!function) // (D2)
    return op->emitError() << "'" << DistDialect::kCustomVjp << "' is '" << name.getValue()
                           << "', which is no function of the module";
  auto isFloat = [](Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); };
  SmallVector<Type> inputs(call.getOperandTypes()), outputs;
  llvm::append_range(inputs, call.getResultTypes());
  llvm::append_range(inputs, llvm::make_filter_range(call.getResultTypes(), isFloat));
  llvm::append_range(outputs, llvm::make_filter_range(call.getOperandTypes(), isFloat));
  auto wanted = FunctionType::get(op->getContext(), inputs, outputs);
  if (function.getFunctionType() != wanted) // (D2)
    return op->emitError() << "'" << name.getValue() << "' has type " << function.getFunctionType()
                           << "; as the derivative of this call it has type " << wanted;
  return success();
}

LogicalResult DistDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  if (name == kShardings)
    return verifyShardingList(op, name, value, op->getResultTypes());
  if (name == kBeforeShardings) {
    auto loop = dyn_cast<scf::WhileOp>(op);
    if (!loop)
      return op->emitError() << "'" << name << "' stands on scf.while only";
    return verifyShardingList(op, name, value, loop.getBeforeBody()->getArgumentTypes());
  }
  if (name == kView) {
    auto view = dyn_cast<StringAttr>(value);
    if (!isa<FunctionOpInterface>(op) || !view ||
        (view.getValue() != "local" && view.getValue() != "global"))
      return op->emitError() << "'" << name
                             << "' is \"local\" or \"global\" and stands on functions, found "
                             << value;
    return success();
  }
  if (name == kGlobalType) {
    auto list = dyn_cast<ArrayAttr>(value);
    if (!isa<TypeAttr>(value) && !(list && list.size() == op->getNumResults()))
      return op->emitError() << "'" << name << "' is a type, or a list with one a result";
    return success();
  }
  if (name == kSharding)
    return op->emitError() << "'" << name << "' stands on function arguments and results; "
                           << "on an op write '" << kShardings << "' = [ … ]";
  if (name == kMove) {
    auto kind = dyn_cast<StringAttr>(value);
    if (!isa<ReshardOp>(op) || !kind || !sharding::parseCollectiveKind(kind.getValue().str()))
      return op->emitError() << "'" << name << "' is the name of a collective and stands on "
                             << "dist.reshard, found " << value;
    return success();
  }
  if (name == kMeshDevices || name == kReason || name == kMesh || name == kPartOf)
    return success();
  if (name == kCustomVjp)
    return verifyCustomVjp(op, value);
  if (name == kSearch) {
    if (!isa<ModuleOp>(op) || !isa<DictionaryAttr>(value))
      return op->emitError() << "'" << name
                             << "' is a dictionary that dist-search writes on modules";
    return success();
  }
  if (name == kName || name == kFeeds || name == kRange)
    return op->emitError() << "'" << name << "' stands on function arguments and results";
  return op->emitError() << "unknown attribute '" << name << "' of the dist dialect";
}

LogicalResult DistDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argument,
                                                    NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  std::string what = ("argument " + Twine(argument)).str();
  if (!function)
    return op->emitError() << "'" << name << "' stands on arguments of functions";
  Type type = function.getArgumentTypes()[argument];
  if (name == kSharding) {
    auto sharding = dyn_cast<ShardingAttr>(value);
    if (!sharding)
      return op->emitError() << what << ": 'dist.sharding' is " << value
                             << ", not a #dist.sharding";
    if (function.isExternal())
      return verifySharding(op, sharding, type, what);
    BlockArgument value = function.getArgument(argument);
    if (failed(verifySharding(op, sharding, type, what, value.getLoc())))
      return failure();
    return verifyPartialUses(value, sharding);
  }
  if (name == kName) {
    if (failed(verifyName(op, value, what)))
      return failure();
    for (unsigned other = 0; other < argument; ++other)
      if (function.getArgAttr(other, kName) == value) // (F2)
        return op->emitError() << what << ": dist.name " << value << " is that of argument "
                               << other << " too; names are unique";
    return success();
  }
  if (name == kRange) {
    auto list = dyn_cast<ArrayAttr>(value);
    SmallVector<int64_t> bounds;
    for (Attribute element : list ? list.getValue() : ArrayRef<Attribute>())
      if (auto integer = dyn_cast<IntegerAttr>(element))
        bounds.push_back(integer.getInt());
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (bounds.size() != 2 || bounds[0] >= bounds[1] || !list || list.size() != 2) // (F3)
      return op->emitError() << what << ": dist.range " << value << " is not [lo, hi] with lo < hi";
    if (!tensor || !tensor.getElementType().isIntOrIndex()) // (F3)
      return op->emitError() << what << ": dist.range stands on integer tensors, not on " << type
                             << "";
    return success();
  }
  if (name == kGlobalType || name == kArgument || name == kResult)
    return success();
  return op->emitError() << what << ": unknown attribute '" << name << "'";
}

LogicalResult DistDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index,
                                                       NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  std::string what = ("result " + Twine(index)).str();
  if (!function)
    return op->emitError() << "'" << name << "' stands on results of functions";
  Type type = function.getResultTypes()[index];
  if (name == kSharding) {
    auto sharding = dyn_cast<ShardingAttr>(value);
    if (!sharding)
      return op->emitError() << what << ": 'dist.sharding' is " << value
                             << ", not a #dist.sharding";
    return verifySharding(op, sharding, type, what);
  }
  if (name == kName) {
    if (failed(verifyName(op, value, what)))
      return failure();
    for (unsigned other = 0; other < index; ++other)
      if (function.getResultAttr(other, kName) == value) // (F2)
        return op->emitError() << what << ": dist.name " << value << " is that of result " << other
                               << " too; names are unique";
    return success();
  }
  if (name == kFeeds) {
    auto target = dyn_cast<IntegerAttr>(value);
    int64_t argument = target ? target.getInt() : -1;
    int64_t numArguments = function.getNumArguments();
    // A local function has some of the program's arguments, each with its number there.
    bool local = isLocalView(function);
    bool known = argument >= 0 && argument < numArguments;
    if (local) {
      known = false;
      for (int64_t own = 0; own < numArguments; ++own) {
        auto original = function.getArgAttrOfType<IntegerAttr>(own, kArgument);
        known |= argument == (original ? original.getInt() : own);
      }
    }
    if (!known) // (F1)
      return op->emitError() << what << ": dist.feeds = " << value << " names no argument"
                             << (local ? " of this function; a result feeds an argument on its mesh"
                                       : "; there are " + std::to_string(numArguments));
    if (!local && function.getArgumentTypes()[argument] != type) // (F1)
      return op->emitError() << what << ": dist.feeds = " << argument << ", but the result is "
                             << type << " and the argument "
                             << function.getArgumentTypes()[argument] << "; types must be equal";
    for (unsigned other = 0; other < index; ++other)
      if (function.getResultAttr(other, kFeeds) == value) // (F1)
        return op->emitError() << what << ": argument " << argument << " is fed by result " << other
                               << " too; each argument is fed once";
    return success();
  }
  if (name == kGlobalType || name == kArgument || name == kResult)
    return success();
  return op->emitError() << what << ": unknown attribute '" << name << "'";
}
