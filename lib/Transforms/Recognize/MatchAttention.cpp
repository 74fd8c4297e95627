//===- MatchAttention.cpp - Match attention patterns ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatchAttention.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using Kind = ElementExpressions::Kind;
static constexpr int kNone = ElementExpressions::kNone;

bool dist::isZero(Value init) {
  if (auto fill = init.getDefiningOp<linalg::FillOp>())
    return matchPattern(fill.getInputs()[0], m_AnyZeroFloat());
  return matchPattern(init, m_AnyZeroFloat());
}

bool dist::isProduct(linalg::LinalgOp op) {
  if (!linalg::isaContractionOpInterface(op) || op.getNumDpsInputs() != 2 ||
      op->getNumResults() != 1 || !op.hasPureTensorSemantics() ||
      !isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType())))
    return false;
  return isZero(op.getDpsInits()[0]);
}

void dist::lookThrough(const Loops &loops, Access &access, std::optional<Split> &wanted) {
  while (Operation *op = access.tensor.getDefiningOp()) {
    auto isPlain = [](AffineExpr index) {
      std::optional<Terms> terms = termsOf(index);
      return terms && (terms->empty() || (terms->size() == 1 && terms->front().second == 1));
    };
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op)) {
      std::optional<Split> split;
      std::optional<Indices> source = throughReshape(loops, op, access.indices, split);
      if (!source) // a split is only useful for a broadcast behind the reshape
        if (auto before = op->getOperand(0).getDefiningOp<linalg::LinalgOp>();
            before && before.getNumParallelLoops() == before.getNumLoops() &&
            before.getNumDpsInputs() == 1)
          wanted = wanted ? wanted : split;
      if (!source || !llvm::all_of(*source, isPlain))
        return;
      access = {op->getOperand(0), *source};
      continue;
    }
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    if (!linalgOp || linalgOp.getNumDpsInputs() != 1 || op->getNumResults() != 1 ||
        linalgOp.getNumParallelLoops() != linalgOp.getNumLoops() ||
        linalgOp.getBlock()->getOperations().size() != 1 ||
        linalgOp.getBlock()->getTerminator()->getOperand(0) !=
            linalgOp.getBlock()->getArgument(0) ||
        !isa<RankedTensorType>(op->getOperand(0).getType()))
      return;
    AffineMap from = linalgOp.getMatchingIndexingMap(linalgOp.getDpsInputOperand(0));
    AffineMap to = linalgOp.getMatchingIndexingMap(linalgOp.getDpsInitOperand(0));
    if (!to.isPermutation())
      return;
    Indices at(to.getNumDims());
    for (auto [expr, index] : llvm::zip_equal(to.getResults(), access.indices))
      at[cast<AffineDimExpr>(expr).getPosition()] = index;
    Indices source;
    for (AffineExpr expr : from.getResults())
      source.push_back(expr.replaceDims(at));
    access = {op->getOperand(0), source};
  }
}

namespace {

class Matcher {
public:
  Matcher(linalg::LinalgOp product, bool mayBeRead, int64_t leastScoreBytes)
      : product(product), mayBeRead(mayBeRead), leastScoreBytes(leastScoreBytes),
        context(product.getContext()) {
    ranges = product.getStaticLoopRanges();
    loops = std::make_shared<Loops>();
    AffineExpr zero = getAffineConstantExpr(0, context);
    for (int64_t range : ranges)
      at.push_back(range == 1 ? zero : newLoop(range));
  }

  std::optional<AttentionMatch> run() {
    for (unsigned shares = 0; shares < 2; ++shares) {
      std::optional<unsigned> key = findKey(shares);
      if (!key)
        continue;
      for (linalg::LinalgOp root : findRoots(product->getOperand(shares)))
        for (constexpr int kMostSplits = 8; splits <= kMostSplits;) {
          wanted.reset();
          if (std::optional<AttentionMatch> match = matchFrom(root, shares, *key))
            return match;
          if (!wanted || !split(*wanted, *key))
            break;
        }
    }
    return std::nullopt;
  }

private:
  AffineExpr newLoop(int64_t extent) {
    loops->extents.push_back(extent);
    return getAffineDimExpr(loops->extents.size() - 1, context);
  }

  /// Indices of an operand or the result of the product.
  Indices indicesOf(OpOperand &operand) {
    Indices result;
    for (AffineExpr expr : product.getMatchingIndexingMap(&operand).getResults())
      result.push_back(expr.replaceDims(at));
    return result;
  }

