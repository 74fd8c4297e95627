//===- MatchAttentionBackward.cpp - Match attention derivatives -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The derivative of an attention is up to four products beside the forward two:
//
//   d_share = gradient · value      read by the derivative of the softmax
//   d_value = share · gradient      reads the shares
//   d_query = d_product · key       both read the derivative of the softmax,
//   d_key   = d_product · query     d_product
//
// First all products are found whose operands depend on the scores, then each is
// assigned to one of the last three by the values of this operand (RowValues.h). Thus
// the form of the softmax's derivative, of masks, scales and caps does not matter.
//
//===----------------------------------------------------------------------===//

#include "MatchAttentionBackward.h"
#include "RowValues.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using Kind = ElementExpressions::Kind;
static constexpr int kNone = ElementExpressions::kNone;

/// Loops of one enumeration as indices in loops of another.
using Substitution = std::map<unsigned, AffineExpr>;

static bool assign(Substitution &loops, unsigned loop, AffineExpr index) {
  auto [it, isNew] = loops.try_emplace(loop, index);
  return isNew || it->second == index;
}

/// Maps the loops of `indices` (with `extents`) such that the indices equal `wanted`: each index is
/// one loop, or a sum of as many loops as the wanted one.
static bool unify(ArrayRef<AffineExpr> indices, ArrayRef<int64_t> extents,
                  ArrayRef<AffineExpr> wanted, const Loops &wantedLoops, Substitution &loops) {
  if (indices.size() != wanted.size())
    return false;
  for (auto [index, target] : llvm::zip_equal(indices, wanted)) {
    std::optional<Terms> from = termsOf(index), to = termsOf(target);
    if (!from || !to || from->empty() != to->empty())
      return false;
    if (from->size() == 1 && from->front().second == 1) {
      int64_t size = 1;
      for (auto [loop, coefficient] : *to)
        size *= wantedLoops.extents[loop];
      if (size != extents[from->front().first] || !assign(loops, from->front().first, target))
        return false;
      continue;
    }
    if (from->size() != to->size())
      return false;
    for (auto [own, other] : llvm::zip_equal(*from, *to))
      if (own.second != other.second || extents[own.first] != wantedLoops.extents[other.first] ||
          !assign(loops, own.first, getAffineDimExpr(other.first, index.getContext())))
        return false;
  }
  return true;
}

static Indices substitute(ArrayRef<AffineExpr> indices, const Substitution &loops) {
  Indices result;
  for (AffineExpr index : indices) {
    DenseMap<AffineExpr, AffineExpr> replacements; // looked up only
    for (const auto &[loop, expr] : loops)
      replacements[getAffineDimExpr(loop, index.getContext())] = expr;
    result.push_back(index.replace(replacements));
  }
  return result;
}

static llvm::SmallBitVector loopsOf(ArrayRef<AffineExpr> indices, size_t numLoops) {
  llvm::SmallBitVector result(numLoops);
  for (unsigned loop = 0; loop < numLoops; ++loop)
    result[loop] =
        llvm::any_of(indices, [&](AffineExpr index) { return index.isFunctionOfDim(loop); });
  return result;
}

static Indices indicesOf(linalg::LinalgOp op, OpOperand *operand, ArrayRef<AffineExpr> at) {
  Indices result;
  for (AffineExpr expr : op.getMatchingIndexingMap(operand).getResults())
    result.push_back(expr.replaceDims(at));
  return result;
}

namespace {

/// A product with an operand that depends on the scores.
struct Reader {
  linalg::LinalgOp op;
  unsigned side; ///< the dependent operand
  Indices at;    ///< by loop of the op
  int node;      ///< the formula of that operand
};

class BackwardMatcher {
public:
  explicit BackwardMatcher(AttentionBackwardMatch &match)
      : match(match), forward(match.forward), all(*forward.expressions), loops(*forward.loops),
        context(forward.root->getContext()) {}

  bool run();

private:
  std::optional<Substitution> matchLoops(const Loops &own, Value tensor,
                                         ArrayRef<AffineExpr> indices,
                                         std::optional<Split> &wanted) const;
  std::optional<Reader> read(linalg::LinalgOp op, unsigned side);
  bool findReaders();
  bool findGradient();
  bool classify(const Reader &reader, bool &isOfShares);
  bool take(const Reader &reader, bool isOfShares);
  std::optional<Substitution> matchOperand(linalg::LinalgOp op, unsigned side,
                                           ArrayRef<AffineExpr> at, Access known) const;
  bool followSum(AttentionBackwardMatch::Target &target, const Access &of);
  bool isReplacedWhole();

