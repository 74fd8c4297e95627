//===- BuildAttention.cpp - Build the op of a matched attention -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatchAttention.h"
#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Ext/IR/AttentionBand.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using Kind = ElementExpressions::Kind;

/// Groups of dimensions for a reshape that adds or removes dimensions of extent 1: each kept
/// dimension is grouped with the preceding ones, the last also with the following ones.
static SmallVector<ReassociationIndices> groupsOf(ArrayRef<bool> isKept) {
  SmallVector<ReassociationIndices> groups;
  ReassociationIndices pending;
  for (auto [dim, kept] : llvm::enumerate(isKept)) {
    pending.push_back(dim);
    if (kept)
      groups.push_back(std::exchange(pending, {}));
  }
  if (!groups.empty())
    groups.back().append(pending);
  return groups;
}

static AffineMap mapOf(MLIRContext *context, const LoopNumbers &numbers, ArrayRef<unsigned> loops) {
  SmallVector<AffineExpr> exprs;
  for (unsigned loop : loops)
    exprs.push_back(getAffineDimExpr(numbers.find(loop)->second, context));
  return AffineMap::get(numbers.size(), 0, exprs, context);
}

std::pair<Value, AffineMap> dist::asOperand(OpBuilder &b, Location loc, const Loops &loops,
                                            const LoopNumbers &numbers, const Access &access) {
  Value tensor = access.tensor;
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape;
  SmallVector<ReassociationIndices> groups;
  SmallVector<bool> isKept;
  SmallVector<unsigned> own;
  for (AffineExpr index : access.indices) {
    Terms terms = *termsOf(index);
    ReassociationIndices group;
    if (terms.empty())
      terms.push_back({~0u, 1});
    for (auto [loop, coefficient] : terms) {
      bool isUnit = loop == ~0u;
      group.push_back(shape.size());
      shape.push_back(isUnit ? 1 : loops.extents[loop]);
      isKept.push_back(!isUnit);
      if (!isUnit)
        own.push_back(loop);
    }
    groups.push_back(group);
  }
  if (shape.size() != static_cast<size_t>(type.getRank()))
    tensor = tensor::ExpandShapeOp::create(b, loc, type.clone(shape), tensor, groups);
  if (own.size() != shape.size()) {
    SmallVector<int64_t> kept =
        llvm::map_to_vector(own, [&](unsigned loop) { return loops.extents[loop]; });
    tensor = tensor::CollapseShapeOp::create(b, loc, type.clone(kept), tensor, groupsOf(isKept));
  }
  return {tensor, mapOf(b.getContext(), numbers, own)};
}

/// Merges split loops, and adds the dimensions of extent 1.
static Value asType(OpBuilder &b, Location loc, Value flat, ArrayRef<SmallVector<unsigned>> groups,
                    RankedTensorType wanted) {
  SmallVector<int64_t> shape;
  SmallVector<ReassociationIndices> joined;
  SmallVector<bool> isKept;
  int64_t next = 0;
  for (auto [group, extent] : llvm::zip_equal(groups, wanted.getShape())) {
    isKept.push_back(!group.empty());
    if (group.empty())
      continue;
    shape.push_back(extent);
    joined.push_back(llvm::to_vector<2>(llvm::seq<int64_t>(next, next + group.size())));
    next += group.size();
  }
  if (shape.size() != static_cast<size_t>(next))
    flat = tensor::CollapseShapeOp::create(b, loc, wanted.clone(shape), flat, joined);
  if (shape.size() != static_cast<size_t>(wanted.getRank()))
    flat = tensor::ExpandShapeOp::create(b, loc, wanted, flat, groupsOf(isKept));
  return flat;
}

/// The loops of each index, those of all indices in `flat`.
static SmallVector<SmallVector<unsigned>> groupLoops(ArrayRef<AffineExpr> indices,
                                                     SmallVector<unsigned> &flat) {
  SmallVector<SmallVector<unsigned>> groups;
  for (AffineExpr index : indices) {
    SmallVector<unsigned> group;
    Terms terms = *termsOf(index);
    for (auto [loop, coefficient] : terms)
      group.push_back(loop);
    llvm::append_range(flat, group);
    groups.push_back(group);
  }
  return groups;
}

Value dist::atIndices(OpBuilder &b, Location loc, Value tensor, AffineMap map,
                      const LoopNumbers &numbers, ArrayRef<AffineExpr> indices,
                      RankedTensorType wanted) {
  SmallVector<unsigned> flat;
  SmallVector<SmallVector<unsigned>> groups = groupLoops(indices, flat);
  SmallVector<int64_t> permutation, shape;
  auto type = cast<RankedTensorType>(tensor.getType());
  for (unsigned loop : flat) {
    AffineExpr dim = b.getAffineDimExpr(numbers.find(loop)->second);
    permutation.push_back(*map.getResultPosition(dim));
    shape.push_back(type.getDimSize(permutation.back()));
  }
  if (!llvm::is_sorted(permutation)) {
    Value init = tensor::EmptyOp::create(b, loc, shape, type.getElementType());
    tensor = linalg::TransposeOp::create(b, loc, tensor, init, permutation)->getResult(0);
  }
  return asType(b, loc, tensor, groups, wanted);
}

