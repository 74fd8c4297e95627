//===- InterleaveParts.cpp - Concatenated batches in turn -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A region collects the dimensions whose rows can be in another order: starting at a
// concatenation or a slice, it follows the factors of ops that treat all positions
// alike, and the values that loops and branches forward. Such ops stay as they are. At the
// border, joins and slices of whole parts are rewritten, indices are computed, and
// other values are rearranged, which is an exchange if the dimension is cut.
//
//===----------------------------------------------------------------------===//

#include "InterleaveParts.h"

#include "ConnectedDims.h"
#include "PartBorder.h"
#include "PartIndices.h"
#include "PartOrder.h"
#include "SplitLoops.h"

#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Dist/IR/ValueFlow.h"
#include "tessera/Dialect/Dist/Rules/ShardingRuleInterface.h"
#include "tessera/Planning/OpCosts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <map>
#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

using Dim = std::pair<Value, int64_t>;
using Dims = SmallVector<int64_t, 2>;

/// Parts of an order that devices hold; more are unlikely to be a batch.
constexpr int64_t kMostShares = 64;
constexpr int kMostRounds = 4;

RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

double bytesOf(Value value) {
  return static_cast<double>(typeOf(value).getNumElements() *
                             bytesPerElement(typeOf(value).getElementType()));
}

/// How often the value is computed.
double tripsOfValue(Value value) {
  if (Operation *op = value.getDefiningOp())
    return tripsOf(op);
  return tripsOf(&cast<BlockArgument>(value).getOwner()->front());
}

/// Whether each element of a value is the same, so that the order does not matter.
bool isUniformValue(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue());
  return isa_and_nonnull<tensor::EmptyOp, tensor::SplatOp>(op);
}

/// What a program says of all regions.
struct Program {
  Program(func::FuncOp function, ConnectedDims connected) : connected(std::move(connected)) {
    function.walk([&](RegionBranchOpInterface op) {
      forEachForwardedUse(
          op, [&](OpOperand &use, Value receiver) { sources[receiver].push_back(&use); });
    });
  }
  ConnectedDims connected;
  RuleTable rules;
  llvm::DenseMap<Value, SmallVector<OpOperand *>> sources; ///< of control flow; looked up only
};

bool readsIndex(Operation *op, int64_t loop) {
  WalkResult result = op->walk([&](linalg::IndexOp index) {
    return static_cast<int64_t>(index.getDim()) == loop ? WalkResult::interrupt()
                                                        : WalkResult::advance();
  });
  return result.wasInterrupted();
}

/// Whether a factor is a whole dimension wherever it occurs.
bool isWholeDim(const sharding::ShardingRule &rule, int64_t factor) {
  auto isPlain = [&](const sharding::DimRule &dim) {
    return !llvm::is_contained(dim.factors, factor) ||
           (dim.factors.size() == 1 && !dim.isWindow && !dim.segment &&
            rule.factors[factor].size > 0);
  };
  return llvm::all_of(rule.operands, [&](auto &tensor) { return llvm::all_of(tensor, isPlain); }) &&
         llvm::all_of(rule.results, [&](auto &tensor) { return llvm::all_of(tensor, isPlain); });
}

/// The values with a dimension in which parts may take turns.
class PartRegion {
public:
  PartRegion(Dim seed, PartOrder order, Program &program)
      : order(std::move(order)), program(program) {
    follow(seed, 1);
    while (isClosed && !work.empty()) {
      Dim dim = work.pop_back_val();
      visitProducer(dim);
      for (OpOperand &use : dim.first.getUses())
        visitUse(use, dim.second, leads.lookup(dim));
    }
  }

  const PartOrder &getOrder() const { return order; }
  const llvm::MapVector<Value, Dims> &getMembers() const { return members; }