  /// The loop over keys if `shares` is the operand with the softmax: the only reduction loop.
  std::optional<unsigned> findKey(unsigned shares) {
    AffineMap own = product.getMatchingIndexingMap(product.getDpsInputOperand(shares));
    AffineMap other = product.getMatchingIndexingMap(product.getDpsInputOperand(1 - shares));
    AffineMap output = product.getMatchingIndexingMap(product.getDpsInitOperand(0));
    std::optional<unsigned> key;
    for (unsigned loop = 0; loop < ranges.size(); ++loop) {
      if (ranges[loop] == 1)
        continue;
      bool inOwn = own.isFunctionOfDim(loop), inOther = other.isFunctionOfDim(loop);
      if (output.isFunctionOfDim(loop))
        continue;
      if (key || !inOwn || !inOther)
        return std::nullopt;
      key = cast<AffineDimExpr>(at[loop]).getPosition();
    }
    return key;
  }

  /// The products from which other ops compute a tensor, if one of these is an exponential; else
  /// empty, since most products do not belong to an attention.
  SmallVector<linalg::LinalgOp> findRoots(Value shares) {
    SmallVector<linalg::LinalgOp> roots;
    bool hasExponential = false;
    SetVector<Value> work;
    work.insert(shares);
    constexpr size_t kMost = 256;
    for (size_t next = 0; next < work.size() && work.size() < kMost; ++next) {
      Operation *op = work[next].getDefiningOp();
      if (!op || op->getBlock() != product->getBlock())
        continue;
      auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
      if (linalgOp && isProduct(linalgOp)) {
        constexpr int64_t kMostBytes = 8; // of an element, after conversions
        auto scores = cast<RankedTensorType>(linalgOp->getResult(0).getType());
        if (scores.getNumElements() >= leastScoreBytes / kMostBytes &&
            !llvm::is_contained(roots, linalgOp))
          roots.push_back(linalgOp);
        continue;
      }
      if (linalgOp)
        hasExponential |= llvm::any_of(*linalgOp.getBlock(), llvm::IsaPred<math::ExpOp>);
      if (linalgOp || isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
        for (Value operand : op->getOperands())
          if (isa<RankedTensorType>(operand.getType()))
            work.insert(operand);
    }
    if (!hasExponential)
      roots.clear();
    return roots;
  }

  bool split(Split requested, unsigned key) {
    ++splits;
    int64_t extent = loops->extents[requested.loop];
    if (requested.loop == key || extent % requested.inner != 0)
      return false;
    AffineExpr old = getAffineDimExpr(requested.loop, context);
    AffineExpr outer = newLoop(extent / requested.inner), inner = newLoop(requested.inner);
    for (AffineExpr &expr : at)
      expr = expr.replace(old, outer * requested.inner + inner);
    return true;
  }

  std::optional<AttentionMatch> matchFrom(linalg::LinalgOp root, unsigned shares, unsigned key);
  std::optional<int> matchSoftmax(ElementExpressions &all, int node, unsigned key, int &sum) const;
  std::optional<int> matchLogSoftmax(ElementExpressions &all, int exponent, unsigned key) const;
  std::optional<int> matchWeights(ElementExpressions &all, AttentionMatch &match, unsigned key,
                                  int &sum) const;
  bool matchDivision(AttentionMatch &match, unsigned key, int sum);
  std::optional<int> findProductNode(const ElementExpressions &all, int score) const;
  bool findOperands(AttentionMatch &match, linalg::LinalgOp root, int node, unsigned key);
  bool isReplacedWhole(const AttentionMatch &match, ElementExpressions &all, linalg::LinalgOp root);

  linalg::LinalgOp product;
  bool mayBeRead;
  int64_t leastScoreBytes;
  MLIRContext *context;
  SmallVector<int64_t> ranges;
  std::shared_ptr<Loops> loops;
  Indices at; ///< by loop of the product
  std::optional<Split> wanted;
  int splits = 0;
};

} // namespace

/// Whether a node is the sum over keys of `exponential`.
static bool isSumOf(const ElementExpressions &all, int node, int exponential) {
  node = all.stripConversions(node);
  return all[node].kind == Kind::reduced && isa<arith::AddFOp>(all[node].op) &&
         all.stripConversions(all[node].operands[0]) == exponential;
}

/// exp(x - m - log(sum exp(x - m))) and exp(x - (m + log(sum exp(x - m)))): the exponent x - m.
std::optional<int> Matcher::matchLogSoftmax(ElementExpressions &all, int exponent,
                                            unsigned key) const {
  auto sumUnderLog = [&](int node) {
    node = all.stripConversions(node);
    return all.isOp<math::LogOp>(node) ? all.stripConversions(all[node].operands[0]) : kNone;
  };
  auto exponentOf = [&](int sum) {
    if (sum == kNone || all[sum].kind != Kind::reduced || !isa<arith::AddFOp>(all[sum].op))
      return kNone;
    int inner = all.stripConversions(all[sum].operands[0]);
    return all.isOp<math::ExpOp>(inner) ? all.stripConversions(all[inner].operands[0]) : kNone;
  };
  if (!all.isOp<arith::SubFOp>(exponent))
    return std::nullopt;
  int left = all.stripConversions(all[exponent].operands[0]);
  int right = all.stripConversions(all[exponent].operands[1]);
  if (exponentOf(sumUnderLog(right)) == left)
    return left;
  if (!all.isOp<arith::AddFOp>(right) || all.dependsOn(right, key))
    return std::nullopt;
  for (int side = 0; side < 2; ++side) {
    int shift = all.stripConversions(all[right].operands[side]);
    int inner = exponentOf(sumUnderLog(all[right].operands[1 - side]));
    if (inner != kNone && all.isOp<arith::SubFOp>(inner) &&
        all.stripConversions(all[inner].operands[0]) == left &&
        all.stripConversions(all[inner].operands[1]) == shift)
      return left;
  }
  return std::nullopt;
}

/// The scores of which a formula is the softmax. If the formula is only their exponential, `sum` is
/// set to the node whose sum must divide the output.
std::optional<int> Matcher::matchSoftmax(ElementExpressions &all, int node, unsigned key,
                                         int &sum) const {
  node = all.stripConversions(node);
  int exponential = node;
  sum = kNone;
  auto isOne = [&](int n) {
    return all[n].kind == Kind::op && all[n].operands.empty() &&
           matchPattern(all[n].op, m_OneFloat());
  };
  bool isDivided = false;
  if (all.isOp<arith::DivFOp>(node)) {
    exponential = all.stripConversions(all[node].operands[0]);
    isDivided = isSumOf(all, all[node].operands[1], exponential);
  } else if (all.isOp<arith::MulFOp>(node)) {
    for (int side = 0; side < 2 && !isDivided; ++side) {
      int inverse = all.stripConversions(all[node].operands[1 - side]);
      exponential = all.stripConversions(all[node].operands[side]);
      isDivided = all.isOp<arith::DivFOp>(inverse) &&
                  isOne(all.stripConversions(all[inverse].operands[0])) &&
                  isSumOf(all, all[inverse].operands[1], exponential);
    }
  }
  if (!isDivided && exponential != node)
    return std::nullopt;
  if (!all.isOp<math::ExpOp>(exponential))
    return std::nullopt;
  int score = all[exponential].operands[0];
  if (!isDivided) {
    std::optional<int> inner = matchLogSoftmax(all, all.stripConversions(score), key);
    if (inner)
      score = *inner;
    else
      sum = exponential; // the division by its sum must be behind the product
  }
  // Softmax is invariant under a subtraction that is constant in a row.
  while (all.isOp<arith::SubFOp>(all.stripConversions(score)) &&
         !all.dependsOn(all[all.stripConversions(score)].operands[1], key))
    score = all[all.stripConversions(score)].operands[0];
  if (all.contains(score, Kind::reduced) || !all.dependsOn(score, key) ||
      !all.contains(score, Kind::product))
    return std::nullopt;
  return score;
}

/// The operand in which a formula is linear: it is multiplied or divided by values that do not
/// depend on scores, or selected. A condition of the latter is appended.
static std::optional<int> findLinear(const ElementExpressions &all, int node,
                                     SmallVectorImpl<int> &conditions) {
  node = all.stripConversions(node);
  const ElementExpressions::Node &own = all[node];
  auto ofScores = [&](int operand) { return all.contains(own.operands[operand], Kind::product); };
  auto isZero = [&](int operand) {
    int n = own.operands[operand];
    return all[n].kind == Kind::op && all[n].operands.empty() &&
           matchPattern(all[n].op, m_AnyZeroFloat());
  };
  if (all.isOp<arith::MulFOp>(node) && ofScores(0) != ofScores(1))
    return own.operands[ofScores(0) ? 0 : 1];
  if (all.isOp<arith::DivFOp>(node) && !ofScores(1))
    return own.operands[0];
  if (!all.isOp<arith::SelectOp>(node) || ofScores(0))
    return std::nullopt;
  conditions.push_back(own.operands[0]);
  if (isZero(2))
    return own.operands[1];
  return isZero(1) ? std::optional(own.operands[2]) : std::nullopt;
}

/// The same for the weights of values, which may be dropped shares of a softmax.
std::optional<int> Matcher::matchWeights(ElementExpressions &all, AttentionMatch &match,
                                         unsigned key, int &sum) const {
  SmallVector<int> conditions;
  match.shares = match.weights;
  std::optional<int> score = matchSoftmax(all, match.shares, key, sum);
  while (!score) {
    std::optional<int> inner = findLinear(all, match.shares, conditions);
    if (!inner)
      return std::nullopt;
    match.shares = *inner;
    score = matchSoftmax(all, match.shares, key, sum);
  }
  // A mask of the scores may also select zero where a row has no key, and its softmax is NaN, which
  // the merged sums of several devices do not preserve.
  llvm::SmallDenseSet<int> flags; // looked up only
  for (int node : all.nodesOf(*score))
    if (all[node].type.isInteger(1) && !all[node].operands.empty())
      flags.insert(node);
  for (int condition : conditions)
    if (!all.dependsOn(condition, key) ||
        llvm::any_of(all.nodesOf(condition), [&](int node) { return flags.contains(node); }))
      return std::nullopt;
  for (int node : all.nodesOf(match.weights, match.shares))
    if (node != match.shares && all[node].kind == Kind::reduced)
      return std::nullopt;
  return score;
}

/// Matches a product of values with exponentials whose only user divides it by their sum.
bool Matcher::matchDivision(AttentionMatch &match, unsigned key, int exponential) {
  if (!product->hasOneUse())
    return false;
  auto user = dyn_cast<linalg::LinalgOp>(*product->user_begin());
  if (!user || user->getNumResults() != 1 || user->getBlock() != product->getBlock() ||
      user->getResult(0).getType() != product->getResult(0).getType())
    return false;
  ElementExpressions &all = *match.expressions;
  all.opaque = product->getResult(0);
  int node = all.evaluate(user->getResult(0), match.output);
  if (node == kNone)
    return false;
  node = all.stripConversions(node);
  auto isOutput = [&](int n) {
    n = all.stripConversions(n);
    return all[n].kind == Kind::element && all[n].tensor == all.opaque &&
           all[n].indices == match.output;
  };
  bool divides = all.isOp<arith::DivFOp>(node) && isOutput(all[node].operands[0]) &&
                 isSumOf(all, all[node].operands[1], exponential);
  match.root = user;
  return divides;
}

/// The only node of a score that is the product of query and key.
std::optional<int> Matcher::findProductNode(const ElementExpressions &all, int score) const {
  std::optional<int> found;
  llvm::SmallDenseSet<int> done;
  SmallVector<int> work{score};
  while (!work.empty()) {
    int node = work.pop_back_val();
    if (!done.insert(node).second)
      continue;
    if (all[node].kind == Kind::product) {
      if (found)
        return std::nullopt;
      found = node;
    }
    llvm::append_range(work, all[node].operands);
  }
  return found;
}

static bool readsLoop(const Access &access, unsigned loop) {
  return llvm::any_of(access.indices,
                      [&](AffineExpr index) { return index.isFunctionOfDim(loop); });
}

/// Finds query and key of the product in the scores.
bool Matcher::findOperands(AttentionMatch &match, linalg::LinalgOp root, int node, unsigned key) {
  const ElementExpressions::Node &own = (*match.expressions)[node];
  SmallVector<int64_t> rootRanges = root.getStaticLoopRanges();
  Indices rootAt(rootRanges.size());
  AffineMap result = root.getMatchingIndexingMap(root.getDpsInitOperand(0));
  for (auto [expr, index] : llvm::zip_equal(result.getResults(), own.indices)) {
    if (!isa<AffineDimExpr>(expr))
      return false;
    rootAt[cast<AffineDimExpr>(expr).getPosition()] = index;
  }
  bool hasFeature = false;
  for (auto [expr, range] : llvm::zip_equal(rootAt, rootRanges))
    if (!expr) {
      hasFeature = hasFeature || range > 1;
      expr = range == 1 ? getAffineConstantExpr(0, context) : newLoop(range);
    }
  Access operands[2];
  for (unsigned i = 0; i < 2; ++i) {
    operands[i].tensor = root->getOperand(i);
    for (AffineExpr expr : root.getMatchingIndexingMap(root.getDpsInputOperand(i)).getResults())
      operands[i].indices.push_back(expr.replaceDims(rootAt));
  }
  bool first = readsLoop(operands[0], key), second = readsLoop(operands[1], key);
  if (first == second || !hasFeature)
    return false;
  match.query = operands[first ? 1 : 0];
  match.key = operands[first ? 0 : 1];
  lookThrough(*loops, match.query, wanted);
  lookThrough(*loops, match.key, wanted);
  return !wanted;
}

/// Whether only the attention reads the values computed from the scores.
bool Matcher::isReplacedWhole(const AttentionMatch &match, ElementExpressions &all,
                              linalg::LinalgOp root) {
  llvm::SmallPtrSet<Operation *, 16> own(all.visited().begin(), all.visited().end());
  for (Operation *op : {root.getOperation(), product.getOperation(), match.root})
    own.insert(op);
  for (Operation *op : own)
    if (op != match.root &&
        llvm::any_of(op->getResults(), [&](Value result) { return all.dependsOnRoot(result); }))
      for (Operation *user : op->getUsers())
        if (!own.contains(user))
          return false;
  return true;
}

/// Whether the tensors have the loops of an attention: key and value have the same loops among
/// those that query and output share.
static bool hasRoles(const AttentionMatch &match, unsigned key) {
  auto reads = [](ArrayRef<AffineExpr> indices, unsigned loop) {
    return llvm::any_of(indices, [&](AffineExpr index) { return index.isFunctionOfDim(loop); });
  };
  for (unsigned loop = 0; loop < match.loops->extents.size(); ++loop) {
    bool inQuery = readsLoop(match.query, loop), inKey = readsLoop(match.key, loop);
    bool inValue = readsLoop(match.value, loop), inOutput = reads(match.output, loop);
    if (!inQuery && !inKey && !inValue && !inOutput)
      continue;
    bool fits = loop == key           ? inKey && inValue && !inQuery && !inOutput
                : inOutput && inQuery ? inKey == inValue
                : inOutput            ? inValue && !inKey
                                      : inQuery && inKey && !inValue;
    if (!fits)
      return false;
  }
  return true;
}

std::optional<AttentionMatch> Matcher::matchFrom(linalg::LinalgOp root, unsigned shares,
                                                 unsigned key) {
  AttentionMatch match;
  match.root = product;
  match.expressions = std::make_unique<ElementExpressions>(*loops, root, key);
  ElementExpressions &all = *match.expressions;
  int node =
      all.evaluate(product->getOperand(shares), indicesOf(*product.getDpsInputOperand(shares)));
  if (node == kNone) {
    wanted = all.wantedSplit;
    return std::nullopt;
  }
  int exponential = kNone;
  match.weights = node;
  std::optional<int> score = matchWeights(all, match, key, exponential);
  if (!score)
    return std::nullopt;
  match.score = *score;
  match.isDividedBehind = exponential != kNone;
  match.output = indicesOf(*product.getDpsInitOperand(0));
  if (exponential != kNone && !matchDivision(match, key, exponential))
    return std::nullopt;
  std::optional<int> scores = findProductNode(all, *score);
  size_t before = loops->extents.size();
  match.value = {product->getOperand(1 - shares),
                 indicesOf(*product.getDpsInputOperand(1 - shares))};
  lookThrough(*loops, match.value, wanted);
  match.loops = loops;
  if (!scores || wanted || !findOperands(match, root, *scores, key) || !hasRoles(match, key) ||
      !canBuild(match) || !(mayBeRead || isReplacedWhole(match, all, root))) {
    loops->extents.resize(before);
    return std::nullopt;
  }
  match.keyLoop = key;
  match.scores = root;
  match.product = *scores;
  match.replaced = all.visited();
  for (Operation *op : {root.getOperation(), product.getOperation(), match.root})
    match.replaced.insert(op);
  return match;
}

std::optional<AttentionMatch> dist::matchAttention(linalg::LinalgOp product, bool mayBeRead,
                                                   int64_t leastScoreBytes) {
  return Matcher(product, mayBeRead, leastScoreBytes).run();
}
