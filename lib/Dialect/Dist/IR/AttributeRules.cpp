//===- AttributeRules.cpp - The rules of discardable attributes -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the verifier requires of attributes of the dialect on ops of any dialect and on
// arguments and results of functions (rules S and F of docs/reference/dist.md).
//
//===----------------------------------------------------------------------===//

#include "Limits.h"
#include "PartialUses.h"
#include "tessera/Dialect/Dist/IR/Pipeline.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/BlockReshapes.h"
#include "tessera/Dialect/Dist/Rules/OpShardings.h"
#include "tessera/Dialect/Dist/Rules/Rounding.h"
#include "tessera/Sharding/Buffers.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

/// Checks one sharding of a value of `type` (rules S1 to S10).
static LogicalResult verifySharding(Operation *op, ShardingAttr attr, Type type, const Twine &what,
                                    std::optional<Location> loc = {}) {
  auto emitError = [&]() { return mlir::emitError(loc.value_or(op->getLoc())) << what << ": "; };
  ProcessMeshOp mesh = lookupMesh(op, attr.getMesh());
  if (!mesh) // (S1)
    return emitError() << "mesh '" << attr.getMesh().getValue()
                       << "' is not declared; add dist.process_mesh @" << attr.getMesh().getValue();
  // An invalid mesh is reported by its verifier.
  if (failed(mesh.verify()))
    return failure();
  return attr.resolve(mesh.getMesh(), type, emitError);
}

/// Checks `dist.shardings` and similar attributes: an array with a sharding for every tensor of
/// `types`.
static LogicalResult verifyShardingList(Operation *op, StringRef name, Attribute value,
                                        TypeRange types) {
  auto list = dyn_cast<ArrayAttr>(value);
  if (!list || list.size() != types.size()) // (S10)
    return op->emitError() << "'" << name << "' has "
                           << (list ? std::to_string(list.size()) : std::string("no list of"))
                           << " shardings, '" << op->getName() << "' has " << types.size()
                           << " results; give one sharding per result";
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
                           << " is not a valid name; give a non-empty string";
  return success();
}

/// Checks that a call's derivative takes the call's arguments, results and the cotangents of its
/// results, and returns those of its arguments.
static LogicalResult verifyCustomVjp(Operation *op, Attribute value) {
  auto name = dyn_cast<FlatSymbolRefAttr>(value);
  auto call = dyn_cast<func::CallOp>(op);
  if (!name || !call) // (D2)
    return op->emitError() << "'" << DistDialect::kCustomVjp
                           << "' must be the name of a function, on a "
                           << "func.call";
  auto function = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, name);
  if (!function) // (D2)
    return op->emitError() << "'" << DistDialect::kCustomVjp << "' is '" << name.getValue()
                           << "', which is not a function of the module";
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

/// The mesh of a function of the local view.
static LogicalResult verifyMeshOfFunction(Operation *op, Attribute value) {
  auto name = dyn_cast<FlatSymbolRefAttr>(value);
  if (!name || !isa<FunctionOpInterface>(op)) // (L1)
    return op->emitError() << "'" << DistDialect::kMesh
                           << "' must be the name of a mesh, on a function, "
                           << "got " << value;
  if (!lookupMesh(op, name)) // (L1)
    return op->emitError() << "mesh '" << name.getValue()
                           << "' is not declared; add dist.process_mesh @" << name.getValue();
  return success();
}

/// The process ids that run a function of the local view.
static LogicalResult verifyMeshDevices(Operation *op, Attribute value) {
  StringRef attribute = DistDialect::kMeshDevices;
  auto list = dyn_cast<DenseI64ArrayAttr>(value);
  if (!list || list.empty() || !isa<FunctionOpInterface>(op)) // (L2)
    return op->emitError()
           << "'" << attribute << "' is " << value
           << "; expected array<i64: …> with at least one process id, on a function";
  std::set<int64_t> ids;
  for (int64_t id : list.asArrayRef()) { // (L2)
    if (id < 0 || id > kMaxProcessId)
      return op->emitError() << "'" << attribute << "' has process id " << id
                             << "; ids must be in [0, " << kMaxProcessId + 1 << ")";
    if (!ids.insert(id).second)
      return op->emitError() << "'" << attribute << "' has duplicate process id " << id;
  }
  auto name = op->getAttrOfType<FlatSymbolRefAttr>(DistDialect::kMesh);
  ProcessMeshOp declared = name ? lookupMesh(op, name) : ProcessMeshOp();
  if (!declared || failed(declared.verify()))
    return success(); // reported as another error
  sharding::Mesh mesh = declared.getMesh();
  if (ids != std::set<int64_t>(mesh.processIds.begin(), mesh.processIds.end())) // (L2)
    return op->emitError() << "'" << attribute << "' is " << value << ", mesh '" << mesh.name
                           << "' has other process ids; list those of the mesh";
  return success();
}

