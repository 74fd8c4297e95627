//===- UpdateLookedUp.cpp - Updates of what was looked up -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A penalty on the scores of tokens that were generated already looks them up, computes
// and writes back:
//
//   s[b, t] = x[b, i[b, t]]     u[b, t] = f(s[b, t])     y = x, y[b, i[b, t]] = u[b, t]
//
// If the devices cut the vocabulary, s is sent to all of them. The owner of a score could
// compute alone:
//
//   hit[b, v] = any over t of i[b, t] == v     y[b, v] = select(hit[b, v], f(x[b, v]), x[b, v])
//
//===----------------------------------------------------------------------===//

#include "UpdateLookedUp.h"

#include "ConnectedDims.h"
#include "PlainOps.h"

#include "tessera/Dialect/Dist/Rules/Selection.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// A tensor that is read at functions of loops.
struct Read {
  Value tensor;
  SmallVector<AffineExpr> places;
  bool operator==(const Read &) const = default;
};

class Update {
public:
  explicit Update(linalg::GenericOp op) : op(op) {}
  /// Whether it writes functions of what it looks up at the same indices.
  bool match();
  /// The table, and its indexed dimension.
  std::pair<Value, int64_t> indexed() const { return {table, dim}; }
  void rewrite();

private:
  bool matchValue(Value value);
  bool matchLookup(linalg::GenericOp lookup);
  Value written(OpBuilder &b, Value value);

  linalg::GenericOp op;
  Value table;
  BlockArgument update;
  AffineMap readMap; ///< of the updates
  int64_t dim = 0;   ///< of the table, which is indexed
  Read index;
  llvm::DenseMap<Value, bool> known;   // looked up only
  llvm::DenseMap<Value, Value> values; // looked up only
};

} // namespace

static bool isConstant(Value value, llvm::function_ref<bool(int64_t)> holds) {
  APInt number;
  return matchPattern(value, m_ConstantInt(&number)) && holds(number.getSExtValue());
}

namespace {
/// Conditions on a number in the body of an op, or on the element of a tensor that it is.
class BoundsCheck {
public:
  BoundsCheck(linalg::GenericOp op, Value tensor, AffineMap map, int64_t extent)
      : op(op), element(tensor, map), extent(extent) {}
  BoundsCheck(linalg::GenericOp op, Value number, int64_t extent)
      : op(op), number(number), extent(extent) {
    auto argument = dyn_cast<BlockArgument>(number);
    if (argument && argument.getOwner() == op.getBody())
      element = {op->getOperand(argument.getArgNumber()),
                 op.getIndexingMapsArray()[argument.getArgNumber()]};
  }
  /// Whether a condition of the body holds whenever the number is within the extent.
  bool holds(Value condition) {
    return holds(condition, op,
                 AffineMap::getMultiDimIdentityMap(op.getNumLoops(), op->getContext()));
  }

private:
  bool isNumber(Value value, linalg::GenericOp in, AffineMap loops) {
    if (value == number)
      return true;
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getOwner() == in.getBody() &&
           in->getOperand(argument.getArgNumber()) == element.first &&
           in.getIndexingMapsArray()[argument.getArgNumber()].compose(loops) == element.second;
  }

  /// `loops`: those of `in` by those of the op.
  bool holds(Value condition, linalg::GenericOp in, AffineMap loops) {
    if (auto argument = dyn_cast<BlockArgument>(condition)) {
      if (argument.getOwner() != in.getBody())
        return false;
      auto from = in->getOperand(argument.getArgNumber()).getDefiningOp<linalg::GenericOp>();
      return from && from->getNumResults() == 1 && from.getNumReductionLoops() == 0 &&
             from.getIndexingMapsArray().back().isIdentity() &&
             holds(from.getBody()->getTerminator()->getOperand(0), from,
                   in.getIndexingMapsArray()[argument.getArgNumber()].compose(loops));
    }
    if (auto both = condition.getDefiningOp<arith::AndIOp>())
      return holds(both.getLhs(), in, loops) && holds(both.getRhs(), in, loops);
    auto compare = condition.getDefiningOp<arith::CmpIOp>();
    if (!compare || !isNumber(compare.getLhs(), in, loops))
      return false;
    switch (compare.getPredicate()) {
    case arith::CmpIPredicate::sge:
      return isConstant(compare.getRhs(), [](int64_t n) { return n <= 0; });
    case arith::CmpIPredicate::sgt:
      return isConstant(compare.getRhs(), [](int64_t n) { return n < 0; });
    case arith::CmpIPredicate::slt:
    case arith::CmpIPredicate::ult:
      return isConstant(compare.getRhs(), [&](int64_t n) { return n >= extent; });
    case arith::CmpIPredicate::sle:
    case arith::CmpIPredicate::ule:
      return isConstant(compare.getRhs(), [&](int64_t n) { return n >= extent - 1; });
    default:
      return false;
    }
  }