  AttentionBackwardMatch &match;
  AttentionMatch &forward;
  ElementExpressions &all;
  Loops &loops;
  MLIRContext *context;
  SmallVector<Reader> readers;
  SmallVector<Value> ends;        ///< of the attention: their readers are ignored
  SmallVector<Operation *> chain; ///< between a product and its target
  int probabilityGradient =
      kNone; ///< the gradient of a softmax probability, an element of a product
  linalg::LinalgOp bySharesOp;
};

} // namespace

/// The nodes of a kind in a formula, ascending.
static SmallVector<int> nodesIn(const ElementExpressions &expressions, int node, Kind kind) {
  SmallVector<int> nodes = expressions.nodesOf(node);
  llvm::erase_if(nodes, [&](int inner) { return expressions[inner].kind != kind; });
  return nodes;
}

/// Maps a product's own loops to loops of the attention: matches the product of query and key in
/// the formula of the operand. `wanted` is a loop to split if there is no formula.
std::optional<Substitution> BackwardMatcher::matchLoops(const Loops &own, Value tensor,
                                                        ArrayRef<AffineExpr> indices,
                                                        std::optional<Split> &wanted) const {
  for (AffineExpr candidate : indices) {
    auto key = dyn_cast<AffineDimExpr>(candidate);
    if (!key || own.extents[key.getPosition()] != loops.extents[forward.keyLoop])
      continue;
    ElementExpressions probe(own, forward.scores, key.getPosition());
    probe.stopAt(ends);
    int node = probe.evaluate(tensor, indices);
    if (node == kNone) {
      wanted = wanted ? wanted : probe.wantedSplit;
      continue;
    }
    Substitution found;
    SmallVector<int> products = nodesIn(probe, node, Kind::product);
    if (products.size() == 1 &&
        unify(probe[products[0]].indices, own.extents, all[forward.product].indices, loops,
              found) &&
        found[key.getPosition()] == getAffineDimExpr(forward.keyLoop, context))
      return found;
  }
  return std::nullopt;
}

/// The formula of a product's operand, in loops of the attention.
std::optional<Reader> BackwardMatcher::read(linalg::LinalgOp op, unsigned side) {
  Loops own;
  own.extents = op.getStaticLoopRanges();
  Indices at;
  for (auto [loop, range] : llvm::enumerate(own.extents))
    at.push_back(range == 1 ? getAffineConstantExpr(0, context) : getAffineDimExpr(loop, context));
  OpOperand *operand = op.getDpsInputOperand(side);
  std::optional<Substitution> found;
  constexpr int kMostSplits = 8;
  for (int splits = 0; splits < kMostSplits && !found; ++splits) {
    std::optional<Split> wanted;
    found = matchLoops(own, operand->get(), indicesOf(op, operand, at), wanted);
    if (found)
      break;
    if (!wanted || own.extents[wanted->loop] % wanted->inner != 0)
      return std::nullopt;
    AffineExpr outer = getAffineDimExpr(own.extents.size(), context);
    AffineExpr inner = getAffineDimExpr(own.extents.size() + 1, context);
    own.extents.push_back(own.extents[wanted->loop] / wanted->inner);
    own.extents.push_back(wanted->inner);
    for (AffineExpr &expr : at)
      expr = expr.replace(getAffineDimExpr(wanted->loop, context), outer * wanted->inner + inner);
  }
  if (!found)
    return std::nullopt;
  // The feature loops of the product are new loops.
  llvm::SmallBitVector isRead = loopsOf(indicesOf(op, operand, at), own.extents.size());
  llvm::SmallBitVector isUsed = loopsOf(at, own.extents.size());
  size_t before = loops.extents.size();
  for (size_t loop = 0; loop < own.extents.size(); ++loop) {
    if (!isUsed[loop] || found->count(loop))
      continue;
    if (isRead[loop])
      return std::nullopt;
    (*found)[loop] = getAffineDimExpr(loops.extents.size(), context);
    loops.extents.push_back(own.extents[loop]);
  }
  Reader reader{op, side, substitute(at, *found), kNone};
  Indices known = indicesOf(op, operand, reader.at);
  if (isReadable(loops, operand->get(), known))
    reader.node = all.evaluate(operand->get(), known);
  if (reader.node != kNone)
    return reader;
  loops.extents.resize(before);
  return std::nullopt;
}

