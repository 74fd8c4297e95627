//===- OpCosts.cpp - Cost of an op on a device ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/OpCosts.h"

#include "tessera/Planning/Liveness.h"

#include "tessera/Dialect/Dist/IR/ReshardCache.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/GroupedProduct.h"
#include "tessera/Dialect/Dist/Rules/Rules.h"
#include "tessera/Dialect/Dist/Rules/Selection.h"
#include "tessera/Dialect/Dist/Rules/ShardingRuleInterface.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

bool dist::hasCost(Operation *op) {
  auto isTensor = llvm::IsaPred<RankedTensorType>;
  return isa<ShardingRuleOpInterface>(op) && !isa<ShardTensorOp>(op) &&
         (llvm::any_of(op->getOperandTypes(), isTensor) ||
          llvm::any_of(op->getResultTypes(), isTensor));
}

bool dist::combinesTensors(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && linalgOp.getNumReductionLoops() > 0 && linalgOp.getNumDpsInputs() >= 2;
}

int64_t dist::operationsOf(Operation *op) {
  auto distributed = dyn_cast<ShardingRuleOpInterface>(op);
  return distributed ? distributed.getOperationsPerIteration() : 0;
}

double dist::tripsOf(Operation *op) {
  double trips = 1;
  for (auto loop = op->getParentOfType<LoopLikeOpInterface>(); loop;
       loop = loop->getParentOfType<LoopLikeOpInterface>()) {
    std::optional<llvm::APInt> count = loop.getStaticTripCount();
    trips *= count ? std::max(1.0, count->roundToDouble()) : static_cast<double>(kUnknownTrips);
  }
  return trips;
}

OpCosts::OpCosts(func::FuncOp function, const sharding::Topology &topology)
    : lives(std::make_unique<Liveness>(function)), topology(topology) {
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == function)
      return WalkResult::advance();
    for (Value operand : llvm::SmallPtrSet<Value, 4>(op->operand_begin(), op->operand_end()))
      ++readers[{operand, lives->kernelOf(op)}];
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      if (std::optional<Selection> selection = selectionOf(
              generic, [&](Value dest, Value result) { return isInPlace(dest, result); }))
        selections[op] = std::move(*selection);
    return isa<linalg::LinalgOp>(op) ? WalkResult::skip() : WalkResult::advance();
  });
}

OpCosts::~OpCosts() = default;

std::optional<OpCosts::Selection>
OpCosts::selectionOf(linalg::GenericOp op, llvm::function_ref<bool(Value, Value)> isInPlace) {
  Selection selection;
  if (std::optional<GroupedProduct> product = matchGroupedProduct(op)) {
    // A device's groups have the rows that data gives them: on average its share of all rows.
    auto all = op->getAttrOfType<IntegerAttr>(DistDialect::kGroups);
    selection.rows = all ? static_cast<double>(all.getInt())
                         : static_cast<double>(op.getStaticLoopRanges()[product->group]);
    selection.isSelected.assign(op->getNumOperands() + 1, false);
    return selection;
  }
  SmallVector<SelectedLoop, 2> loops = replaceableLoops(op);
  if (loops.empty())
    return std::nullopt;
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  bool scatters = isScatter(op);
  llvm::erase_if(loops, [&](const SelectedLoop &each) { // compared with every row
    return !scatters && iterators[each.loop] == utils::IteratorType::parallel;
  });
  if (loops.empty())
    return std::nullopt;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  for (const SelectedLoop &each : loops)
    selection.rows *= static_cast<double>(extents[each.loop]);
  bool updates = scatters && isInPlace(op.getDpsInits()[0], op->getResult(0));
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    selection.isSelected.push_back(
        op.isDpsInput(&operand)
            ? llvm::any_of(loops,
                           [&](const SelectedLoop &each) { return map.isFunctionOfDim(each.loop); })
            : updates);
  }
  selection.isSelected.push_back(updates);
  return selection;
}

