//===- ElementExpressions.cpp - Formulas of elements ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElementExpressions.h"

#include "tessera/Dialect/Dist/Rules/LinearExpr.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

std::optional<Terms> dist::termsOf(AffineExpr index) {
  std::optional<LinearExpr> linear = linearExprOf(index);
  if (!linear || linear->constant != 0)
    return std::nullopt;
  Terms terms = std::move(linear->terms);
  llvm::sort(terms, [](const auto &a, const auto &b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return terms;
}

std::optional<std::pair<AffineExpr, AffineExpr>> Loops::divide(AffineExpr index,
                                                               int64_t divisor) const {
  std::optional<Terms> terms = termsOf(index);
  if (!terms)
    return std::nullopt;
  MLIRContext *context = index.getContext();
  AffineExpr quotient = getAffineConstantExpr(0, context), rest = quotient;
  int64_t largest = 0;
  for (auto [loop, coefficient] : *terms) {
    AffineExpr dim = getAffineDimExpr(loop, context);
    if (coefficient % divisor == 0) {
      quotient = quotient + dim * (coefficient / divisor);
    } else {
      rest = rest + dim * coefficient;
      largest += coefficient * (extents[loop] - 1);
    }
  }
  if (largest >= divisor)
    return std::nullopt;
  return std::pair(quotient, rest);
}

std::optional<Indices> dist::throughReshape(const Loops &loops, Operation *reshape,
                                            ArrayRef<AffineExpr> indices,
                                            std::optional<Split> &wanted) {
  MLIRContext *context = reshape->getContext();
  AffineExpr zero = getAffineConstantExpr(0, context);
  Indices source;
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(reshape)) {
    for (const ReassociationIndices &group : expand.getReassociationIndices()) {
      AffineExpr index = zero;
      for (int64_t dim : group)
        index = index * expand.getResultType().getDimSize(dim) + indices[dim];
      source.push_back(index);
    }
    return source;
  }
  auto collapse = cast<tensor::CollapseShapeOp>(reshape);
  ArrayRef<int64_t> shape = collapse.getSrcType().getShape();
  source.assign(shape.size(), zero);
  for (auto [dim, group] : llvm::enumerate(collapse.getReassociationIndices())) {
    AffineExpr index = indices[dim];
    int64_t left = 1;
    for (int64_t inner : group)
      left *= shape[inner];
    for (int64_t inner : llvm::reverse(group)) {
      if (shape[inner] == 1)
        continue;
      left /= shape[inner];
      if (left == 1) {
        source[inner] = index;
        break;
      }
      auto parts = loops.divide(index, shape[inner]);
      if (!parts) {
        std::optional<Terms> terms = termsOf(index);
        if (terms && terms->size() == 1 && terms->front().second == 1)
          wanted = Split{terms->front().first, shape[inner]};
        return std::nullopt;
      }
      source[inner] = parts->second;
      index = parts->first;
    }
  }
  return source;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

ElementExpressions::~ElementExpressions() {
  for (Operation *op : scratch)
    op->erase();
}

int ElementExpressions::add(Node node) {
  std::vector<const void *> key{reinterpret_cast<const void *>(static_cast<uintptr_t>(node.kind)),
                                node.index.getAsOpaquePointer(), node.tensor.getAsOpaquePointer(),
                                node.type.getAsOpaquePointer()};
  if (node.op) {
    key.push_back(node.op->getName().getAsOpaquePointer());
    key.push_back(node.op->getAttrDictionary().getAsOpaquePointer());
  }
  for (AffineExpr index : node.indices)
    key.push_back(index.getAsOpaquePointer());
  key.push_back(nullptr);
  for (int operand : node.operands)
    key.push_back(reinterpret_cast<const void *>(static_cast<intptr_t>(operand) + 1));
  auto [it, isNew] = known.try_emplace(std::move(key), static_cast<int>(nodes.size()));
  if (isNew)
    nodes.push_back(std::move(node));
  return it->second;
}

int ElementExpressions::addOp(Operation *like, ArrayRef<int> operands, Type type) {
  Node node;
  node.op = like;
  node.type = type;
  node.operands.assign(operands.begin(), operands.end());
  return add(std::move(node));
}

int ElementExpressions::element(Value tensor, ArrayRef<AffineExpr> indices) {
  if (tensor != opaque && dependsOnRoot(tensor))
    return kNone;
  Node node;
  node.kind = Kind::element;
  node.tensor = tensor;
  node.indices.assign(indices.begin(), indices.end());
  node.type = getElementTypeOrSelf(tensor.getType());
  return add(std::move(node));
}

bool ElementExpressions::dependsOn(int node, unsigned loop) const {
  // Each node once: random bits have exponentially many paths to their counters.
  llvm::SmallDenseSet<int> done;
  SmallVector<int> work{node};
  while (!work.empty()) {
    int next = work.pop_back_val();
    const Node &own = nodes[next];
    if (!done.insert(next).second || (own.kind == Kind::reduced && loop == reducedLoop))
      continue;
    if (own.kind == Kind::index && own.index.isFunctionOfDim(loop))
      return true;
    if (llvm::any_of(own.indices, [&](AffineExpr index) { return index.isFunctionOfDim(loop); }))
      return true;
    llvm::append_range(work, own.operands);
  }
  return false;
}

SmallVector<int> ElementExpressions::nodesOf(int node, int leaf) const {
  llvm::SmallDenseSet<int> done;
  SmallVector<int> found, work{node};
  while (!work.empty()) {
    int next = work.pop_back_val();
    if (!done.insert(next).second)
      continue;
    found.push_back(next);
    if (next != leaf)
      llvm::append_range(work, nodes[next].operands);
  }
  llvm::sort(found);
  return found;
}

bool ElementExpressions::contains(int node, Kind kind) const {
  return llvm::any_of(nodesOf(node), [&](int inner) { return nodes[inner].kind == kind; });
}

int ElementExpressions::stripConversions(int node) const {
  while (isOp<arith::ExtFOp>(node) || isOp<arith::TruncFOp>(node))
    node = nodes[node].operands.front();
  return node;
}

static bool isAfter(Operation *a, Operation *b) {
  return b->isBeforeInBlock(a);
}

void ElementExpressions::addDependent(Value value) {
  dependent.insert(value);
  for (Operation *user : value.getUsers()) {
    Operation *reader = root->getBlock()->findAncestorOpInBlock(*user);
    if (!reader || !reached.insert(reader).second)
      continue;
    pending.push_back(reader);
    std::push_heap(pending.begin(), pending.end(), isAfter);
  }
}

bool ElementExpressions::dependsOnRoot(Value value) {
  if (value == root->getResult(0))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != root->getBlock() || op->isBeforeInBlock(root) ||
      stops.contains(value))
    return false;
  if (dependent.empty())
    addDependent(root->getResult(0));
  while (!pending.empty() && !op->isBeforeInBlock(pending.front())) {
    std::pop_heap(pending.begin(), pending.end(), isAfter);
    Operation *reader = pending.back();
    pending.pop_back();
    for (Value result : reader->getResults())
      if (!stops.contains(result))
        addDependent(result);
  }
  return dependent.contains(value);
}

void ElementExpressions::stopAt(ArrayRef<Value> values) {
  stops.insert(values.begin(), values.end());
  if (llvm::none_of(values, [&](Value value) { return dependent.contains(value); }))
    return;
  dependent.clear();
  reached.clear();
  pending.clear();
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

/// Whether a tensor depends only on indices and constants.
static bool isMadeOfIndices(Value tensor, int depth = 0) {
  Operation *op = tensor.getDefiningOp();
  constexpr int kDeepest = 32;
  if (!op || depth > kDeepest)
    return false;
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue());
  if (isa<tensor::EmptyOp>(op))
    return true;
  if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op)) {
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    if (!linalgOp || linalgOp.getNumParallelLoops() != linalgOp.getNumLoops())
      return false;
  }
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return isa<RankedTensorType>(operand.getType()) ? isMadeOfIndices(operand, depth + 1)
                                                    : matchPattern(operand, m_Constant());
  });
}