bool BackwardMatcher::findReaders() {
  for (Operation &op : *forward.root->getBlock()) {
    if (op.getNumOperands() < 2)
      continue;
    // First what few ops do.
    bool reads[2] = {all.dependsOnRoot(op.getOperand(0)), all.dependsOnRoot(op.getOperand(1))};
    if (!reads[0] && !reads[1])
      continue;
    auto product = dyn_cast<linalg::LinalgOp>(op);
    if (!product || !isProduct(product) || &op == forward.root || product == forward.scores)
      continue;
    if ((reads[0] && reads[1]) || !forward.root->isBeforeInBlock(&op))
      return false;
    std::optional<Reader> reader = read(product, reads[0] ? 0 : 1);
    if (!reader)
      return false;
    readers.push_back(std::move(*reader));
    ends.push_back(op.getResult(0));
    all.stopAt(ends.back());
  }
  return !readers.empty();
}

/// Maps feature loops of a product such that its operand is an element of `known`; empty if it is
/// not.
std::optional<Substitution> BackwardMatcher::matchOperand(linalg::LinalgOp op, unsigned side,
                                                          ArrayRef<AffineExpr> at,
                                                          Access known) const {
  OpOperand *operand = op.getDpsInputOperand(side);
  Access access{operand->get(), indicesOf(op, operand, at)};
  std::optional<Split> wanted;
  lookThrough(loops, access, wanted);
  lookThrough(loops, known, wanted);
  Substitution found;
  if (access.tensor != known.tensor ||
      !unify(access.indices, loops.extents, known.indices, loops, found))
    return std::nullopt;
  // Loops of rows and keys must map to themselves.
  llvm::SmallBitVector scores = loopsOf(all[forward.product].indices, loops.extents.size());
  for (const auto &[loop, expr] : found)
    if (scores[loop] && expr != getAffineDimExpr(loop, context))
      return std::nullopt;
  return found;
}

/// Finds the gradient of the softmax probabilities, a product with the values, and its other
/// operand, the gradient.
bool BackwardMatcher::findGradient() {
  SmallVector<int> own = nodesIn(all, forward.weights, Kind::element);
  for (const Reader &reader : readers)
    for (int node : nodesIn(all, reader.node, Kind::element)) {
      auto op = all[node].tensor.getDefiningOp<linalg::LinalgOp>();
      if (!op || !isProduct(op) || llvm::is_contained(own, node) ||
          !all.dependsOn(node, forward.keyLoop))
        continue;
      if (probabilityGradient != kNone && probabilityGradient != node)
        return false;
      probabilityGradient = node;
      bySharesOp = op;
    }
  if (probabilityGradient == kNone)
    return false;
  Indices at(bySharesOp.getNumLoops());
  AffineMap map = bySharesOp.getMatchingIndexingMap(bySharesOp.getDpsInitOperand(0));
  for (auto [expr, index] : llvm::zip_equal(map.getResults(), all[probabilityGradient].indices)) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim)
      return false;
    at[dim.getPosition()] = index;
  }
  for (auto [range, expr] : llvm::zip_equal(bySharesOp.getStaticLoopRanges(), at))
    if (!expr) {
      expr = range == 1 ? getAffineConstantExpr(0, context)
                        : getAffineDimExpr(loops.extents.size(), context);
      if (range != 1)
        loops.extents.push_back(range);
    }
  for (unsigned side = 0; side < 2; ++side) {
    std::optional<Substitution> features = matchOperand(bySharesOp, side, at, forward.value);
    if (!features)
      continue;
    OpOperand *other = bySharesOp.getDpsInputOperand(1 - side);
    match.gradient = {other->get(), substitute(indicesOf(bySharesOp, other, at), *features)};
    Access simple = match.gradient;
    std::optional<Split> wanted;
    lookThrough(loops, simple, wanted);
    size_t numLoops = loops.extents.size();
    auto isWhole = [&](const Access &access) {
      return loopsOf(access.indices, numLoops) == loopsOf(forward.output, numLoops) &&
             isReadable(loops, access.tensor, access.indices);
    };
    if (isWhole(simple))
      match.gradient = simple;
    if (isWhole(match.gradient))
      return true;
  }
  return false;
}