/// Whether a loop yields `next` for a carry, possibly as a view, or after other updates of it.
static bool isNextOf(Value carry, Value next) {
  auto argument = dyn_cast<BlockArgument>(carry);
  auto loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
  if (!loop || argument == loop.getInductionVar())
    return false;
  Value last = rootOf(loop.getTiedLoopYieldedValue(argument)->get());
  while (last && last != next)
    last = updatedBy(last.getDefiningOp());
  return last != nullptr;
}

/// Into a dying value, a carry without later readers, or an undefined tensor.
bool OpCosts::isInPlace(Value dest, Value result) const {
  bool isView = lives->of(result).kind == Liveness::Kind::view;
  if (!dest.hasOneUse())
    return isView && isNextOf(dest, result);
  return isView || lives->of(dest).isTaken || dest.getDefiningOp<tensor::EmptyOp>();
}

/// Whether a value stays in a cache, as scores of an attention do.
static bool isCached(Value value) {
  Operation *op = value.getDefiningOp();
  return op && op->hasAttr(DistDialect::kCached) && !isa<scf::ForOp>(op);
}

/// A tensor from outside of an attention's loops over blocks is read once by all of them: the part
/// of its slice for which one block counts.
static double shareOfBlock(Operation *op, Value value) {
  double trips = 1;
  Operation *outermost = nullptr;
  for (auto loop = op->getParentOfType<scf::ForOp>(); loop && loop->hasAttr(DistDialect::kCached);
       loop = loop->getParentOfType<scf::ForOp>()) {
    std::optional<APInt> count = loop.getStaticTripCount();
    trips *= count ? count->roundToDouble() : 1;
    outermost = loop;
  }
  if (!outermost)
    return 1;
  auto part = cast<RankedTensorType>(value.getType());
  while (auto slice = value.getDefiningOp<tensor::ExtractSliceOp>())
    value = slice.getSource();
  if (outermost->isAncestor(value.getParentBlock()->getParentOp()) || part.getNumElements() == 0)
    return 1;
  auto whole = cast<RankedTensorType>(value.getType());
  return std::min(1.0, static_cast<double>(whole.getNumElements()) /
                           (static_cast<double>(part.getNumElements()) * trips));
}

SmallVector<double> OpCosts::loadsAndStores(Operation *op) const {
  int64_t kernel = lives->kernelOf(op);
  auto isKept = [&](Value value) {
    if (!isa<RankedTensorType>(value.getType()) || isCached(value))
      return false;
    Liveness::LiveRange life = lives->of(value);
    // Results of ops and arguments have live ranges; values recomputed at their uses have empty
    // ones.
    bool isMade = life.to >= life.from || !value.getDefiningOp();
    return isMade && life.kind != Liveness::Kind::inside;
  };
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  SmallVector<double> counts;
  llvm::SmallPtrSet<Value, 4> seen;
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    bool isIgnored =
        linalgOp && linalgOp.isDpsInit(&operand) && !linalgOp.payloadUsesValueFromOperand(&operand);
    Operation *producer = value.getDefiningOp();
    bool isInRegisters = producer && lives->kernelOf(producer) == kernel;
    bool isLoaded = !isIgnored && !isInRegisters && isKept(value) && seen.insert(value).second;
    counts.push_back(
        isLoaded ? shareOfBlock(op, value) / std::max(1, readers.lookup({value, kernel})) : 0);
  }
  for (Value result : op->getResults())
    counts.push_back(isKept(result));
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op); insert && isInPlace(insert)) {
    counts[0] += 1; // only the slice is written
    counts[1] = counts.back() = 0;
  }
  return counts;
}