  /// Whether devices that cut the rows send less.
  bool isWorthwhile() const {
    if (!isClosed || joins.empty() || movesWeights())
      return false;
    int64_t parts = 1;
    double saved = 0, cost = 0;
    bool joinsCut = false;
    auto addBorder = [&](Operation *op, int64_t dim) {
      int64_t cut = 1;
      for (Dim piece : piecesOf(op, dim))
        cut = std::max(cut, program.connected.partsOf(piece));
      parts = std::max(parts, cut);
      joinsCut |= cut > 1 && isa<tensor::ConcatOp>(op);
      double bytes = bytesOf(op->getResult(0)) * tripsOf(op);
      if (cut > 1)
        saved += bytes;
      else if (!joinsCut && cutsParts(op, dim)) // else only as the concatenation is
        cost += bytes;
    };
    for (bool isConcat : {true, false})
      for (auto [op, dim] : joins)
        if (isa<tensor::ConcatOp>(op) == isConcat)
          addBorder(op, dim);
    for (auto [op, dim] : exits)
      addBorder(op, dim);
    for (auto &[value, dims] : entering)
      cost += bytesOf(value) * tripsOfValue(value);
    for (auto &[use, dims] : leaving)
      cost += bytesOf(use->get()) * tripsOfValue(use->get());
    return parts > 1 && order.rows % parts == 0 && 2 * cost <= saved;
  }

  /// Adds the ops that the region consists of to `ops`; returns whether none was there.
  bool claim(llvm::DenseSet<Operation *> &ops) const {
    auto isFree = [&](Operation *op) { return !ops.contains(op); };
    if (!llvm::all_of(touched, isFree))
      return false;
    ops.insert_range(touched);
    return true;
  }

  void rewrite() {
    for (auto &[use, dims] : constants)
      use->set(converted(use->get(), dims, /*toTurns=*/true));
    rearrangeBorder();
    for (auto &[op, factors] : included)
      if (auto generic = dyn_cast<linalg::GenericOp>(op))
        reorderLoops(generic, factors, order);
    for (auto [op, dim] : joins)
      replace(op, border.join(op, dim));
    for (auto [op, dim] : exits)
      replace(op, border.exit(op, dim));
  }

private:
  //===--------------------------------------------------------------------===//
  // Collecting
  //===--------------------------------------------------------------------===//

  /// Adds a dimension of which each of `lead` equal runs has all parts.
  void follow(Dim dim, int64_t lead) {
    auto [known, isNew] = leads.insert({dim, lead});
    isClosed = isClosed && known->second == lead &&
               typeOf(dim.first).getDimSize(dim.second) % (lead * order.size()) == 0;
    if (!isNew)
      return;
    members[dim.first].push_back(dim.second);
    work.push_back(dim);
  }

  void followOperand(OpOperand &operand, int64_t dim, int64_t lead) {
    if (isUniformValue(operand.get()))
      return;
    if (!operand.get().getDefiningOp<arith::ConstantOp>())
      return follow({operand.get(), dim}, lead);
    isClosed = isClosed && lead == 1;
    add(constants[&operand], dim);
  }

  static void add(Dims &dims, int64_t dim) {
    if (!llvm::is_contained(dims, dim))
      dims.push_back(dim);
  }

  void visitProducer(Dim dim) {
    auto [value, index] = dim;
    int64_t lead = leads.lookup(dim);
    if (auto known = program.sources.find(value); known != program.sources.end()) {
      for (OpOperand *use : known->second)
        followOperand(*use, index, lead);
      return;
    }
    Operation *op = value.getDefiningOp();
    if (op)
      touched.insert(op);
    if (!op || !passes(op, cast<OpResult>(value), index, lead))
      add(entering[value], index);
  }

  void visitUse(OpOperand &use, int64_t dim, int64_t lead) {
    SmallVector<Value, 2> receivers = receiversOf(use);
    for (Value receiver : receivers)
      follow({receiver, dim}, lead);
    touched.insert(use.getOwner());
    if (receivers.empty() && !passes(use.getOwner(), use, dim, lead))
      add(leaving[&use], dim);
  }