/// Compares sample values of a product's operand with those of the weights and of the derivative by
/// the products of query and key. Fails if it matches neither, or both.
bool BackwardMatcher::classify(const Reader &reader, bool &isOfShares) {
  constexpr unsigned kTries = 24;
  constexpr int kWanted = 6;
  constexpr double kTolerance = 1e-5;
  int compared = 0;
  bool maybeShares = true, maybeProduct = true;
  for (unsigned seed = 1; seed <= kTries && compared < kWanted; ++seed) {
    RowValues row(all, loops, forward.keyLoop, seed);
    auto score = row.of(forward.score), bySharesRow = row.of(probabilityGradient),
         share = row.of(forward.shares), weight = row.of(forward.weights),
         own = row.of(reader.node);
    if (!score || !bySharesRow || !share || !weight || !own)
      return false;
    double largest = score->front().value, sum = 0, mean = 0, size = 0;
    for (const Dual &element : *score)
      largest = std::max(largest, element.value);
    SmallVector<double> shares;
    // Weights are linear in shares.
    auto factor = [&](size_t at) {
      return (*share)[at].value == 0 ? 0 : (*weight)[at].value / (*share)[at].value;
    };
    for (const Dual &element : *score)
      sum += shares.emplace_back(std::exp(element.value - largest));
    for (size_t at = 0; at < row.numKeys(); ++at)
      mean += (shares[at] /= sum) * factor(at) * (*bySharesRow)[at].value;
    if (!std::isfinite(mean))
      continue; // a row without keys
    ++compared;
    auto byProduct = [&](size_t at) {
      return shares[at] * (factor(at) * (*bySharesRow)[at].value - mean) * (*score)[at].slope;
    };
    for (size_t at = 0; at < row.numKeys(); ++at)
      size = std::max(size, std::abs(byProduct(at)));
    for (size_t at = 0; at < row.numKeys(); ++at) {
      auto isClose = [&](double wanted, double size) {
        return std::abs((*own)[at].value - wanted) <= kTolerance * size;
      };
      maybeShares = maybeShares && isClose(shares[at] * factor(at), 1);
      maybeProduct = maybeProduct && isClose(byProduct(at), size);
    }
  }
  isOfShares = maybeShares;
  return compared == kWanted && maybeShares != maybeProduct;
}

/// A value before it was converted to other types of floats.
static Value beforeConversions(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::TruncFOp, arith::ExtFOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The indices of a result given the indices of an operand, for ops that only move elements, round
/// them, or sum them over dimensions; empty for other ops. What is summed need not be rounded
/// before: its sum has fewer roundings then.
static std::optional<Indices> indicesBehind(const Loops &loops, Operation *op,
                                            ArrayRef<AffineExpr> indices) {
  MLIRContext *context = op->getContext();
  Indices result;
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    for (const ReassociationIndices &group : collapse.getReassociationIndices()) {
      AffineExpr index = getAffineConstantExpr(0, context);
      for (int64_t dim : group)
        index = index * collapse.getSrcType().getDimSize(dim) + indices[dim];
      result.push_back(index);
    }
    return result;
  }
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    result.assign(expand.getResultType().getRank(), getAffineConstantExpr(0, context));
    for (auto [dim, group] : llvm::enumerate(expand.getReassociationIndices())) {
      AffineExpr index = indices[dim];
      for (int64_t inner : llvm::reverse(group)) {
        if (inner == group.front()) {
          result[inner] = index;
        } else if (int64_t extent = expand.getResultType().getDimSize(inner); extent != 1) {
          auto parts = loops.divide(index, extent);
          if (!parts)
            return std::nullopt;
          std::tie(index, result[inner]) = *parts;
        }
      }
    }
    return result;
  }
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp || linalgOp.getNumDpsInputs() != 1 || op->getNumResults() != 1 ||
      !linalgOp.hasPureTensorSemantics())
    return std::nullopt;
  AffineMap from = linalgOp.getMatchingIndexingMap(linalgOp.getDpsInputOperand(0));
  AffineMap to = linalgOp.getMatchingIndexingMap(linalgOp.getDpsInitOperand(0));
  Block *body = linalgOp.getBlock();
  Value yielded = body->getTerminator()->getOperand(0);
  bool moves = beforeConversions(yielded) == body->getArgument(0) && to.isPermutation();
  auto sum = yielded.getDefiningOp<arith::AddFOp>();
  bool adds = sum && llvm::any_of(sum->getOperands(), [&](Value value) {
                return beforeConversions(value) == body->getArgument(0);
              });
  bool sums = adds && llvm::is_contained(sum->getOperands(), body->getArgument(1)) &&
              isZero(linalgOp.getDpsInits()[0]);
  if (!from.isPermutation() || (!moves && !sums))
    return std::nullopt;
  for (AffineExpr expr : to.getResults()) {
    auto loop = dyn_cast<AffineDimExpr>(expr);
    if (!loop)
      return std::nullopt;
    result.push_back(indices[*from.getResultPosition(loop)]);
  }
  return result;
}

