//===- Attention.cpp - Verifiers of attention -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyRegion.h"
#include "tessera/Dialect/Ext/IR/AttentionRing.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"
#include "tessera/Dialect/Ext/IR/FusedAttention.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::ext;

SmallVector<int64_t> ext::loopExtents(ArrayRef<AffineMap> maps, TypeRange types) {
  SmallVector<int64_t> extents(maps.front().getNumDims(), -1);
  for (auto [map, type] : llvm::zip_equal(maps, types))
    for (auto [dim, expr] : llvm::enumerate(map.getResults()))
      extents[cast<AffineDimExpr>(expr).getPosition()] =
          cast<RankedTensorType>(type).getDimSize(dim);
  return extents;
}

static AttentionDomain domainOf(ArrayRef<AffineMap> maps, AffineMap output,
                                ArrayRef<int64_t> extents) {
  AttentionDomain domain;
  domain.extents.assign(extents.begin(), extents.end());
  for (unsigned loop = 0; loop < extents.size(); ++loop) {
    bool inQuery = hasLoop(maps[0], loop), inKey = hasLoop(maps[1], loop);
    if (!hasLoop(output, loop)) {
      if (inQuery)
        domain.features.push_back(loop);
      else
        domain.key = loop;
    } else if (!inQuery) {
      domain.outputFeatures.push_back(loop);
    } else if (inKey) {
      domain.batch.push_back(loop);
    } else {
      domain.query.push_back(loop);
    }
  }
  return domain;
}

AttentionParts ext::partsOf(Operation *op) {
  AttentionParts parts{op, {}, {}, {}, 3, {}};
  parts.maps = llvm::to_vector(
      op->getAttrOfType<ArrayAttr>("indexing_maps").getAsValueRange<AffineMapAttr>());
  SmallVector<Type> types = llvm::to_vector(op->getOperandTypes());
  llvm::append_range(types, op->getResultTypes());
  AffineMap rows;
  if (isa<AttentionBackwardOp>(op)) {
    parts.output = parts.maps[3];
    rows = parts.maps[4];
    parts.firstExtra = 6;
  } else {
    parts.output = parts.maps[op->getNumOperands()];
    if (op->getNumResults() > 1)
      rows = parts.maps.back();
  }
  parts.domain = domainOf(parts.maps, parts.output, loopExtents(parts.maps, types));
  if (rows)
    parts.rows = llvm::map_to_vector(
        rows.getResults(), [](AffineExpr expr) { return cast<AffineDimExpr>(expr).getPosition(); });
  else
    for (ArrayRef<unsigned> loops : {ArrayRef(parts.domain.batch), ArrayRef(parts.domain.query)})
      parts.rows.append(loops.begin(), loops.end());
  return parts;
}

/// More features leave too few registers for the sums of a row.
static constexpr int64_t kMostFusedFeatures = 128;

bool ext::isFusedOnGpu(Operation *op) {
  AttentionParts parts = partsOf(op);
  const AttentionDomain &domain = parts.domain;
  if (domain.features.size() != 1 || domain.outputFeatures.size() != 1 ||
      llvm::is_contained(domain.extents, 0) ||
      domain.extents[domain.features[0]] > kMostFusedFeatures ||
      domain.extents[domain.outputFeatures[0]] > kMostFusedFeatures || !parts.scoreType().isF32())
    return false;
  Type element = getElementTypeOrSelf(op->getOperand(0).getType());
  if (!element.isF32() && !element.isF16() && !element.isBF16())
    return false;
  auto endsWith = [&](AffineMap map, unsigned loop) {
    return map.getNumResults() > 0 &&
           map.getResults().back() == getAffineDimExpr(loop, op->getContext());
  };
  unsigned feature = domain.features[0], outputFeature = domain.outputFeatures[0];
  for (unsigned operand = 0; operand < (isa<AttentionBackwardOp>(op) ? 4u : 3u); ++operand)
    if (getElementTypeOrSelf(op->getOperand(operand).getType()) != element ||
        !endsWith(parts.maps[operand], operand < 2 ? feature : outputFeature))
      return false;
  return endsWith(parts.output, outputFeature) && llvm::all_of(op->getResultTypes(), [](Type type) {
           Type each = getElementTypeOrSelf(type);
           return each.isF32() || each.isF16() || each.isBF16();
         });
}