/// The index in the program of an argument or result of a local function.
static LogicalResult verifyPosition(Operation *op, NamedAttribute attribute, StringRef what) {
  static constexpr int64_t kMaxPosition = (int64_t(1) << 20) - 1;
  auto position = dyn_cast<IntegerAttr>(attribute.getValue());
  if (!position || !position.getType().isSignlessInteger(64) || position.getInt() < 0 ||
      position.getInt() > kMaxPosition) // (L3)
    return op->emitError() << what << ": " << attribute.getName().getValue() << " = "
                           << attribute.getValue()
                           << " is not a valid position; expected an i64 in [0, "
                           << kMaxPosition + 1 << ")";
  return success();
}

/// The global type of an argument or result of a local function, which holds a part of it.
static LogicalResult verifyGlobalType(FunctionOpInterface function, Attribute value, Type type,
                                      ShardingAttr sharding, StringRef what) {
  auto attr = dyn_cast<TypeAttr>(value);
  auto global = attr ? dyn_cast<RankedTensorType>(attr.getValue()) : RankedTensorType();
  if (!global || !global.hasStaticShape()) // (L4)
    return function.emitError() << what << ": dist.global_type is " << value
                                << ", not a tensor of static shape";
  ProcessMeshOp declared = sharding ? lookupMesh(function, sharding.getMesh()) : ProcessMeshOp();
  if (!isLocalView(function) || !declared || failed(declared.verify()))
    return success();
  auto resolved = sharding.resolve(declared.getMesh(), global,
                                   [&]() { return function.emitError() << what << ": "; });
  if (failed(resolved))
    return failure();
  if (RankedTensorType local = localType(global, *resolved); local != type) // (L4)
    return function.emitError() << what << " is " << type << ", but " << sharding
                                << " of dist.global_type " << global << " gives devices " << local;
  return success();
}

/// Whether the windows that a halo exchange makes begin as far apart as the parts of devices.
static bool isAroundParts(const sharding::Move &move, RankedTensorType type) {
  return move.kind != sharding::CollectiveKind::halo_exchange ||
         llvm::all_of(move.target.windows, [&](const sharding::Window &window) {
           return window.dim != move.dim ||
                  window.step ==
                      sharding::ceilDiv(type.getDimSize(window.dim), sharding::sizeOf(move.axes));
         });
}

/// Checks that the collective of a planned reshard leads from its operand to its result.
static LogicalResult verifyMove(Operation *op, Attribute value) {
  auto move = dyn_cast<MoveAttr>(value);
  auto reshard = dyn_cast<ReshardOp>(op);
  if (!move || !reshard)
    return op->emitError() << "'" << DistDialect::kMove << "' must be a #dist.move, on a "
                           << "dist.reshard, got " << value
                           << "; leave it out and run dist-plan-reshards";
  ShardingAttr from = getSharding(reshard.getOperand()), to = reshard.getSharding();
  ProcessMeshOp mesh = lookupMesh(op, to.getMesh());
  auto emitError = [&]() { return op->emitError(); };
  if (!from || !mesh || failed(mesh.verify()))
    return success(); // reported elsewhere
  sharding::Mesh devices = mesh.getMesh();
  if (from.getMesh() == to.getMesh()) {
    auto source = from.resolve(devices, reshard.getType(), emitError);
    auto target = to.resolve(devices, reshard.getType(), emitError);
    if (failed(source) || failed(target))
      return failure();
    auto resolved = move.resolve(devices, source->closed(), target->closed(), emitError);
    if (failed(resolved))
      return failure();
    if (reshard.getFill() && !sharding::isByBoxes(move.getKind())) // (R5)
      return op->emitError() << "'" << DistDialect::kMove << "' is " << move << ", which has no "
                             << "fill; leave the fill of the reshard out, or the move and run "
                             << "dist-plan-reshards";
    if (sharding::leadsToTarget(*resolved) && isAroundParts(*resolved, reshard.getType()))
      return success();
  }
  return op->emitError() << "'" << DistDialect::kMove << "' is " << move
                         << ", which does not convert " << from << " to " << to
                         << "; leave it out and run dist-plan-reshards";
}

