//===- Recompute.cpp - Recompute values in kernels ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Recompute.h"
#include "EpilogueChain.h"
#include "StepOps.h"

#include "tessera/Dialect/Dist/Rules/Selection.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

/// A leaf with at most 1 / kSmallPart of the value's bytes costs nothing.
static constexpr int64_t kSmallPart = 16;
static constexpr size_t kMostNodes = 8, kMostOps = 32;

namespace {

/// The recipe to recompute a value: copies of `nodes` that read `leaves`.
struct Recipe {
  SetVector<Operation *> nodes; ///< the value's own op last
  SetVector<Value> leaves;
  size_t ops = 0, functions = 0;
};

class Recomputer {
public:
  Recomputer(std::vector<std::vector<Operation *>> &groups, int64_t leastBytes,
             size_t mostFunctions);
  void run();

private:
  std::optional<unsigned> groupOf(Operation *op) const;
  /// The group's member that the operand belongs to, or is nested in.
  Operation *memberOf(OpOperand &use, Block *block) const;
  bool collect(Value value, unsigned home, int64_t bytes, Recipe &recipe) const;
  bool isServed(OpOperand &use, Block *block) const;
  std::optional<Recipe> recipeOf(Value value, unsigned home) const;
  bool pays(const Recipe &recipe, int64_t bytes, unsigned reader) const;
  void serve(Value value, const Recipe &recipe, unsigned reader);
  Value element(OpBuilder &b, Value value, ArrayRef<Value> at, const Recipe &recipe);

  std::vector<std::vector<Operation *>> &groups;
  int64_t leastBytes;
  size_t mostFunctions;
  llvm::DenseMap<Operation *, unsigned> numbers; ///< numbers of the groups that are kernels
};

} // namespace

static int64_t bytesOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() && type.getElementType().isIntOrFloat()
             ? type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8)
             : 0;
}

Recomputer::Recomputer(std::vector<std::vector<Operation *>> &groups, int64_t leastBytes,
                       size_t mostFunctions)
    : groups(groups), leastBytes(leastBytes), mostFunctions(mostFunctions) {
  for (auto [number, members] : llvm::enumerate(groups))
    if (classify(members.front()) == StepKind::compute)
      for (Operation *op : members)
        numbers[op] = number;
}

std::optional<unsigned> Recomputer::groupOf(Operation *op) const {
  auto known = op ? numbers.find(op) : numbers.end();
  return known == numbers.end() ? std::nullopt : std::optional(known->second);
}

Operation *Recomputer::memberOf(OpOperand &use, Block *block) const {
  Operation *member = block->findAncestorOpInBlock(*use.getOwner());
  return member && groupOf(member) ? member : nullptr;
}

/// Whether each element of the op's only result is an arithmetic expression of input elements.
static bool isArithmetic(Operation *op, size_t &ops, size_t &functions) {
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  if (!generic || generic->getNumResults() != 1 || !isPointwise(generic) ||
      !generic.getBody()->getArguments().back().use_empty() ||
      !llvm::all_of(generic.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isProjectedPermutation(/*allowZero=*/true); }))
    return false;
  for (Operation &inner : generic.getBody()->without_terminator()) {
    bool isMath = isa<math::MathDialect>(inner.getDialect());
    if (inner.getNumRegions() > 0 ||
        !(isMath || isa<arith::ArithDialect>(inner.getDialect()) || isa<linalg::IndexOp>(inner)))
      return false;
    ++ops;
    functions += isMath;
  }
  return true;
}

bool Recomputer::collect(Value value, unsigned home, int64_t bytes, Recipe &recipe) const {
  Operation *op = value.getDefiningOp();
  if (!isa<RankedTensorType>(value.getType()) || (op && recipe.nodes.contains(op)))
    return true;
  bool isInside = groupOf(op) == home;
  if (isInside && bytesOf(value) * kSmallPart > bytes &&
      isArithmetic(op, recipe.ops, recipe.functions)) {
    for (Value input : cast<linalg::GenericOp>(op).getInputs())
      if (!collect(input, home, bytes, recipe))
        return false;
    recipe.nodes.insert(op);
    return recipe.nodes.size() <= kMostNodes && recipe.ops <= kMostOps &&
           recipe.functions <= mostFunctions;
  }
  if (op && classify(op) == StepKind::free && !isa<tensor::ExtractSliceOp>(op))
    return true; // a fill, or a constant
  recipe.leaves.insert(value);
  // Otherwise the group would have to store another large value.
  return !isInside || bytesOf(value) * kSmallPart <= bytes;
}

/// Whether a reader can use a copy instead.
bool Recomputer::isServed(OpOperand &use, Block *block) const {
  if (!memberOf(use, block))
    return false;
  if (isa<tensor::ExtractOp>(use.getOwner()))
    return use.getOperandNumber() == 0;
  auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
  if (!generic || generic->getBlock() != block || !generic.isDpsInput(&use) ||
      dist::isLookedUp(generic, use))
    return false;
  // The value is indexed in the order of the reader's loops, which a copy shares.
  int64_t last = -1;
  for (AffineExpr expr : generic.getMatchingIndexingMap(&use).getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || static_cast<int64_t>(dim.getPosition()) <= last)
      return false;
    last = dim.getPosition();
  }
  return true;
}