  linalg::GenericOp op;
  Value number;
  std::pair<Value, AffineMap> element;
  int64_t extent;
};
} // namespace

/// An index without clamps and choices that leave numbers within `extent` as they are. Other
/// numbers become such ones only `ifAnything` may be looked up at them, as the update drops them.
static Read withoutBounds(Read read, int64_t extent, bool ifAnything) {
  auto isBelow = [&](int64_t n) { return n < (ifAnything ? 1 : 0); };
  auto isAbove = [&](int64_t n) { return n >= (ifAnything ? extent - 1 : extent); };
  auto isOutside = [&](int64_t n) { return n < 0 || n >= extent; };
  while (Operation *producer = read.tensor.getDefiningOp()) {
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(producer)) {
      SmallVector<AffineExpr> places;
      for (const ReassociationIndices &group : expand.getReassociationIndices()) {
        auto own = llvm::find_if(
            group, [&](int64_t d) { return expand.getResultType().getDimSize(d) != 1; });
        if (llvm::count_if(
                group, [&](int64_t d) { return expand.getResultType().getDimSize(d) != 1; }) > 1)
          return read;
        places.push_back(read.places[own == group.end() ? group.front() : *own]);
      }
      read = {expand.getSrc(), places};
      continue;
    }
    auto generic = dyn_cast<linalg::GenericOp>(producer);
    if (!generic || generic->getNumResults() != 1 || generic.getNumReductionLoops() > 0 ||
        !generic.getIndexingMapsArray().back().isIdentity())
      return read;
    Value scalar = generic.getBody()->getTerminator()->getOperand(0);
    while (Operation *inner = scalar.getDefiningOp()) {
      if (auto choice = dyn_cast<arith::SelectOp>(inner);
          choice && isConstant(choice.getFalseValue(), isOutside) &&
          BoundsCheck(generic, choice.getTrueValue(), extent).holds(choice.getCondition()))
        scalar = choice.getTrueValue();
      else if (isa<arith::MaxSIOp>(inner) && isConstant(inner->getOperand(1), isBelow))
        scalar = inner->getOperand(0);
      else if (isa<arith::MinSIOp>(inner) && isConstant(inner->getOperand(1), isAbove))
        scalar = inner->getOperand(0);
      else
        return read;
    }
    auto argument = cast<BlockArgument>(scalar);
    if (argument.getOwner() != generic.getBody() ||
        argument.getArgNumber() >= generic.getNumDpsInputs())
      return read;
    AffineMap map = generic.getIndexingMapsArray()[argument.getArgNumber()];
    SmallVector<AffineExpr> places;
    for (AffineExpr expr : map.getResults())
      places.push_back(expr.replaceDims(read.places));
    read = {generic.getDpsInputs()[argument.getArgNumber()], places};
  }
  return read;
}

/// The tensor and places of an index that a loop is compared with; nothing for other values.
static std::optional<Read> readOf(linalg::GenericOp op, Value index) {
  auto argument = dyn_cast<BlockArgument>(index);
  if (!argument || argument.getOwner() != op.getBody() ||
      argument.getArgNumber() >= op.getNumDpsInputs())
    return std::nullopt;
  ArrayRef<AffineExpr> places = op.getIndexingMapsArray()[argument.getArgNumber()].getResults();
  return Read{op.getDpsInputs()[argument.getArgNumber()], SmallVector<AffineExpr>(places)};
}

/// Whether elements are zero where those of `index`, which has their shape, are within `extent`: of
/// a choice between zero and what an invalid index reads.
static bool isZeroWhereValid(Value init, Value index, int64_t extent) {
  if (matchPattern(init, m_AnyZeroFloat()))
    return true;
  auto choice = init.getDefiningOp<linalg::GenericOp>();
  if (!choice || choice->getNumResults() != 1 || choice.getNumDpsInputs() != 1 ||
      choice.getNumReductionLoops() > 0 ||
      !llvm::all_of(choice.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); }))
    return false;
  auto select = choice.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::SelectOp>();
  return select && matchPattern(select.getTrueValue(), m_AnyZeroFloat()) &&
         BoundsCheck(choice, index, choice.getIndexingMapsArray().front(), extent)
             .holds(select.getCondition());
}