namespace {

class AttentionBuilder {
public:
  AttentionBuilder(OpBuilder &b, AttentionMatch &match)
      : b(b), loc(match.root->getLoc()), match(match), all(*match.expressions) {}

  WrittenAttention build();

private:
  /// A tensor with one dimension per loop, without unit dimensions; appends its map.
  Value takeOperand(const Access &access) {
    auto [tensor, map] = asOperand(b, loc, *match.loops, numbers, access);
    maps.push_back(map);
    return tensor;
  }
  void number(ArrayRef<AffineExpr> indices) {
    for (AffineExpr index : indices)
      if (std::optional<Terms> terms = termsOf(index))
        for (auto [loop, coefficient] : *terms)
          numbers[loop] = 0;
  }
  void collectElements(int node);
  /// Emits a formula as a region; its first argument, of a type, is the node `first`.
  void emitRegion(Region &region, int formula, int first, Type type);
  Value emit(int node, OpBuilder &body, Block &block);
  Value emitIndex(AffineExpr index, OpBuilder &body, Block &block);

  OpBuilder &b;
  Location loc;
  AttentionMatch &match;
  ElementExpressions &all;
  LoopNumbers numbers;
  SmallVector<int> elements; ///< nodes that are extra operands
  llvm::SmallDenseSet<int> collected;
  SmallVector<AffineMap> maps;
  llvm::DenseMap<int, Value> emitted; ///< in the current region; looked up only
};

} // namespace

void AttentionBuilder::collectElements(int node) {
  if (!collected.insert(node).second)
    return;
  if (all[node].kind == Kind::element)
    elements.push_back(node);
  for (int operand : all[node].operands)
    collectElements(operand);
}

Value AttentionBuilder::emitIndex(AffineExpr index, OpBuilder &body, Block &block) {
  unsigned first = 1 + elements.size();
  Value sum;
  Terms terms = *termsOf(index);
  for (auto [loop, coefficient] : terms) {
    Value term = block.getArgument(first + numbers.find(loop)->second);
    if (coefficient != 1)
      term = arith::MulIOp::create(body, loc, term,
                                   arith::ConstantIndexOp::create(body, loc, coefficient));
    sum = sum ? arith::AddIOp::create(body, loc, sum, term).getResult() : term;
  }
  return sum ? sum : arith::ConstantIndexOp::create(body, loc, 0).getResult();
}

Value AttentionBuilder::emit(int node, OpBuilder &body, Block &block) {
  if (Value known = emitted.lookup(node))
    return known;
  const ElementExpressions::Node &own = all[node];
  auto finish = [&](Value value) { return emitted[node] = value; };
  switch (own.kind) {
  case Kind::element:
    return finish(block.getArgument(1 + (llvm::find(elements, node) - elements.begin())));
  case Kind::index:
    return finish(emitIndex(own.index, body, block));
  default: {
    IRMapping mapping;
    for (auto [operand, from] : llvm::zip_equal(own.operands, own.op->getOperands()))
      mapping.map(from, emit(operand, body, block));
    // Operands map by position, since a value may occur twice.
    Operation *copy = body.clone(*own.op, mapping);
    for (auto [index, operand] : llvm::enumerate(own.operands))
      copy->setOperand(index, emit(operand, body, block));
    return finish(copy->getResult(0));
  }
  }
}

void AttentionBuilder::emitRegion(Region &region, int formula, int first, Type type) {
  Block &block = region.emplaceBlock();
  block.addArgument(type, loc);
  for (int element : elements)
    block.addArgument(all[element].type, loc);
  for (size_t i = 0; i < numbers.size(); ++i)
    block.addArgument(b.getIndexType(), loc);
  emitted.clear();
  emitted[first] = block.getArgument(0);
  OpBuilder body = OpBuilder::atBlockEnd(&block);
  Value result = emit(formula, body, block);
  ext::YieldOp::create(body, loc, result);
}