LogicalResult DistDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  if (name == kShardings)
    return verifyShardingList(op, name, value, op->getResultTypes());
  if (name == kBeforeShardings) {
    auto loop = dyn_cast<scf::WhileOp>(op);
    if (!loop)
      return op->emitError() << "'" << name << "' is only allowed on scf.while";
    return verifyShardingList(op, name, value, loop.getBeforeBody()->getArgumentTypes());
  }
  if (name == kView) {
    auto view = dyn_cast<StringAttr>(value);
    if (!isa<FunctionOpInterface>(op) || !view ||
        (view.getValue() != "local" && view.getValue() != "global"))
      return op->emitError() << "'" << name
                             << "' must be \"local\" or \"global\", on a function, got " << value;
    return success();
  }
  if (name == kGlobalType) {
    auto list = dyn_cast<ArrayAttr>(value);
    if (!isa<TypeAttr>(value) && !(list && list.size() == op->getNumResults()))
      return op->emitError() << "'" << name << "' must be a type, or a list of one type per result";
    return success();
  }
  if (name == kSharding)
    return op->emitError() << "'" << name << "' is only allowed on function arguments and results; "
                           << "on an op write '" << kShardings << "' = [ … ]";
  if (name == kGroups) {
    if (!isa<IntegerAttr>(value))
      return op->emitError() << "'" << name << "' is " << value
                             << ", not the number of all groups of a product of rows by group";
    return success();
  }
  if (name == kCached) {
    if (!isa<UnitAttr>(value))
      return op->emitError() << "'" << name << "' must be a unit attribute, got " << value;
    return success();
  }
  if (name == kMove)
    return verifyMove(op, value);
  if (name == kOpSharding) {
    auto sharding = dyn_cast<OpShardingAttr>(value);
    if (!sharding)
      return op->emitError() << "'" << name << "' is " << value << ", not a #dist.op_sharding";
    return getOpShardingVerifier().verify(op, sharding);
  }
  if (name == kMesh)
    return verifyMeshOfFunction(op, value);
  if (name == kMeshDevices)
    return verifyMeshDevices(op, value);
  if (name == kReason || name == kPartOf) {
    if (!isa<StringAttr>(value)) // (L5)
      return op->emitError() << "'" << name << "' is " << value << ", not a string";
    return success();
  }
  if (name == kCustomVjp)
    return verifyCustomVjp(op, value);
  if (name == kSearch) {
    if (!isa<ModuleOp>(op) || !isa<DictionaryAttr>(value))
      return op->emitError() << "'" << name
                             << "' must be the dictionary that dist-search writes, on a module";
    return success();
  }
  if (name == "dist.parallelisms") { // the driver writes it, for reports
    auto list = dyn_cast<ArrayAttr>(value);
    if (!isa<ModuleOp>(op) || !list || !llvm::all_of(list, llvm::IsaPred<StringAttr>))
      return op->emitError() << "'" << name << "' must be a list of strings, on a module, got "
                             << value;
    return success();
  }
  if (name == "dist.recut") { // dist-propagate writes it, for the driver
    if (!isa<ModuleOp>(op) || !isa<UnitAttr>(value))
      return op->emitError() << "'" << name << "' must be a unit attribute, on a module, got "
                             << value;
    return success();
  }
  if (name == kBlocks) {
    if (!isa<UnitAttr>(value) || !blockReshapeOf(op))
      return op->emitError() << "'" << name
                             << "' must be a unit attribute, on a tensor.expand_shape or "
                             << "tensor.collapse_shape between one dimension and two";
    return success();
  }
  if (name == kRoundsPartials) {
    if (!isa<UnitAttr>(value) || !isa<linalg::LinalgOp>(op))
      return op->emitError() << "'" << name << "' must be a unit attribute, on a linalg op, got "
                             << value << " on '" << op->getName() << "'";
    return success();
  }
  if (std::optional<LogicalResult> verified = verifyPipelineMark(op, attribute))
    return *verified;
  if (name == kName || name == kFeeds || name == kRange)
    return op->emitError() << "'" << name << "' is only allowed on function arguments and results";
  return op->emitError() << "unknown attribute '" << name << "' of the dist dialect";
}

/// Checks that no two of `count` arguments or results have the same value of an attribute.
/// Verification calls this for each of them that has it; the first call checks all, in time linear
/// in `count`.
static LogicalResult verifyUnique(unsigned index, unsigned count,
                                  function_ref<Attribute(unsigned)> attributeOf,
                                  function_ref<LogicalResult(unsigned, unsigned)> fail) {
  for (unsigned before = 0; before < index; ++before)
    if (attributeOf(before))
      return success();
  llvm::SmallDenseMap<Attribute, unsigned> first;
  for (unsigned i = index; i < count; ++i)
    if (Attribute value = attributeOf(i))
      if (auto [it, isNew] = first.try_emplace(value, i); !isNew)
        return fail(i, it->second);
  return success();
}