  /// Adds an op that makes (`end` is a result) or reads a dimension (an operand); false if the
  /// natural order is needed there.
  template <typename End> bool passes(Operation *op, End &&end, int64_t dim, int64_t lead) {
    constexpr bool makes = std::is_same_v<std::decay_t<End>, OpResult>;
    if (isAnnotated(op) || !isa<ShardingRuleOpInterface>(op))
      return false;
    Value value;
    if constexpr (makes)
      value = end;
    else
      value = end.get();
    if (std::optional<ReshapedDim> reshaped = reshapedDimOf(op, value, dim))
      return passesReshape(op, *reshaped, value, dim, lead);
    if (auto rearrange = dyn_cast<RearrangeOp>(op);
        rearrange && lead == 1 && static_cast<int64_t>(rearrange.getDim()) == dim) {
      bool isPart = false; // which is needed in its own order
      if constexpr (!makes)
        isPart = !border.sourcePart(rearrange, end.getOperandNumber());
      if (!isPart && passesParts(rearrange, dim))
        return true;
    }
    if (lead == 1 && (makes ? border.isJoin(op, dim) : border.isExit(op, dim)))
      return addBorder(makes ? joins : exits, op, dim);
    const sharding::ShardingRule *rule = program.rules.lookup(op);
    if (!rule)
      return false;
    const sharding::TensorRule *tensor;
    if constexpr (makes)
      tensor = &rule->results[end.getResultNumber()];
    else
      tensor = &rule->operands[end.getOperandNumber()];
    const sharding::DimRule &found = (*tensor)[dim];
    return found.factors.size() == 1 && include(op, *rule, found.factors.front(), lead);
  }

  /// Adds an op at the border; an op is rewritten along one dimension.
  bool addBorder(llvm::MapVector<Operation *, int64_t> &border, Operation *op, int64_t dim) {
    auto [known, isNew] = border.insert({op, dim});
    isClosed = isClosed && known->second == dim;
    return true;
  }

  /// Adds a rearrangement that moves parts, with the operands that consist of all parts.
  bool passesParts(RearrangeOp op, int64_t dim) {
    if (!border.movesParts(op, dim))
      return false;
    addBorder(joins, op, dim);
    follow({op.getResult(), dim}, 1);
    for (unsigned index = 0; index < op.getInputs().size(); ++index)
      if (border.sourcePart(op, index))
        followOperand(op->getOpOperand(index), dim, 1);
    return true;
  }

  bool passesReshape(Operation *op, const ReshapedDim &reshaped, Value value, int64_t dim,
                     int64_t lead) {
    if (value == reshaped.large) {
      for (size_t at = 0; reshaped.dims[at] != dim; ++at)
        lead *= reshaped.extent(at);
      Value small = value == op->getResult(0) ? op->getOperand(0) : op->getResult(0);
      followEnd(op, small, reshaped.small, lead);
      return true;
    }
    int64_t before = 1;
    for (size_t at = 0; at < reshaped.dims.size() && lead % before == 0; ++at) {
      if (reshaped.extent(at) % (lead / before * order.size()) == 0) {
        followEnd(op, reshaped.large, reshaped.dims[at], lead / before);
        return true;
      }
      before *= reshaped.extent(at);
    }
    // The parts are a dimension.
    if (lead != 1 || !order.isUniform() || reshaped.dims.size() < 2 ||
        reshaped.extent(0) != order.total() || reshaped.extent(1) % order.rows != 0)
      return false;
    return addBorder(value == op->getResult(0) ? joins : exits, op, dim);
  }

  /// Follows the operand or the result of a reshape.
  void followEnd(Operation *op, Value value, int64_t dim, int64_t lead) {
    if (value == op->getResult(0))
      follow({value, dim}, lead);
    else
      followOperand(op->getOpOperand(0), dim, lead);
  }