/// Inlines values that depend on the root, matrices over the reduced loop and others, and functions
/// of indices. Other values are leaves.
bool ElementExpressions::isWorthInlining(Value tensor, ArrayRef<AffineExpr> indices) {
  bool overReduced = false, overOthers = false;
  for (AffineExpr index : indices)
    if (std::optional<Terms> terms = termsOf(index))
      for (auto [loop, coefficient] : *terms)
        (loop == reducedLoop ? overReduced : overOthers) = true;
  return (overReduced && overOthers) || dependsOnRoot(tensor) || isMadeOfIndices(tensor) ||
         (alsoInlines && alsoInlines(tensor));
}

int ElementExpressions::evaluate(Value tensor, ArrayRef<AffineExpr> indices) {
  Operation *op = tensor.getDefiningOp();
  MLIRContext *context = tensor.getContext();
  SmallVector<AffineExpr> clean(indices);
  for (auto [index, extent] :
       llvm::zip_equal(clean, cast<RankedTensorType>(tensor.getType()).getShape()))
    if (extent == 1)
      index = getAffineConstantExpr(0, context);
  if (tensor == opaque || !op)
    return element(tensor, clean);
  if (op == root) {
    Node node;
    node.kind = Kind::product;
    node.indices.assign(clean.begin(), clean.end());
    node.type = getElementTypeOrSelf(tensor.getType());
    return add(std::move(node));
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
    if (!splat)
      return element(tensor, clean);
    OpBuilder b(op);
    auto scalar = arith::ConstantOp::create(b, op->getLoc(), splat.getSplatValue<TypedAttr>());
    scratch.push_back(scalar);
    return addOp(scalar, {}, scalar.getType());
  }
  if (!isWorthInlining(tensor, clean))
    return element(tensor, clean);
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op)) {
    std::optional<Indices> source = throughReshape(loops, op, clean, wantedSplit);
    if (!source)
      return kNone;
    seen.insert(op);
    return evaluate(op->getOperand(0), *source);
  }
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    int node = ofLinalg(linalgOp, cast<OpResult>(tensor).getResultNumber(), clean);
    if (node != kNone) {
      seen.insert(op);
      return node;
    }
  }
  return element(tensor, clean);
}