/// Checks `dist.feeds` of result `index`, the first result that has it, and of those after it.
static LogicalResult verifyFeeds(FunctionOpInterface function, unsigned index) {
  StringRef name = DistDialect::kFeeds;
  int64_t numArguments = function.getNumArguments();
  // A local function has some of the program's arguments, each with its index in the program.
  bool local = isLocalView(function);
  std::set<int64_t> known;
  auto feedsOf = [&](unsigned i) { return function.getResultAttr(i, name); };
  auto fail = [&](unsigned i) { return function.emitError() << "result " << i << ": "; };
  for (unsigned before = 0; before < index; ++before)
    if (feedsOf(before))
      return success(); // checked with the first one
  for (int64_t own = 0; own < numArguments; ++own) {
    auto original =
        local ? function.getArgAttrOfType<IntegerAttr>(own, DistDialect::kArgument) : IntegerAttr();
    known.insert(original ? original.getValue().getSExtValue() : own);
  }
  for (unsigned i = index; i < function.getNumResults(); ++i) {
    Attribute value = feedsOf(i);
    if (!value)
      continue;
    auto target = dyn_cast<IntegerAttr>(value);
    int64_t argument = target ? target.getValue().getSExtValue() : -1;
    Type type = function.getResultTypes()[i];
    if (argument < 0 || !known.count(argument)) // (F1)
      return fail(i) << "dist.feeds = " << value << " does not name an argument"
                     << (local ? " of this function; a result feeds an argument on its mesh"
                               : "; there are " + std::to_string(numArguments));
    if (!local && function.getArgumentTypes()[argument] != type) // (F1)
      return fail(i) << "dist.feeds = " << argument << ", but the result is " << type
                     << " and the argument " << function.getArgumentTypes()[argument]
                     << "; types must be equal";
  }
  return verifyUnique(index, function.getNumResults(), feedsOf, // (F1)
                      [&](unsigned i, unsigned other) {
                        return fail(i) << "argument "
                                       << cast<IntegerAttr>(feedsOf(i)).getValue().getSExtValue()
                                       << " is fed by result " << other
                                       << " too; each argument is fed once";
                      });
}

LogicalResult DistDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argument,
                                                    NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  std::string what = ("argument " + Twine(argument)).str();
  if (!function)
    return op->emitError() << "'" << name << "' is only allowed on function arguments";
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
    return verifyUnique(
        argument, function.getNumArguments(), // (F2)
        [&](unsigned i) { return function.getArgAttr(i, kName); },
        [&](unsigned i, unsigned other) {
          return op->emitError() << "argument " << i << ": dist.name "
                                 << function.getArgAttr(i, kName)
                                 << " is also the name of argument " << other
                                 << "; names are unique";
        });
  }
  if (name == kRange) {
    auto list = dyn_cast<ArrayAttr>(value);
    SmallVector<int64_t> bounds;
    for (Attribute element : list ? list.getValue() : ArrayRef<Attribute>())
      if (auto integer = dyn_cast<IntegerAttr>(element))
        if (std::optional<int64_t> bound = integer.getValue().trySExtValue())
          bounds.push_back(*bound);
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (bounds.size() != 2 || bounds[0] >= bounds[1] || !list || list.size() != 2) // (F3)
      return op->emitError() << what << ": dist.range " << value << " is not [lo, hi] with lo < hi";
    if (!tensor || !tensor.getElementType().isIntOrIndex()) // (F3)
      return op->emitError() << what << ": dist.range is only allowed on integer tensors, not "
                             << type << "";
    unsigned width = tensor.getElementType().isIndex() ? 64 : tensor.getElementTypeBitWidth();
    int64_t least = width == 1 ? 0 : llvm::minIntN(std::min(width, 64u));
    int64_t most = width == 1 ? 1 : llvm::maxIntN(std::min(width, 64u));
    if (bounds[0] < least || bounds[1] - 1 > most) // (F3)
      return op->emitError() << what << ": dist.range " << value << " exceeds " << least << " to "
                             << most << ", the range of " << tensor.getElementType();
    return success();
  }
  if (name == kArgument)
    return verifyPosition(op, attribute, what);
  if (name == kGlobalType)
    return verifyGlobalType(function, value, type,
                            function.getArgAttrOfType<ShardingAttr>(argument, kSharding), what);
  return op->emitError() << what << ": unknown attribute '" << name << "'";
}

LogicalResult DistDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index,
                                                       NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  std::string what = ("result " + Twine(index)).str();
  if (!function)
    return op->emitError() << "'" << name << "' is only allowed on function results";
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
    return verifyUnique(
        index, function.getNumResults(), // (F2)
        [&](unsigned i) { return function.getResultAttr(i, kName); },
        [&](unsigned i, unsigned other) {
          return op->emitError() << "result " << i << ": dist.name "
                                 << function.getResultAttr(i, kName)
                                 << " is also the name of result " << other << "; names are unique";
        });
  }
  if (name == kFeeds)
    return verifyFeeds(function, index);
  if (name == kResult)
    return verifyPosition(op, attribute, what);
  if (name == kGlobalType)
    return verifyGlobalType(function, value, type,
                            function.getResultAttrOfType<ShardingAttr>(index, kSharding), what);
  return op->emitError() << what << ": unknown attribute '" << name << "'";
}