bool Update::match() {
  auto choice = op.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::SelectOp>();
  if (op->getNumResults() != 1 || op.getNumReductionLoops() != 1 || !isPlain(op) || !choice ||
      !op.hasPureTensorSemantics() || choice.getFalseValue() != op.getBody()->getArguments().back())
    return false;
  update = dyn_cast<BlockArgument>(choice.getTrueValue());
  if (!update || update.getOwner() != op.getBody() || update.getArgNumber() >= op.getNumDpsInputs())
    return false;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  readMap = maps[update.getArgNumber()];
  AffineMap written = maps.back();
  table = op.getDpsInits().front();
  if (!written.isProjectedPermutation() || !readMap.isProjectedPermutation())
    return false;
  // The dimension that updates do not have is indexed.
  std::optional<int64_t> found;
  for (auto [d, expr] : llvm::enumerate(written.getResults()))
    if (!llvm::is_contained(readMap.getResults(), expr)) {
      if (found)
        return false;
      found = static_cast<int64_t>(d);
    }
  if (!found || readMap.getNumResults() != written.getNumResults())
    return false;
  dim = *found;
  unsigned loop = written.getDimPosition(dim);
  int64_t extent = cast<RankedTensorType>(table.getType()).getDimSize(dim);
  bool isFound = false;
  for (const SelectedLoop &each : selectedLoops(op))
    if (std::optional<Read> read =
            each.loop == loop && each.offsets.empty() ? readOf(op, each.index) : std::nullopt) {
      index = withoutBounds(*read, extent, /*ifAnything=*/false);
      isFound = true;
    }
  return isFound && matchValue(op.getDpsInputs()[update.getArgNumber()]);
}

bool Update::matchValue(Value value) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  known[value] = false;
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  if (!generic || generic->getNumResults() != 1 || !isPlain(generic) ||
      !generic.hasPureTensorSemantics())
    return false;
  if (generic.getNumReductionLoops() > 0)
    return known[value] = matchLookup(generic);
  bool isElementwise =
      generic.getNumDpsInputs() > 0 && !generic.hasIndexSemantics() &&
      generic.getRegionOutputArgs().front().use_empty() &&
      llvm::all_of(generic.getIndexingMapsArray(),
                   [](AffineMap map) { return map.isIdentity(); }) &&
      llvm::all_of(*generic.getBody(), [&](Operation &inner) {
        return inner.getNumRegions() == 0 && llvm::all_of(inner.getOperands(), [&](Value operand) {
                 return operand.getParentBlock() == generic.getBody() ||
                        matchPattern(operand, m_Constant());
               });
      });
  return known[value] = isElementwise && llvm::all_of(generic.getDpsInputs(), [&](Value input) {
                          SplatElementsAttr splat;
                          return matchPattern(input, m_Constant(&splat)) || matchValue(input);
                        });
}

/// Whether it looks the table up where the update is written.
bool Update::matchLookup(linalg::GenericOp lookup) {
  Operation *sum = lookup.getBody()->getTerminator()->getOperand(0).getDefiningOp();
  SmallVector<AffineMap> maps = lookup.getIndexingMapsArray();
  if (lookup.getNumReductionLoops() != 1 || lookup.getNumDpsInits() != 1 ||
      !isa_and_nonnull<arith::AddFOp>(sum) || !maps.back().isProjectedPermutation())
    return false;
  BlockArgument accumulator = lookup.getBody()->getArguments().back();
  bool first = sum->getOperand(0) == accumulator;
  auto choice = sum->getOperand(first ? 1 : 0).getDefiningOp<arith::SelectOp>();
  if ((!first && sum->getOperand(1) != accumulator) || !choice ||
      !choice.getCondition().getDefiningOp<arith::CmpIOp>() ||
      !matchPattern(choice.getFalseValue(), m_AnyZeroFloat()))
    return false;
  auto element = dyn_cast<BlockArgument>(choice.getTrueValue());
  SmallVector<SelectedLoop, 2> selected = selectedLoops(lookup);
  if (!element || element.getOwner() != lookup.getBody() || element == accumulator ||
      lookup.getDpsInputs()[element.getArgNumber()] != table || selected.size() != 1 ||
      !selected.front().offsets.empty())
    return false;
  std::optional<Read> read = readOf(lookup, selected.front().index);
  int64_t extent = cast<RankedTensorType>(table.getType()).getDimSize(dim);
  Value init = lookup.getDpsInits().front();
  // The index of an element of the result and of the init.
  bool isOwn = read && read->places == SmallVector<AffineExpr>(maps.back().getResults());
  if (!read || !(isOwn ? isZeroWhereValid(init, read->tensor, extent)
                       : matchPattern(init, m_AnyZeroFloat())))
    return false;
  // Loops of the look-up as those of the update: by the dimensions of what is looked up.
  SmallVector<AffineExpr> loops(lookup.getNumLoops());
  for (auto [expr, own] : llvm::zip_equal(maps.back().getResults(), readMap.getResults()))
    loops[cast<AffineDimExpr>(expr).getPosition()] = own;
  AffineMap written = op.getIndexingMapsArray().back();
  loops[selected.front().loop] = written.getResult(dim);
  if (llvm::any_of(loops, [](AffineExpr expr) { return !expr; }))
    return false;
  auto inUpdate = [&](ArrayRef<AffineExpr> exprs) {
    return llvm::map_to_vector(exprs, [&](AffineExpr expr) { return expr.replaceDims(loops); });
  };
  if (inUpdate(maps[element.getArgNumber()].getResults()) !=
      SmallVector<AffineExpr>(written.getResults()))
    return false;
  const Read own = {read->tensor, inUpdate(read->places)};
  return withoutBounds(own, extent, /*ifAnything=*/true) == index ||
         withoutBounds(own, extent, /*ifAnything=*/false) == index;
}