/// The loops of an op at indices of a result, with `reduced` for a reduction loop. Empty if the
/// result is not a permutation of its loops.
static Indices loopsAt(linalg::LinalgOp op, unsigned result, ArrayRef<AffineExpr> indices,
                       AffineExpr reduced) {
  MLIRContext *context = op.getContext();
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  Indices exprs(ranges.size());
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(result));
  for (auto [expr, index] : llvm::zip_equal(map.getResults(), indices)) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim)
      return {};
    exprs[dim.getPosition()] = index;
  }
  for (auto [loop, expr] : llvm::enumerate(exprs)) {
    if (ranges[loop] == 1)
      expr = getAffineConstantExpr(0, context);
    else if (!expr && reduced)
      expr = std::exchange(reduced, AffineExpr());
    if (!expr)
      return {};
  }
  return exprs;
}

/// Whether a reduction starts from the identity of its combiner: a sum starts from zero.
static bool startsPlainly(linalg::LinalgOp op, Operation *combiner) {
  if (!isa<arith::AddFOp>(combiner))
    return true;
  Value init = op.getDpsInits()[0];
  if (auto fill = init.getDefiningOp<linalg::FillOp>())
    return matchPattern(fill.getInputs()[0], m_AnyZeroFloat());
  return matchPattern(init, m_AnyZeroFloat());
}