void ext::markFusedAttention(Operation *program) {
  program->walk([](Operation *op) {
    if (isa<AttentionOp, AttentionBackwardOp>(op) && isFusedOnGpu(op))
      op->setAttr(kFusedAttention, UnitAttr::get(op->getContext()));
  });
}

SmallVector<int64_t> AttentionParts::factors() const {
  SmallVector<int64_t> result(domain.extents.size(), -1);
  for (auto [factor, loop] : llvm::enumerate(rows))
    result[loop] = static_cast<int64_t>(factor);
  result[domain.key] = static_cast<int64_t>(rows.size());
  return result;
}

/// The role of a loop, from the tensors that have it; empty if no loop of an attention has this
/// role.
static StringRef roleOf(bool inQuery, bool inKey, bool inValue, bool inOutput) {
  if (inOutput && inQuery)
    return inKey == inValue ? (inKey ? "batch" : "query") : "";
  if (inOutput)
    return inValue && !inKey ? "output feature" : "";
  if (inKey && inValue && !inQuery)
    return "key";
  return inQuery && inKey && !inValue ? "feature" : "";
}

/// Checks (E7): maps match their tensors.
static LogicalResult verifyMaps(Operation *op, ArrayRef<AffineMap> maps) {
  SmallVector<Type> types = llvm::to_vector(op->getOperandTypes());
  llvm::append_range(types, op->getResultTypes());
  if (maps.size() != types.size())
    return op->emitOpError() << "has " << maps.size() << " indexing maps for " << types.size()
                             << " operands and results; give one per operand and result";
  SmallVector<int64_t> extents(maps.front().getNumDims(), -1);
  for (auto [index, map, type] : llvm::enumerate(maps, types)) {
    auto tensor = cast<RankedTensorType>(type);
    bool isOperand = index < op->getNumOperands();
    auto say = [&](InFlightDiagnostic error) -> InFlightDiagnostic {
      error << (isOperand ? "operand " : "result ")
            << (isOperand ? index : index - op->getNumOperands()) << " of " << type << " with map "
            << AffineMapAttr::get(map);
      return error;
    };
    if (!map.isProjectedPermutation() || map.getNumDims() != extents.size() ||
        map.getNumResults() != static_cast<unsigned>(tensor.getRank()))
      return say(op->emitOpError() << "has ") << "; all maps must have the same loops, and select "
                                                 "a different loop for each dimension";
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      int64_t &extent = extents[cast<AffineDimExpr>(expr).getPosition()];
      if (extent >= 0 && extent != tensor.getDimSize(dim))
        return say(op->emitOpError() << "has ")
               << ", where loop d" << cast<AffineDimExpr>(expr).getPosition() << " has extent "
               << tensor.getDimSize(dim) << " and in another map " << extent
               << "; a loop must have one extent";
      extent = tensor.getDimSize(dim);
    }
  }
  return success();
}

/// Checks (E8): the role of each loop. `output` is the map of the forward output, `rows` are maps
/// of tensors with one element per row of scores, and extras are the operands from `firstExtra`.
static LogicalResult verifyRoles(Operation *op, ArrayRef<AffineMap> maps, AffineMap output,
                                 ArrayRef<AffineMap> rows, unsigned firstExtra) {
  int64_t keys = 0;
  for (unsigned loop = 0; loop < output.getNumDims(); ++loop) {
    StringRef role = roleOf(hasLoop(maps[0], loop), hasLoop(maps[1], loop), hasLoop(maps[2], loop),
                            hasLoop(output, loop));
    if (role.empty())
      return op->emitOpError()
             << "has loop d" << loop
             << ", which is not a batch, query, key or feature loop; see the maps that have it";
    keys += role == "key";
    for (unsigned extra = firstExtra; extra < op->getNumOperands(); ++extra)
      if (role.ends_with("feature") && hasLoop(maps[extra], loop))
        return op->emitOpError() << "has extra operand " << extra << " over loop d" << loop
                                 << ", a feature loop; scores have no feature loops";
    for (AffineMap row : rows)
      if (hasLoop(row, loop) != (role == "batch" || role == "query"))
        return op->emitOpError() << "has map " << AffineMapAttr::get(row)
                                 << " of a tensor with one element per row, and loop d" << loop
                                 << ", a " << role
                                 << " loop; such a map must have the batch and query loops only";
  }
  if (keys != 1)
    return op->emitOpError() << "has " << keys << " key loops; expected one";
  return success();
}