OpCosts::Work OpCosts::workOf(Operation *op, ArrayRef<double> loadsAndStores,
                              const Selection *selection) {
  Work work;
  work.bytes.assign(loadsAndStores.begin(), loadsAndStores.end());
  for (size_t i = 0; i < work.bytes.size(); ++i) {
    Type type = i < op->getNumOperands() ? op->getOperand(i).getType()
                                         : op->getResult(i - op->getNumOperands()).getType();
    if (work.bytes[i] > 0)
      work.bytes[i] *= static_cast<double>(bytesPerElement(getElementTypeOrSelf(type)));
  }
  if (isa<tensor::ExtractSliceOp>(op)) // only the slice is read
    work.bytes.back() += std::exchange(work.bytes.front(), 0.0);
  if (selection) {
    work.rows = selection->rows;
    work.isSelected = selection->isSelected;
  }
  work.operations = static_cast<double>(operationsOf(op));
  auto distributed = dyn_cast<ShardingRuleOpInterface>(op);
  llvm::raw_string_ostream(work.dtype)
      << (distributed ? distributed.getArithmeticType()
                      : getElementTypeOrSelf(op->getResult(0).getType()));
  return work;
}

OpCosts::Work OpCosts::workOf(Operation *op) const {
  if (isMadeOfScalars(op) || Liveness::isView(op))
    return {};
  auto selection = selections.find(op);
  return workOf(op, loadsAndStores(op),
                selection == selections.end() ? nullptr : &selection->second);
}

OpCosts::Work OpCosts::workAlone(Operation *op) {
  auto isInMemory = [](Value value) {
    Operation *maker = value.getDefiningOp();
    return isa<RankedTensorType>(value.getType()) &&
           !(maker && (isa<tensor::EmptyOp, arith::ConstantOp>(maker) || isMadeOfScalars(maker)));
  };
  SmallVector<double> counts;
  for (Value operand : op->getOperands())
    counts.push_back(isInMemory(operand));
  counts.append(op->getNumResults(), 1);
  auto generic = dyn_cast<linalg::GenericOp>(op);
  std::optional<Selection> selection;
  if (generic)
    selection = selectionOf(generic, [&](Value dest, Value) {
      return dest.hasOneUse() && (isInMemory(dest) || dest.getDefiningOp<tensor::EmptyOp>());
    });
  return workOf(op, counts, selection ? &*selection : nullptr);
}

double OpCosts::seconds(const sharding::Topology &topology, const Work &work, double iterations,
                        ArrayRef<double> elements, int64_t devices) {
  if (!work.isSelected.empty())
    iterations = std::max(1.0, iterations / work.rows);
  double bytes = 0;
  for (size_t i = 0; i < work.bytes.size(); ++i)
    if (work.bytes[i] > 0) {
      bool isSelected = i < work.isSelected.size() && work.isSelected[i];
      bytes += work.bytes[i] * (isSelected ? std::min(elements[i], iterations) : elements[i]);
    }
  return topology.computeSeconds(iterations * work.operations, bytes, work.dtype, devices);
}

double OpCosts::communicationSeconds(const sharding::Topology &topology, Operation *op,
                                     const sharding::FactorAxes &axes, const sharding::Mesh &mesh) {
  auto distributed = dyn_cast<ShardingRuleOpInterface>(op);
  if (!distributed || isa<linalg::LinalgOp>(op) || // their iterations are independent
      llvm::all_of(axes, [](const sharding::AxisList &each) { return each.empty(); }))
    return 0;
  return distributed.getCommunicationSeconds(
      axes, mesh, plannerOf(op->getContext(), sharding::Objective::time, topology));
}

double OpCosts::seconds(Operation *op, int64_t devices) const {
  double iterations = 1;
  if (operationsOf(op) > 0)
    if (std::optional<sharding::ShardingRule> rule = getShardingRule(op))
      for (const sharding::Factor &factor : rule->factors)
        iterations *= static_cast<double>(factor.size);
  SmallVector<double> elements;
  auto add = [&](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    elements.push_back(tensor ? static_cast<double>(tensor.getNumElements()) : 0);
  };
  llvm::for_each(op->getOperandTypes(), add);
  llvm::for_each(op->getResultTypes(), add);
  return seconds(op, iterations, elements, devices);
}