int ElementExpressions::ofLinalg(linalg::LinalgOp op, unsigned result,
                                 ArrayRef<AffineExpr> indices) {
  if (!op.hasPureTensorSemantics())
    return kNone;
  if (auto fill = dyn_cast<linalg::FillOp>(op.getOperation())) {
    Operation *scalar = fill.getInputs()[0].getDefiningOp<arith::ConstantOp>();
    return scalar ? addOp(scalar, {}, scalar->getResult(0).getType()) : kNone;
  }
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  int64_t reductions = 0;
  bool isWhole = true;
  for (auto [range, iterator] : llvm::zip_equal(ranges, iterators))
    if (iterator == utils::IteratorType::reduction && range > 1) {
      ++reductions;
      isWhole = isWhole && range == loops.extents[reducedLoop];
    }
  MLIRContext *context = op.getContext();
  llvm::DenseMap<Value, int> body;
  if (op.getNumParallelLoops() == op.getNumLoops()) {
    Indices at = loopsAt(op, result, indices, {});
    BlockArgument carried = op.getRegionOutputArgs()[result];
    return at.empty() && !ranges.empty() ? kNone
           : !carried.use_empty()
               ? kNone
               : ofBody(op, op.getBlock()->getTerminator()->getOperand(result), at, body);
  }
  // A reduction of rows: a single one over the loop, on which nothing outside of it depends.
  if (reductions > 1 || !isWhole || op.getNumDpsInits() != 1 ||
      llvm::any_of(indices, [&](AffineExpr index) { return index.isFunctionOfDim(reducedLoop); }))
    return kNone;
  SmallVector<Operation *> combiners;
  if (!matchReduction(op.getRegionOutputArgs(), 0, combiners) || combiners.size() != 1 ||
      !startsPlainly(op, combiners[0]))
    return kNone;
  Operation *combiner = combiners[0];
  Indices at =
      loopsAt(op, 0, indices, reductions ? getAffineDimExpr(reducedLoop, context) : AffineExpr());
  if (at.empty())
    return kNone;
  bool second = combiner->getOperand(0) == op.getRegionOutputArgs()[0];
  int inner = ofBody(op, combiner->getOperand(second ? 1 : 0), at, body);
  if (inner == kNone || reductions == 0)
    return inner;
  Node node;
  node.kind = Kind::reduced;
  node.op = combiner;
  node.type = nodes[inner].type;
  node.operands = {inner};
  if (!isa<arith::AddFOp>(combiner)) {
    node.operands.push_back(evaluate(op.getDpsInits()[0], indices));
    if (node.operands.back() == kNone)
      return kNone;
  }
  return add(std::move(node));
}

int ElementExpressions::ofBody(linalg::LinalgOp op, Value scalar, ArrayRef<AffineExpr> loopsOf,
                               llvm::DenseMap<Value, int> &body) {
  if (auto it = body.find(scalar); it != body.end())
    return it->second;
  auto finish = [&](int node) { return body[scalar] = node; };
  if (auto argument = dyn_cast<BlockArgument>(scalar)) {
    if (argument.getOwner() != op.getBlock() ||
        argument.getArgNumber() >= static_cast<unsigned>(op.getNumDpsInputs()))
      return finish(kNone);
    OpOperand &operand = op->getOpOperand(argument.getArgNumber());
    if (!isa<RankedTensorType>(operand.get().getType())) {
      Operation *constant = operand.get().getDefiningOp<arith::ConstantOp>();
      return finish(constant ? addOp(constant, {}, scalar.getType()) : kNone);
    }
    Indices at;
    for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults())
      at.push_back(simplifyAffineExpr(expr.replaceDims(loopsOf), loops.extents.size(), 0));
    return finish(evaluate(operand.get(), at));
  }
  Operation *inner = scalar.getDefiningOp();
  if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
    Node node;
    node.kind = Kind::index;
    node.index = loopsOf[index.getDim()];
    node.type = scalar.getType();
    return finish(add(std::move(node)));
  }
  if (inner->getNumRegions() > 0 || inner->getNumResults() != 1 || !isPure(inner) ||
      (inner->getBlock() != op.getBlock() && !isa<arith::ConstantOp>(inner)) ||
      llvm::any_of(inner->getOperandTypes(), llvm::IsaPred<ShapedType>))
    return finish(kNone);
  SmallVector<int> operands;
  for (Value operand : inner->getOperands()) {
    operands.push_back(ofBody(op, operand, loopsOf, body));
    if (operands.back() == kNone)
      return finish(kNone);
  }
  return finish(addOp(inner, operands, scalar.getType()));
}