/// Checks (E10): a ring has blocks of queries, a balanced one has a causal mask.
static LogicalResult verifyRing(Operation *op) {
  if (!op->hasAttr("ring")) {
    if (op->hasAttr("balanced"))
      return op->emitOpError() << "has 'balanced' without 'ring'; add 'ring'";
    return success();
  }
  AttentionDomain domain = partsOf(op).domain;
  if (llvm::all_of(domain.query, [&](unsigned loop) { return domain.extents[loop] <= 1; }))
    return op->emitOpError() << "has 'ring' and a single query; a ring cuts queries along with the "
                                "keys, remove 'ring'";
  return success();
}

static LogicalResult verifyAttention(Operation *op) {
  SmallVector<AffineMap> maps = llvm::to_vector(
      op->getAttrOfType<ArrayAttr>("indexing_maps").getAsValueRange<AffineMapAttr>());
  for (Type type : op->getOperands().take_front(3).getTypes())
    if (!isa<FloatType>(getElementTypeOrSelf(type)))
      return op->emitOpError() << "has an operand of " << type
                               << "; query, key and value must be tensors of floats";
  if (failed(verifyMaps(op, maps)))
    return failure();
  if (isa<AttentionBackwardOp>(op)) {
    for (unsigned i = 0; i < 3; ++i)
      if (maps[op->getNumOperands() + i] != maps[i])
        return op->emitOpError() << "has result " << i << " with a different map than operand " << i
                                 << "; a gradient must have the map of its operand";
    if (failed(verifyRoles(op, maps, maps[3], {maps[4], maps[5]}, 6)))
      return failure();
    return verifyRing(op);
  }
  ArrayRef<AffineMap> rows = ArrayRef(maps).drop_front(op->getNumOperands() + 1);
  if (failed(verifyRoles(op, maps, maps[op->getNumOperands()], rows, 3)))
    return failure();
  return verifyRing(op);
}

/// Checks (E9): a region over the product, elements of the extras, indices, and `more` floats.
static LogicalResult verifyScores(Operation *op, Region &region, unsigned more) {
  AttentionParts parts = partsOf(op);
  Block &body = region.front();
  unsigned loops = parts.domain.extents.size(), extras = parts.numExtras();
  auto isFloat = [](Type type) { return isa<FloatType>(type); };
  bool fits =
      body.getNumArguments() == 1 + extras + loops + more && isFloat(body.getArgument(0).getType());
  for (unsigned i = 0; fits && i < extras; ++i)
    fits = body.getArgument(1 + i).getType() ==
           getElementTypeOrSelf(op->getOperand(parts.firstExtra + i).getType());
  for (unsigned i = 0; fits && i < loops; ++i)
    fits = body.getArgument(1 + extras + i).getType().isIndex();
  for (unsigned i = 0; fits && i < more; ++i)
    fits = isFloat(body.getArgument(1 + extras + loops + i).getType());
  if (!fits)
    return op->emitOpError() << "has a region over (" << body.getArgumentTypes()
                             << "); expected a float, an element of each extra operand, " << loops
                             << " indices"
                             << (more ? " and the derivative with respect to the score" : "");
  if (failed(verifyScalarRegion(op, region)))
    return failure();
  for (ArrayRef<unsigned> features :
       {ArrayRef(parts.domain.features), ArrayRef(parts.domain.outputFeatures)})
    for (unsigned loop : features)
      if (!body.getArgument(1 + extras + loop).use_empty())
        return op->emitOpError() << "reads the index of loop d" << loop
                                 << ", a feature loop; scores have no feature loops";
  TypeRange yielded = body.getTerminator()->getOperandTypes();
  if (yielded.size() != 1 || !isFloat(yielded.front()))
    return body.getTerminator()->emitOpError()
           << "yields (" << yielded << ") in '" << op->getName() << "'; expected one float";
  return success();
}