/// Follows the result of a product to its sum over the loops that `of` lacks, if heads share keys
/// and values by a broadcast.
bool BackwardMatcher::followSum(AttentionBackwardMatch::Target &target, const Access &of) {
  size_t numLoops = loops.extents.size();
  constexpr int kMostOps = 8;
  for (int ops = 0; ops < kMostOps; ++ops) {
    Value value = target.op->getResult(0);
    if (loopsOf(target.indices, numLoops) == loopsOf(of.indices, numLoops) &&
        isReadable(loops, value, target.indices))
      return true;
    if (!value.hasOneUse())
      return false;
    Operation *user = *value.user_begin();
    if (user->getBlock() != forward.root->getBlock())
      return false;
    std::optional<Indices> indices = indicesBehind(loops, user, target.indices);
    if (!indices)
      return false;
    chain.push_back(target.op);
    target = {user, std::move(*indices)};
  }
  return false;
}

/// Records the derivative that a product computes.
bool BackwardMatcher::take(const Reader &reader, bool isOfShares) {
  enum { query, key, value };
  auto tryAs = [&](int which, const Access &factor, const Access &of) {
    std::optional<Substitution> features =
        matchOperand(reader.op, 1 - reader.side, reader.at, factor);
    if (!features)
      return false;
    linalg::LinalgOp op = reader.op;
    Indices indices = substitute(indicesOf(op, op.getDpsInitOperand(0), reader.at), *features);
    AttentionBackwardMatch::Target target{op, std::move(indices)};
    if (match.targets[which].op || !followSum(target, of))
      return false;
    match.targets[which] = std::move(target);
    return true;
  };
  if (isOfShares)
    return tryAs(value, match.gradient, forward.value);
  return tryAs(query, forward.key, forward.query) || tryAs(key, forward.query, forward.key);
}

/// Whether only the attention and its derivative read the values computed from the scores, and the
/// derivative by the shares.
bool BackwardMatcher::isReplacedWhole() {
  llvm::SmallPtrSet<Operation *, 32> own(all.visited().begin(), all.visited().end());
  for (Operation *op : {forward.scores.getOperation(), bySharesOp.getOperation(), forward.root})
    own.insert(op);
  SmallVector<Operation *> inner(own.begin(), own.end()); // the order does not matter
  for (const AttentionBackwardMatch::Target &target : match.targets)
    if (target.op)
      own.insert(target.op);
  own.insert(chain.begin(), chain.end());
  for (Operation *op : inner)
    for (Value result : op->getResults())
      if (op != forward.root && (op == bySharesOp || all.dependsOnRoot(result)))
        for (Operation *user : op->getUsers())
          if (!own.contains(user) && !isOpTriviallyDead(user))
            return false;
  return true;
}

bool BackwardMatcher::run() {
  if (forward.isDividedBehind)
    return false;
  ends.push_back(forward.root->getResult(0));
  all.stopAt(ends);
  if (!findReaders() || !findGradient())
    return false;
  for (const Reader &reader : readers) {
    bool isOfShares = false;
    if (!classify(reader, isOfShares) || !take(reader, isOfShares))
      return false;
  }
  if (!isReplacedWhole())
    return false;
  match.replaced = all.visited();
  for (Operation *op : {forward.scores.getOperation(), bySharesOp.getOperation(), forward.root})
    match.replaced.insert(op);
  for (const AttentionBackwardMatch::Target &target : match.targets)
    if (target.op)
      match.replaced.insert(target.op);
  match.replaced.insert(chain.begin(), chain.end());
  return true;
}

std::optional<AttentionBackwardMatch> dist::matchAttentionBackward(linalg::LinalgOp product,
                                                                   int64_t leastScoreBytes) {
  std::optional<AttentionMatch> forward =
      matchAttention(product, /*mayBeRead=*/true, leastScoreBytes);
  if (!forward)
    return std::nullopt;
  AttentionBackwardMatch match;
  match.forward = std::move(*forward);
  if (!BackwardMatcher(match).run())
    return std::nullopt;
  return match;
}