WrittenAttention AttentionBuilder::build() {
  collectElements(match.score);
  collected.insert(match.shares);
  collectElements(match.weights);
  for (const Access *access : {&match.query, &match.key, &match.value})
    number(access->indices);
  number(match.output);
  for (auto [position, loop] : llvm::enumerate(numbers))
    loop.second = position;
  SmallVector<Value> operands;
  for (const Access *access : {&match.query, &match.key, &match.value})
    operands.push_back(takeOperand(*access));
  for (int node : elements)
    operands.push_back(takeOperand({all[node].tensor, all[node].indices}));
  SmallVector<unsigned> flat;
  SmallVector<SmallVector<unsigned>> groups = groupLoops(match.output, flat);
  maps.push_back(mapOf(b.getContext(), numbers, flat));
  SmallVector<int64_t> shape =
      llvm::map_to_vector(flat, [&](unsigned loop) { return match.loops->extents[loop]; });
  auto wanted = cast<RankedTensorType>(match.root->getResult(0).getType());
  auto op = ext::AttentionOp::create(b, loc, TypeRange{wanted.clone(shape)}, operands[0],
                                     operands[1], operands[2], ArrayRef(operands).drop_front(3),
                                     b.getAffineMapArrayAttr(maps));
  emitRegion(op.getScore(), match.score, match.product, all[match.product].type);
  if (all.stripConversions(match.weights) != all.stripConversions(match.shares))
    emitRegion(op.getWeights(), match.weights, match.shares, all[match.shares].type);
  return {op, asType(b, loc, op.getOutput(), groups, wanted), numbers};
}

bool dist::isReadable(const Loops &loops, Value tensor, ArrayRef<AffineExpr> indices) {
  llvm::SmallDenseSet<unsigned> seen;
  auto type = cast<RankedTensorType>(tensor.getType());
  for (auto [index, extent] : llvm::zip_equal(indices, type.getShape())) {
    std::optional<Terms> terms = termsOf(index);
    if (!terms)
      return false;
    int64_t size = 1;
    for (auto [loop, coefficient] : llvm::reverse(*terms)) {
      if (coefficient != size || !seen.insert(loop).second)
        return false;
      size *= loops.extents[loop];
    }
    if (size != extent)
      return false;
  }
  return true;
}

bool dist::canBuild(const AttentionMatch &match) {
  const ElementExpressions &all = *match.expressions;
  SmallVector<int> nodes = all.nodesOf(match.score);
  llvm::append_range(nodes, all.nodesOf(match.weights, match.shares));
  for (int node : nodes)
    if (all[node].kind == Kind::element &&
        !isReadable(*match.loops, all[node].tensor, all[node].indices))
      return false;
  return isReadable(*match.loops, match.root->getResult(0), match.output) &&
         llvm::all_of(ArrayRef{&match.query, &match.key, &match.value}, [&](const Access *access) {
           return isReadable(*match.loops, access->tensor, access->indices);
         });
}

/// Bytes of all scores.
static int64_t scoreBytes(const AttentionMatch &match) {
  llvm::SmallDenseSet<unsigned> rows;
  for (AffineExpr index : match.output)
    if (std::optional<Terms> terms = termsOf(index))
      for (auto [loop, coefficient] : *terms)
        rows.insert(loop);
  auto reads = [](const Access &access, unsigned loop) {
    return llvm::any_of(access.indices,
                        [&](AffineExpr index) { return index.isFunctionOfDim(loop); });
  };
  int64_t elements = 1;
  for (auto [loop, extent] : llvm::enumerate(match.loops->extents)) {
    bool isKey = reads(match.key, loop) && reads(match.value, loop) && !reads(match.query, loop);
    if (isKey || (rows.contains(loop) && reads(match.query, loop)))
      elements *= extent;
  }
  return elements * (*match.expressions)[match.score].type.getIntOrFloatBitWidth() / 8;
}

namespace {
struct InsertedOps : OpBuilder::Listener {
  SmallVector<Operation *> ops;
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    ops.push_back(op);
  }
};
} // namespace

/// Whether a mask of indices restricts queries to a window of keys: derived from a temporary op.
static bool hasKeyBand(AttentionMatch &match) {
  InsertedOps inserted;
  OpBuilder b(match.root->getContext(), &inserted);
  b.setInsertionPoint(match.root);
  bool result = ext::keyBandOf(ext::partsOf(AttentionBuilder(b, match).build().op)).has_value();
  for (Operation *op : llvm::reverse(inserted.ops))
    op->erase();
  return result;
}

int64_t dist::leastBytesOfMatch(func::FuncOp function, int64_t leastScoreBytes) {
  bool isDistributed =
      llvm::any_of(function->getParentOfType<ModuleOp>().getOps<ProcessMeshOp>(),
                   [](ProcessMeshOp mesh) { return llvm::product_of(mesh.getShape()) > 1; });
  return isDistributed ? 0 : leastScoreBytes;
}

bool dist::isWorthRecomputing(AttentionMatch &match, int64_t leastScoreBytes) {
  if (scoreBytes(match) >= leastScoreBytes)
    return true;
  auto function = match.root->getParentOfType<func::FuncOp>();
  return leastBytesOfMatch(function, leastScoreBytes) == 0 && hasKeyBand(match);
}

WrittenAttention dist::writeAttention(OpBuilder &b, AttentionMatch &match) {
  return AttentionBuilder(b, match).build();
}