/// Checks (E11): a balanced ring has a causal mask.
static LogicalResult verifyBalance(Operation *op) {
  if (!op->hasAttr("balanced"))
    return success();
  AttentionParts parts = partsOf(op);
  std::optional<unsigned> query = ringQueryOf(parts);
  if (query && mayBeBalanced(parts, *query))
    return success();
  return op->emitOpError() << "has 'balanced' without a causal mask over as many queries as keys, "
                              "which a balanced ring requires; remove 'balanced'";
}

bool ext::isLinearIn(Value value, Value share) {
  // An op may be reached on several paths.
  llvm::DenseMap<Value, bool> dependent, known; // looked up only
  std::function<bool(Value)> depends = [&](Value x) {
    auto [it, isNew] = dependent.try_emplace(x, x == share);
    Operation *op = x.getDefiningOp();
    if (!isNew || x == share || !op)
      return it->second;
    bool result = llvm::any_of(op->getOperands(), [&](Value operand) { return depends(operand); });
    return dependent[x] = result;
  };
  std::function<bool(Value)> isLinear = [&](Value x) {
    if (x == share)
      return true;
    if (auto it = known.find(x); it != known.end())
      return it->second;
    auto compute = [&]() {
      Operation *op = x.getDefiningOp();
      if (!op || !depends(x))
        return false;
      auto operand = [&](unsigned i) { return isLinear(op->getOperand(i)); };
      if (isa<arith::MulFOp>(op))
        return (operand(0) && !depends(op->getOperand(1))) ||
               (operand(1) && !depends(op->getOperand(0)));
      if (isa<arith::DivFOp>(op))
        return operand(0) && !depends(op->getOperand(1));
      if (isa<arith::AddFOp, arith::SubFOp>(op))
        return operand(0) && operand(1);
      if (isa<arith::NegFOp, arith::ExtFOp, arith::TruncFOp>(op))
        return operand(0);
      auto select = dyn_cast<arith::SelectOp>(op);
      return select && !depends(select.getCondition()) &&
             llvm::all_of(ValueRange{select.getTrueValue(), select.getFalseValue()},
                          [&](Value choice) {
                            return matchPattern(choice, m_AnyZeroFloat()) || isLinear(choice);
                          });
    };
    return known[x] = compute();
  };
  return isLinear(value);
}

/// Checks (E12): the region of weights, if any.
static LogicalResult verifyWeights(Operation *op) {
  Region *weights = partsOf(op).weights();
  if (!weights)
    return success();
  if (failed(verifyScores(op, *weights, 0)))
    return failure();
  Block &body = weights->front();
  if (isLinearIn(body.getTerminator()->getOperand(0), body.getArgument(0)))
    return success();
  return body.getTerminator()->emitOpError()
         << "yields a weight that is not linear in the share of the softmax; multiply or divide "
            "the share by other values, or select between it and zero";
}

LogicalResult AttentionOp::verify() {
  return verifyAttention(*this);
}

LogicalResult AttentionOp::verifyRegions() {
  if (failed(verifyScores(*this, getScore(), 0)) || failed(verifyWeights(*this)))
    return failure();
  return verifyBalance(*this);
}

LogicalResult AttentionBackwardOp::verify() {
  return verifyAttention(*this);
}

LogicalResult AttentionBackwardOp::verifyRegions() {
  if (failed(verifyScores(*this, getScore(), 0)))
    return failure();
  if (failed(verifyScores(*this, getDerivative(), 1)) || failed(verifyWeights(*this)))
    return failure();
  return verifyBalance(*this);
}