  /// Adds a loop of an op in which all positions are treated alike.
  bool include(Operation *op, const sharding::ShardingRule &rule, int64_t factor, int64_t lead) {
    auto [known, isNew] = loops.try_emplace({op, factor}, 0);
    if (!isNew) {
      isClosed = isClosed && (known->second == 0 || known->second == lead);
      return known->second != 0;
    }
    if (!canInclude(op, rule, factor, lead))
      return false;
    known->second = lead;
    included[op].push_back(factor);
    // Masks of a band, such as causal ones, would no longer be recognized.
    if (included[op].size() > 1 && comparesOrder(op))
      isClosed = false;
    for (auto [index, tensor] : llvm::enumerate(rule.operands))
      for (auto [dim, each] : llvm::enumerate(tensor))
        if (llvm::is_contained(each.factors, factor))
          followOperand(op->getOpOperand(index), dim, lead);
    for (auto [index, tensor] : llvm::enumerate(rule.results))
      for (auto [dim, each] : llvm::enumerate(tensor))
        if (llvm::is_contained(each.factors, factor))
          follow({op->getResult(index), static_cast<int64_t>(dim)}, lead);
    return true;
  }

  bool canInclude(Operation *op, const sharding::ShardingRule &rule, int64_t factor,
                  int64_t lead) const {
    if (rule.factors[factor].kind == sharding::FactorKind::replicate ||
        rule.factors[factor].size % (lead * order.size()) != 0 || !isWholeDim(rule, factor))
      return false;
    if (!isa<linalg::LinalgOp>(op) || !readsIndex(op, factor))
      return cast<ShardingRuleOpInterface>(op).isEquivariant(factor);
    auto generic = dyn_cast<linalg::GenericOp>(op);
    return lead == 1 && generic && canReorderLoop(generic, factor);
  }

  //===--------------------------------------------------------------------===//
  // Deciding
  //===--------------------------------------------------------------------===//

  /// The values of the region that are computed from some of its values.
  llvm::SetVector<Value> reachedFrom(llvm::SetVector<Value> reached) const {
    for (size_t next = 0; next < reached.size(); ++next)
      for (OpOperand &use : reached[next].getUses()) {
        SmallVector<Value, 2> receivers = receiversOf(use);
        reached.insert(receivers.begin(), receivers.end());
        if (receivers.empty() && !leaving.contains(&use))
          for (Value result : use.getOwner()->getResults())
            if (members.contains(result))
              reached.insert(result);
      }
    return reached;
  }

  /// The values of the region from which some of its values are computed.
  llvm::SetVector<Value> sourcesOf(llvm::SetVector<Value> values) const {
    for (size_t next = 0; next < values.size(); ++next) {
      auto forwarded = program.sources.find(values[next]);
      if (forwarded != program.sources.end()) {
        for (OpOperand *use : forwarded->second)
          if (members.contains(use->get()))
            values.insert(use->get());
      } else if (Operation *op = values[next].getDefiningOp();
                 op && !entering.contains(values[next])) {
        for (Value operand : op->getOperands())
          if (members.contains(operand))
            values.insert(operand);
      }
    }
    return values;
  }

  /// Whether a product has the dimension in a matrix that comes in the natural order, not from the
  /// parts, or in a result that only leaves in it: in a weight or its gradient, whose blocks
  /// SplitBlockedDims.cpp moves.
  bool movesWeights() const {
    llvm::SetVector<Value> joined, others, taken, left;
    for (auto [op, dim] : joins)
      joined.insert(op->getResult(0));
    for (auto &[value, dims] : entering)
      others.insert(value);
    for (auto &[use, dims] : leaving)
      left.insert(use->get());
    auto take = [&](Operation *op) {
      for (Value operand : op->getOperands())
        if (members.contains(operand))
          taken.insert(operand);
    };
    for (auto [op, dim] : exits)
      take(op);
    for (auto &[op, factors] : included)
      if (llvm::any_of(op->getResults(), [&](Value result) { return !members.contains(result); }))
        take(op); // a sum over the dimension
    joined = reachedFrom(std::move(joined));
    others = reachedFrom(std::move(others));
    taken = sourcesOf(std::move(taken));
    left = sourcesOf(std::move(left));
    auto isMatrix = [&](Value value) {
      auto known = members.find(value);
      return known != members.end() &&
             typeOf(value).getNumElements() > typeOf(value).getDimSize(known->second.front());
    };
    auto isWeight = [&](Value operand) {
      return isMatrix(operand) && others.contains(operand) && !joined.contains(operand);
    };
    auto isGradient = [&](Value result) {
      return isMatrix(result) && left.contains(result) && !taken.contains(result);
    };
    return llvm::any_of(included, [&](auto &each) {
      return combinesTensors(each.first) && (llvm::any_of(each.first->getOperands(), isWeight) ||
                                             llvm::any_of(each.first->getResults(), isGradient));
    });
  }