std::optional<Recipe> Recomputer::recipeOf(Value value, unsigned home) const {
  int64_t bytes = bytesOf(value);
  Recipe recipe;
  size_t ops = 0, functions = 0;
  Block *block = value.getParentBlock();
  if (bytes < leastBytes || !isArithmetic(value.getDefiningOp(), ops, functions) ||
      !collect(value, home, bytes, recipe) || recipe.nodes.empty())
    return std::nullopt;
  for (OpOperand &use : value.getUses()) {
    Operation *member = memberOf(use, block);
    if (!(member && groupOf(member) == home) && !isServed(use, block))
      return std::nullopt;
  }
  return recipe;
}

/// Whether the leaves that a group does not read yet are not larger than the value.
bool Recomputer::pays(const Recipe &recipe, int64_t bytes, unsigned reader) const {
  llvm::DenseSet<Value> read;
  for (Operation *member : groups[reader])
    member->walk([&](Operation *op) { read.insert(op->operand_begin(), op->operand_end()); });
  int64_t more = 0;
  for (Value leaf : recipe.leaves)
    if (!read.contains(leaf) && bytesOf(leaf) * kSmallPart > bytes)
      more += bytesOf(leaf);
  return more <= bytes;
}

/// Computes an element of a value by copying its ops into the body of a reader.
Value Recomputer::element(OpBuilder &b, Value value, ArrayRef<Value> at, const Recipe &recipe) {
  Location loc = value.getLoc();
  auto generic = dyn_cast_or_null<linalg::GenericOp>(value.getDefiningOp());
  if (!generic || !recipe.nodes.contains(generic))
    return tensor::ExtractOp::create(b, loc, value, at);
  IRMapping mapping;
  Block *body = generic.getBody();
  for (OpOperand *input : generic.getDpsInputOperands()) {
    BlockArgument argument = generic.getMatchingBlockArgument(input);
    if (argument.use_empty())
      continue;
    SmallVector<Value> place;
    for (AffineExpr expr : generic.getMatchingIndexingMap(input).getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      place.push_back(dim ? at[dim.getPosition()]
                          : arith::ConstantIndexOp::create(b, loc, 0).getResult());
    }
    mapping.map(argument, isa<RankedTensorType>(input->get().getType())
                              ? element(b, input->get(), place, recipe)
                              : input->get());
  }
  for (Operation &op : body->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(op))
      mapping.map(index.getResult(), at[index.getDim()]);
    else
      b.clone(op, mapping);
  }
  return mapping.lookupOrDefault(body->getTerminator()->getOperand(0));
}

void Recomputer::serve(Value value, const Recipe &recipe, unsigned reader) {
  Block *block = value.getParentBlock();
  SmallVector<OpOperand *> uses, extracts;
  for (OpOperand &use : value.getUses()) {
    Operation *member = memberOf(use, block);
    if (member && groupOf(member) == reader)
      (isa<tensor::ExtractOp>(use.getOwner()) ? extracts : uses).push_back(&use);
  }
  for (OpOperand *use : extracts) {
    auto extract = cast<tensor::ExtractOp>(use->getOwner());
    OpBuilder b(extract);
    extract.replaceAllUsesWith(element(b, value, llvm::to_vector(extract.getIndices()), recipe));
    extract.erase();
  }
  if (uses.empty())
    return;
  IRMapping mapping;
  std::vector<Operation *> copies;
  for (Operation *node : recipe.nodes) {
    copies.push_back(OpBuilder(node).clone(*node, mapping));
    numbers[copies.back()] = reader;
  }
  for (OpOperand *use : uses)
    use->set(mapping.lookup(value));
  groups[reader].insert(groups[reader].begin(), copies.begin(), copies.end());
}

void Recomputer::run() {
  for (unsigned reader = 0; reader < groups.size(); ++reader) {
    if (!groupOf(groups[reader].front()))
      continue;
    SetVector<Value> large;
    for (Operation *member : groups[reader])
      member->walk([&](Operation *op) {
        for (Value operand : op->getOperands())
          if (std::optional<unsigned> home = groupOf(operand.getDefiningOp());
              home && *home != reader && bytesOf(operand) >= leastBytes)
            large.insert(operand);
      });
    for (Value value : large) {
      unsigned home = *groupOf(value.getDefiningOp());
      std::optional<Recipe> recipe = recipeOf(value, home);
      if (recipe && pays(*recipe, bytesOf(value), reader))
        serve(value, *recipe, reader);
    }
  }
  // Ops without readers are no longer members.
  for (std::vector<Operation *> &members : llvm::reverse(groups))
    for (size_t i = members.size(); i-- > 0;)
      if (groupOf(members[i]) && isOpTriviallyDead(members[i])) {
        members[i]->erase();
        members.erase(members.begin() + static_cast<ptrdiff_t>(i));
      }
  llvm::erase_if(groups, [](const std::vector<Operation *> &members) { return members.empty(); });
}

void codegen::recomputeAcrossGroups(std::vector<std::vector<Operation *>> &groups,
                                    int64_t leastBytes, size_t mostFunctions) {
  Recomputer(groups, leastBytes, mostFunctions).run();
}