/// What was computed of elements that were looked up, of all elements of the table.
Value Update::written(OpBuilder &b, Value value) {
  if (Value &made = values[value])
    return made;
  auto type = cast<RankedTensorType>(table.getType());
  Type element = getElementTypeOrSelf(value.getType());
  if (SplatElementsAttr splat; matchPattern(value, m_Constant(&splat)))
    return values[value] =
               arith::ConstantOp::create(b, value.getLoc(), splat.resizeSplat(type.clone(element)));
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  if (generic.getNumReductionLoops() > 0)
    return values[value] = table;
  SmallVector<Value> inputs =
      llvm::map_to_vector(generic.getDpsInputs(), [&](Value input) { return written(b, input); });
  Value init = tensor::EmptyOp::create(b, generic.getLoc(), type.getShape(), element);
  SmallVector<AffineMap> maps(inputs.size() + 1, b.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> parallel(type.getRank(), utils::IteratorType::parallel);
  auto made =
      linalg::GenericOp::create(b, generic.getLoc(), init.getType(), inputs, init, maps, parallel);
  IRMapping map;
  generic.getRegion().cloneInto(&made.getRegion(), map);
  return values[value] = made.getResult(0);
}

void Update::rewrite() {
  OpBuilder b(op);
  Location loc = op.getLoc();
  table = op.getDpsInits().front(); // another update may have written it anew
  auto type = cast<RankedTensorType>(table.getType());
  auto flags = cast<RankedTensorType>(type.clone(b.getI1Type()));
  Value none = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(flags, Attribute(b.getBoolAttr(false))));
  SmallVector<Value> inputs(op.getDpsInputs());
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  inputs.erase(inputs.begin() + update.getArgNumber());
  maps.erase(maps.begin() + update.getArgNumber());
  auto hit = linalg::GenericOp::create(
      b, loc, TypeRange(flags), inputs, ValueRange(none), maps, op.getIteratorTypesArray(),
      [&](OpBuilder &body, Location at, ValueRange arguments) {
        IRMapping map;
        unsigned next = 0;
        for (BlockArgument argument : op.getBody()->getArguments())
          if (argument != update)
            map.map(argument, arguments[next++]);
        auto choice = op.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::SelectOp>();
        for (Operation &inner : op.getBody()->without_terminator())
          if (&inner != choice)
            body.clone(inner, map);
        Value yes = arith::ConstantOp::create(body, at, body.getBoolAttr(true));
        Value is = map.lookupOrDefault(choice.getCondition());
        linalg::YieldOp::create(
            body, at, arith::SelectOp::create(body, at, is, yes, arguments.back()).getResult());
      });
  Value all = written(b, op.getDpsInputs()[update.getArgNumber()]);
  Value init = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  SmallVector<AffineMap> identity(4, b.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> parallel(type.getRank(), utils::IteratorType::parallel);
  auto chosen = linalg::GenericOp::create(
      b, loc, TypeRange(type), ValueRange{hit.getResult(0), all, table}, init, identity, parallel,
      [](OpBuilder &body, Location at, ValueRange arguments) {
        linalg::YieldOp::create(
            body, at,
            arith::SelectOp::create(body, at, arguments[0], arguments[1], arguments[2])
                .getResult());
      });
  op.getResult(0).replaceAllUsesWith(chosen.getResult(0));
  op.erase();
}

void dist::updateLookedUp(func::FuncOp function, const MeshTable &meshes) {
  std::vector<Update> updates;
  function.walk([&](linalg::GenericOp op) {
    if (Update update(op); update.match())
      updates.push_back(std::move(update));
  });
  if (updates.empty() || meshes.empty())
    return;
  std::optional<ConnectedDims> dims = ConnectedDims::of(function, meshes);
  if (!dims)
    return;
  llvm::erase_if(updates, [&](Update &each) { return dims->partsOf(each.indexed()) < 2; });
  for (Update &each : updates)
    each.rewrite();
}