  /// The dimensions of rows beyond the border.
  static SmallVector<Dim> piecesOf(Operation *op, int64_t dim) {
    SmallVector<Dim> pieces;
    bool isExpand = isa<tensor::ExpandShapeOp>(op);
    if (isExpand || isa<tensor::CollapseShapeOp>(op)) {
      Value small = isExpand ? op->getOperand(0) : op->getResult(0);
      ReshapedDim reshaped = *reshapedDimOf(op, small, dim);
      return {{reshaped.large, reshaped.dims[1]}};
    }
    if (isa<tensor::ConcatOp>(op)) {
      for (Value input : op->getOperands())
        pieces.push_back({input, dim});
      return pieces;
    }
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
      return {{slice.getSource(), dim}};
    if (auto rearrange = dyn_cast<RearrangeOp>(op))
      return {{rearrange.getInputs()[0], dim}};
    return {{cast<tensor::PadOp>(op).getSource(), dim}};
  }

  /// Whether a reshape at the border has a dimension of parts that is cut.
  bool cutsParts(Operation *op, int64_t dim) const {
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      return false;
    Value small = isa<tensor::ExpandShapeOp>(op) ? op->getOperand(0) : op->getResult(0);
    ReshapedDim reshaped = *reshapedDimOf(op, small, dim);
    return program.connected.partsOf({reshaped.large, reshaped.dims[0]}) > 1;
  }

  //===--------------------------------------------------------------------===//
  // Rewriting
  //===--------------------------------------------------------------------===//

  Value converted(Value of, ArrayRef<int64_t> dims, bool toTurns) const {
    Value value = of;
    OpBuilder b(value.getContext());
    b.setInsertionPointAfterValue(value);
    for (int64_t dim : dims) {
      auto known = leads.find({of, dim}); // constants have one run
      value = order.convert(b, value, dim, known == leads.end() ? 1 : known->second, toTurns);
      b.setInsertionPointAfterValue(value);
    }
    return value;
  }

  /// Rearranges the values that come in the natural order, or are needed in it.
  void rearrangeBorder() {
    for (auto &[value, dims] : entering) {
      SmallVector<OpOperand *> uses;
      for (OpOperand &use : value.getUses()) {
        auto known = leaving.find(&use);
        if (known == leaving.end() || known->second != dims)
          uses.push_back(&use);
        else
          leaving.erase(known);
      }
      Value made = converted(value, dims, /*toTurns=*/true);
      for (OpOperand *use : uses)
        use->set(made);
    }
    std::map<std::pair<void *, std::vector<int64_t>>, Value> natural; // looked up only
    for (auto &[use, dims] : leaving) {
      Value &made = natural[{use->get().getAsOpaquePointer(), {dims.begin(), dims.end()}}];
      if (!made)
        made = converted(use->get(), dims, /*toTurns=*/false);
      use->set(made);
    }
  }

  static void replace(Operation *op, Value made) {
    op->getResult(0).replaceAllUsesWith(made);
    op->erase();
  }

  PartOrder order;
  PartBorder border{order};
  Program &program;
  bool isClosed = true;
  llvm::MapVector<Value, Dims> members;
  SmallVector<Dim> work;
  llvm::DenseMap<Dim, int64_t> leads;                             // looked up only
  llvm::DenseMap<std::pair<Operation *, int64_t>, int64_t> loops; // the lead, or 0; looked up only
  llvm::MapVector<Operation *, Dims> included;                    ///< with their factors
  llvm::MapVector<Operation *, int64_t> joins, exits;             ///< of parts, with the dimension
  llvm::MapVector<Value, Dims> entering;                          ///< values in the natural order
  llvm::MapVector<OpOperand *, Dims> leaving, constants;          ///< uses of the natural order
  llvm::SetVector<Operation *> touched;
};

/// The order of equal or unequal parts with a common divisor of rows.
std::optional<PartOrder> orderOf(ArrayRef<int64_t> extents) {
  PartOrder order;
  order.rows = 0;
  for (int64_t extent : extents)
    order.rows = std::gcd(order.rows, extent);
  if (order.rows < 2 || llvm::is_contained(extents, 0))
    return std::nullopt;
  for (int64_t extent : extents)
    order.counts.push_back(extent / order.rows);
  if (order.counts.size() < 2 || order.total() > kMostShares)
    return std::nullopt;
  return order;
}

struct Seed {
  Dim dim;
  PartOrder order;
};

/// Where a region may begin: at a concatenation, or at slices of one of equal parts.
void addSeeds(Operation *op, SmallVectorImpl<Seed> &seeds) {
  if (isAnnotated(op))
    return;
  if (auto concat = dyn_cast<tensor::ConcatOp>(op)) {
    auto dim = static_cast<int64_t>(concat.getDim());
    auto extents = llvm::map_to_vector(concat.getInputs(),
                                       [&](Value input) { return typeOf(input).getDimSize(dim); });
    if (std::optional<PartOrder> order = orderOf(extents))
      seeds.push_back({{concat.getResult(), dim}, *order});
  } else if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    for (auto [dim, extent] : llvm::enumerate(slice.getSourceType().getShape())) {
      int64_t size = slice.getStaticSizes()[dim], offset = slice.getStaticOffsets()[dim];
      if (ShapedType::isDynamic(offset) || ShapedType::isDynamic(size) || size <= 1 ||
          size == extent || extent % size != 0 || offset % size != 0)
        continue;
      if (std::optional<PartOrder> order = orderOf(SmallVector<int64_t>(extent / size, size)))
        seeds.push_back({{slice.getSource(), static_cast<int64_t>(dim)}, *order});
    }
  }
}

} // namespace

/// Rewrites regions that have no op in common; returns whether there are any.
static bool interleaveOnce(func::FuncOp function, const MeshTable &meshes) {
  SmallVector<Seed> seeds;
  function.walk([&](Operation *op) { addSeeds(op, seeds); });
  if (seeds.empty() || meshes.empty())
    return false;
  std::optional<ConnectedDims> connected =
      ConnectedDims::of(function, meshes, /*throughParts=*/false);
  if (!connected)
    return false;
  Program program(function, std::move(*connected));
  std::vector<std::unique_ptr<PartRegion>> regions;
  std::vector<std::pair<PartOrder, llvm::DenseSet<Dim>>> known; // sets are looked up only
  for (Seed &seed : seeds) {
    auto ofOrder = llvm::find_if(known, [&](auto &each) { return each.first == seed.order; });
    if (ofOrder == known.end())
      ofOrder = known.insert(known.end(), {seed.order, {}});
    if (ofOrder->second.contains(seed.dim))
      continue;
    auto region = std::make_unique<PartRegion>(seed.dim, seed.order, program);
    for (auto &[value, dims] : region->getMembers())
      for (int64_t dim : dims)
        ofOrder->second.insert({value, dim});
    if (region->isWorthwhile())
      regions.push_back(std::move(region));
  }
  llvm::DenseSet<Operation *> claimed; // looked up only
  bool changed = false;
  for (auto &region : regions)
    if (region->claim(claimed)) {
      region->rewrite();
      changed = true;
    }
  return changed;
}

void dist::interleaveParts(func::FuncOp function, const MeshTable &meshes) {
  // What takes turns cuts the parts of further regions.
  for (int round = 0; round < kMostRounds && interleaveOnce(function, meshes); ++round)
    ;
}
