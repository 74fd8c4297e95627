//===- AttentionRules.cpp - Distribution of attentions --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionPart.h"
#include "AttentionWriter.h"
#include "RingWriter.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Dist/Rules/RuleBuilder.h"
#include "tessera/Dialect/Ext/IR/AttentionBand.h"
#include "tessera/Dialect/Ext/IR/FusedAttention.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::ext;
using sharding::FactorKind;
using sharding::ReduceKind;
using sharding::TensorSharding;

/// Rows and keys are factors. In the forward op rows are parallel; in the backward op a gradient
/// that lacks one of its loops is a sum over it.
///
/// With a band of keys the factor of the query position also shards the keys: a block of queries
/// reads a window of key, value and extras. The gradients by key and value are then sharded like
/// the gradient by query, and the contributions of other devices to them are exchanged inside.
static sharding::ShardingRule ruleOf(Operation *op) {
  AttentionParts parts = partsOf(op);
  SmallVector<int64_t> factors = parts.factors();
  const AttentionDomain &domain = parts.domain;
  std::optional<KeyBand> band = keyBandOf(parts);
  std::optional<unsigned> leading = band ? band->query : ringQueryOf(parts);
  dist::RuleBuilder builder(op);
  bool isBackward = isa<AttentionBackwardOp>(op);
  for (unsigned loop : parts.rows) {
    bool isSummed = isBackward && llvm::is_contained(domain.query, loop) && leading != loop;
    builder.factor(domain.extents[loop], isSummed ? FactorKind::reduction : FactorKind::parallel);
  }
  builder.factor(domain.extents[domain.key],
                 leading ? FactorKind::replicate : FactorKind::reduction);
  for (auto [index, map] : llvm::enumerate(parts.maps))
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      unsigned loop = cast<AffineDimExpr>(expr).getPosition();
      if (factors[loop] < 0)
        continue;
      bool isOperand = index < op->getNumOperands();
      bool isExtra = isOperand && index >= parts.firstExtra;
      bool follows = leading && loop == domain.key && (band || !isExtra);
      int64_t factor = factors[follows ? *leading : loop];
      if (band && isOperand && loop == domain.key)
        builder.window(index, dim, factor, 1, band->first, band->size());
      else if (isOperand)
        builder.operand(index, dim, factor);
      else
        builder.result(index - op->getNumOperands(), dim, factor);
    }
  return builder.take();
}

/// Adds the inputs of the rule, apart from types.
static bool addToKey(Operation *op, AddressKey &key) {
  key.push_back(op->getAttr("indexing_maps").getAsOpaquePointer());
  key.push_back(op->getAttr("ring").getAsOpaquePointer());
  if (std::optional<KeyBand> band = keyBandOf(partsOf(op)))
    key.push_back(Builder(op->getContext())
                      .getDenseI64ArrayAttr({band->query, band->first, band->last})
                      .getAsOpaquePointer());
  return true;
}

/// The part of all pairs of query and key that the mask leaves.
static double visibleShare(const AttentionParts &parts) {
  const AttentionDomain &domain = parts.domain;
  auto longest = llvm::max_element(
      domain.query, [&](unsigned a, unsigned b) { return domain.extents[a] < domain.extents[b]; });
  std::optional<KeyBand> band =
      longest == domain.query.end() ? std::nullopt : visibleKeysOf(parts, *longest);
  if (!band)
    return 1;
  int64_t queries = domain.extents[band->query], keys = domain.extents[domain.key];
  constexpr int64_t kSamples = 1024;
  double seen = 0;
  for (int64_t i = 0; i < kSamples; ++i) {
    int64_t query = i * queries / kSamples;
    int64_t first = std::max<int64_t>(0, query + band->first);
    int64_t last = std::min(keys - 1, query + band->last);
    seen += static_cast<double>(std::max<int64_t>(0, last - first + 1));
  }
  return seen / static_cast<double>(kSamples * keys);
}

/// The work of one score, on average.
static int64_t operationsOf(Operation *op, int64_t products, int64_t elementwise) {
  AttentionParts parts = partsOf(op);
  const AttentionDomain &domain = parts.domain;
  for (Region &region : op->getRegions())
    if (!region.empty())
      elementwise += static_cast<int64_t>(region.front().getOperations().size()) - 1;
  int64_t all = products * (domain.sizeOf(domain.features) + domain.sizeOf(domain.outputFeatures)) +
                elementwise;
  return std::max<int64_t>(1, std::llround(visibleShare(parts) * static_cast<double>(all)));
}

/// Factors as alternatives to a sequence, such as heads: resharding to them before the op, and back
/// after it, moves one part per device each time.
static SmallVector<int64_t> batchFactors(Operation *op) {
  AttentionParts parts = partsOf(op);
  SmallVector<int64_t> factors = parts.factors();
  return llvm::map_to_vector(parts.domain.batch, [&](unsigned loop) { return factors[loop]; });
}

/// Whether no region reads the index of a factor's loop.
static bool readsNoIndex(Operation *op, int64_t factor) {
  AttentionParts parts = partsOf(op);
  SmallVector<int64_t> factors = parts.factors();
  auto isUnread = [&](Region &region, size_t loop) { // the indices follow product and extras
    return region.empty() || region.getArgument(1 + parts.numExtras() + loop).use_empty();
  };
  for (auto [loop, each] : llvm::enumerate(factors))
    for (Region &region : op->getRegions())
      if (each == factor && !isUnread(region, loop))
        return false;
  return true;
}

std::optional<sharding::ShardingRule> AttentionOp::getShardingRule() {
  sharding::ShardingRule rule = ruleOf(*this);
  if (getLogsumexp())
    rule.completes = {false, true};
  return rule;
}

bool AttentionOp::addToRuleKey(AddressKey &key) {
  return addToKey(*this, key);
}

int64_t AttentionOp::getOperationsPerIteration() {
  return operationsOf(*this, 2, 4); // maximum, difference, exponential, sum
}

Type AttentionOp::getArithmeticType() {
  return getElementTypeOrSelf(getOperand(0));
}

bool AttentionOp::isEquivariant(int64_t factor) {
  return !getRing() && readsNoIndex(*this, factor);
}

SmallVector<int64_t> AttentionOp::getAlternatives() {
  return batchFactors(*this);
}

std::optional<sharding::ShardingRule> AttentionBackwardOp::getShardingRule() {
  return ruleOf(*this);
}

bool AttentionBackwardOp::addToRuleKey(AddressKey &key) {
  return addToKey(*this, key);
}

int64_t AttentionBackwardOp::getOperationsPerIteration() {
  return operationsOf(*this, 5, 4);
}

Type AttentionBackwardOp::getArithmeticType() {
  return getElementTypeOrSelf(getOperand(0));
}

bool AttentionBackwardOp::isEquivariant(int64_t factor) {
  return !getRing() && readsNoIndex(*this, factor);
}

SmallVector<int64_t> AttentionBackwardOp::getAlternatives() {
  return batchFactors(*this);
}

namespace {

/// Completes an attention with sharded keys: scales the result of each device by the largest score
/// and the sum over all devices.
class KeyCombiner {
public:
  KeyCombiner(AttentionOp op, dist::PartitionContext &context)
      : op(op), context(context), b(context.builder), loc(op.getLoc()), parts(partsOf(op)) {}

  SmallVector<Value> combine(Value output, Value largest, Value sum) {
    Value top = combined(largest, ReduceKind::max);
    Value own = onRows({largest, top}, [](OpBuilder &b, Location loc, ValueRange in) -> Value {
      return math::ExpOp::create(b, loc, arith::SubFOp::create(b, loc, in[0], in[1]));
    });
    Value weighted = onRows({sum, own}, [](OpBuilder &b, Location loc, ValueRange in) -> Value {
      return arith::MulFOp::create(b, loc, in[0], in[1]);
    });
    Value total = combined(weighted, ReduceKind::sum);
    Value share = onRows({own, total}, [](OpBuilder &b, Location loc, ValueRange in) -> Value {
      return arith::DivFOp::create(b, loc, in[0], in[1]);
    });
    SmallVector<Value> results{scale(output, share)};
    if (op.getLogsumexp())
      results.push_back(
          onRows({top, total}, [](OpBuilder &b, Location loc, ValueRange in) -> Value {
            return arith::AddFOp::create(b, loc, in[0], math::LogOp::create(b, loc, in[1]));
          }));
    return results;
  }

private:
  Value combined(Value local, ReduceKind kind) {
    auto numRows = static_cast<int64_t>(parts.rows.size());
    return context.getCombined(local, llvm::to_vector(llvm::seq<int64_t>(0, numRows)), numRows,
                               kind);
  }

  Value onRows(ValueRange inputs,
               llvm::function_ref<Value(OpBuilder &, Location, ValueRange)> body) {
    auto type = cast<RankedTensorType>(inputs.front().getType());
    SmallVector<AffineMap> maps(inputs.size() + 1, b.getMultiDimIdentityMap(type.getRank()));
    return generic(inputs, maps, type, body);
  }

  /// The output with each row multiplied by a share, in the element type of the op.
  Value scale(Value output, Value share) {
    auto type = cast<RankedTensorType>(output.getType());
    RankedTensorType wanted = context.getLocalType(0);
    SmallVector<AffineExpr> row;
    for (unsigned loop : parts.rows)
      row.push_back(b.getAffineDimExpr(*parts.output.getResultPosition(b.getAffineDimExpr(loop))));
    AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
    Type element = wanted.getElementType();
    return generic({output, share},
                   {identity, AffineMap::get(type.getRank(), 0, row, b.getContext()), identity},
                   wanted, [&](OpBuilder &b, Location loc, ValueRange in) -> Value {
                     Value scaled = arith::MulFOp::create(b, loc, in[0], in[1]);
                     return convertFloat(b, loc, scaled, element);
                   });
  }

  Value generic(ValueRange inputs, ArrayRef<AffineMap> maps, RankedTensorType type,
                llvm::function_ref<Value(OpBuilder &, Location, ValueRange)> body) {
    SmallVector<utils::IteratorType> parallel(type.getRank(), utils::IteratorType::parallel);
    Value init = tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
    return linalg::GenericOp::create(b, loc, type, inputs, init, maps, parallel,
                                     [&](OpBuilder &inner, Location loc, ValueRange in) {
                                       linalg::YieldOp::create(inner, loc, body(inner, loc, in));
                                     })
        .getResult(0);
  }

  AttentionOp op;
  dist::PartitionContext &context;
  OpBuilder &b;
  Location loc;
  AttentionParts parts;
};

} // namespace

namespace {

/// The contribution of a device, from a window around its own part, to the gradient of keys in the
/// parts of others. A piece of it is sent to the device that is `distance` parts away.
struct WindowPiece {
  int64_t distance;
  int64_t from, to, count; ///< begin in the window; begin in the part of its owner; elements
};

} // namespace

static SmallVector<WindowPiece> piecesOf(const KeyBand &band, int64_t part, int64_t devices) {
  SmallVector<WindowPiece> pieces;
  int64_t first = std::max(-devices + 1, llvm::divideFloorSigned(band.first, part));
  int64_t last = std::min(devices - 1, llvm::divideFloorSigned(part - 1 + band.last, part));
  for (int64_t distance = first; distance <= last; ++distance) {
    int64_t begin = std::max(distance * part, band.first);
    int64_t end = std::min(distance * part + part, part + band.last);
    if (distance != 0)
      pieces.push_back({distance, begin - band.first, begin - distance * part, end - begin});
  }
  return pieces;
}

namespace {

/// The move of a piece of a gradient.
struct PieceMove {
  std::vector<int64_t> shape; ///< of the pieces of all devices, concatenated
  TensorSharding source, target;

  /// `sharding` and `global` are those of the gradient, whose key position is dimension `dim`.
  PieceMove(const WindowPiece &piece, unsigned dim, const TensorSharding &sharding,
            ArrayRef<int64_t> global)
      : shape(global.vec()), source(sharding), target(sharding) {
    shape[dim] = piece.count * sharding::sizeOf(sharding.dims[dim]);
    target.windows.push_back({dim, piece.count, -piece.distance * piece.count, piece.count});
  }
};

} // namespace

/// The dimension of the key position in a gradient by key or value.
static unsigned keyDimOf(const AttentionParts &parts, unsigned result) {
  return dimOf(parts.maps[result], parts.domain.key);
}

/// The part of a device of a gradient by keys: the sum of the windows of all devices over it.
static Value addPieces(dist::PartitionContext &context, const Part &part, unsigned result,
                       Value window) {
  OpBuilder &b = context.builder;
  Local write{b, context.op->getLoc()};
  unsigned dim = keyDimOf(part.parts, result);
  auto global = cast<RankedTensorType>(context.op->getResult(result).getType());
  TensorSharding sharding = context.getResultSharding(result);
  int64_t extent = context.getLocalType(result).getDimSize(dim);
  int64_t devices = sharding::sizeOf(sharding.dims[dim]);
  Value device = context.getDeviceIndex(sharding.dims[dim]);
  Value sum = write.slice(window, dim, b.getIndexAttr(-part.band->first), extent);
  for (const WindowPiece &piece : piecesOf(*part.band, extent, devices)) {
    PieceMove move(piece, dim, sharding, global.getShape());
    Value received = context.reshard(
        write.slice(window, dim, b.getIndexAttr(piece.from), piece.count),
        RankedTensorType::get(move.shape, global.getElementType()), move.source, move.target);
    Value sender = arith::SubIOp::create(b, write.loc, device, write.index(piece.distance));
    Value isThere = arith::CmpIOp::create(b, write.loc, arith::CmpIPredicate::ult, sender,
                                          write.index(devices));
    Value own = write.slice(sum, dim, b.getIndexAttr(piece.to), piece.count);
    auto type = cast<RankedTensorType>(own.getType());
    AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
    Value added =
        write.pointwise({own, received}, {identity, identity}, type.getShape(),
                        {type.getElementType()}, [&](OpBuilder &inner, ValueRange in) {
                          Value both = arith::AddFOp::create(inner, write.loc, in[0], in[1]);
                          return SmallVector<Value>{
                              arith::SelectOp::create(inner, write.loc, isThere, both, in[0])};
                        })[0];
    SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
    offsets[dim] = b.getIndexAttr(piece.to);
    sum = tensor::InsertSliceOp::create(b, write.loc, added, sum, offsets,
                                        getAsIndexOpFoldResult(b.getContext(), type.getShape()),
                                        strides);
  }
  return sum;
}

double AttentionBackwardOp::getCommunicationSeconds(const sharding::FactorAxes &axes,
                                                    const sharding::Mesh &mesh,
                                                    sharding::ReshardPlanner &planner) {
  AttentionParts parts = partsOf(*this);
  std::optional<KeyBand> band = keyBandOf(parts);
  if (!band)
    return costOfRing(*this, ruleOf(*this), axes, mesh, planner, getBalanced()).seconds;
  if (axes[parts.factors()[band->query]].empty())
    return 0;
  sharding::ShardingRule rule = ruleOf(*this);
  double seconds = 0;
  for (unsigned result : {1, 2}) {
    auto global = cast<RankedTensorType>(getResult(result).getType());
    unsigned dim = keyDimOf(parts, result);
    TensorSharding sharding = sharding::resultSharding(rule, result, axes);
    int64_t devices = sharding::sizeOf(sharding.dims[dim]);
    for (const WindowPiece &piece :
         piecesOf(*band, sharding::ceilDiv(global.getDimSize(dim), devices), devices)) {
      PieceMove move(piece, dim, sharding, global.getShape());
      seconds += planner
                     .plan({mesh, move.shape, dist::bytesPerElement(global.getElementType()),
                            sharding::canonical(move.source), sharding::canonical(move.target)})
                     .seconds;
    }
  }
  return seconds;
}

/// With sharded keys, the largest score and the sum of each row are reduced inside; a ring moves
/// blocks of keys.
double AttentionOp::getCommunicationSeconds(const sharding::FactorAxes &axes,
                                            const sharding::Mesh &mesh,
                                            sharding::ReshardPlanner &planner) {
  AttentionParts parts = partsOf(*this);
  SmallVector<int64_t> factors = parts.factors();
  const sharding::AxisList &cut = axes[factors[parts.domain.key]];
  std::vector<int64_t> shape;
  TensorSharding whole = TensorSharding::replicated(parts.rows.size());
  for (auto [dim, loop] : llvm::enumerate(parts.rows)) {
    shape.push_back(parts.domain.extents[loop]);
    whole.dims[dim] = axes[factors[loop]];
  }
  double seconds = costOfRing(*this, ruleOf(*this), axes, mesh, planner, getBalanced()).seconds;
  if (!cut.empty())
    for (ReduceKind kind : {ReduceKind::max, ReduceKind::sum}) {
      TensorSharding contributed = whole;
      for (const sharding::AxisRef &axis : cut)
        contributed.partial.push_back({axis, kind});
      seconds += planner
                     .plan({mesh, shape, dist::bytesPerElement(parts.scoreType()),
                            sharding::canonical(contributed), sharding::canonical(whole)})
                     .seconds;
    }
  return seconds;
}

/// Adds the begins of loops to their indices in the regions of an attention, as extra operands.
static void addToIndices(OpBuilder &b, Operation *op, ArrayRef<std::pair<unsigned, Value>> begins) {
  AttentionParts parts = partsOf(op);
  unsigned numOperands = op->getNumOperands(), firstIndex = 1 + parts.numExtras();
  AffineMap none = AffineMap::get(parts.domain.extents.size(), 0, b.getContext());
  SmallVector<AffineMap> maps = parts.maps;
  maps.insert(maps.begin() + numOperands, begins.size(), none);
  op->setAttr("indexing_maps", b.getAffineMapArrayAttr(maps));
  SmallVector<Value> operands;
  for (auto [loop, begin] : begins) {
    Value number = arith::IndexCastOp::create(b, op->getLoc(), b.getI64Type(), begin);
    operands.push_back(tensor::FromElementsOp::create(
        b, op->getLoc(), RankedTensorType::get({}, b.getI64Type()), number));
  }
  op->insertOperands(numOperands, operands);
  for (Region &region : op->getRegions()) {
    if (region.empty())
      continue;
    Block &block = region.front();
    for (size_t i = 0; i < begins.size(); ++i)
      block.insertArgument(firstIndex + i, b.getI64Type(), op->getLoc());
    OpBuilder body = OpBuilder::atBlockBegin(&block);
    for (auto [i, begin] : llvm::enumerate(begins)) {
      Value index = block.getArgument(firstIndex + begins.size() + begin.first);
      if (index.use_empty())
        continue;
      Value number = arith::IndexCastOp::create(body, op->getLoc(), body.getIndexType(),
                                                block.getArgument(firstIndex + i));
      auto sum = arith::AddIOp::create(body, op->getLoc(), index, number);
      index.replaceAllUsesExcept(sum, sum);
    }
  }
}

/// The part of an attention on a device as one op for a GPU; nothing if the part has no such form.
static std::optional<SmallVector<Value>> wholePart(Part &part, dist::PartitionContext &context) {
  Operation *op = context.op;
  OpBuilder &b = context.builder;
  if (!op->hasAttr(kFusedAttention) || !part.limits.empty() || part.band)
    return std::nullopt;
  const AttentionDomain &domain = part.parts.domain;
  unsigned firstIndex = 1 + part.parts.numExtras();
  Value probe = arith::ConstantIndexOp::create(b, op->getLoc(), 0);
  SmallVector<std::pair<unsigned, Value>> begins;
  for (unsigned loop = 0; loop < domain.extents.size(); ++loop) {
    bool isRead = llvm::any_of(op->getRegions(), [&](Region &region) {
      return !region.empty() && !region.getArgument(firstIndex + loop).use_empty();
    });
    Value begin = isRead ? part.globalIndex(b, op->getLoc(), loop, probe) : probe;
    if (begin != probe)
      begins.push_back({loop, begin});
  }
  Operation *local = context.clone();
  local->setOperands(part.operands);
  if (isFusedOnGpu(local)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(local);
    addToIndices(b, local, begins);
    return llvm::to_vector(ValueRange(local->getResults()));
  }
  local->erase();
  return std::nullopt;
}

FailureOr<SmallVector<Value>> AttentionOp::partition(dist::PartitionContext &context) {
  Part part(context);
  if (part.ring)
    return getBalanced() ? writeBalancedRing(part, *this) : writeRing(part, *this);
  unsigned key = part.parts.domain.key;
  bool isKeyCut = !context.getFactorAxes()[part.parts.factors()[key]].empty();
  if (!isKeyCut)
    if (std::optional<SmallVector<Value>> whole = wholePart(part, context))
      return *whole;
  RowResults wanted = isKeyCut         ? RowResults::accumulators
                      : getLogsumexp() ? RowResults::logsumexp
                                       : RowResults::output;
  SmallVector<Value> results =
      writeAttention(context.builder, *this, part.operands, wanted, part.limits, part.indices());
  if (isKeyCut)
    results = KeyCombiner(*this, context).combine(results[0], results[1], results[2]);
  return results;
}

FailureOr<SmallVector<Value>> AttentionBackwardOp::partition(dist::PartitionContext &context) {
  Part part(context);
  if (part.ring)
    return getBalanced() ? writeBalancedRing(part, *this) : writeRing(part, *this);
  if (std::optional<SmallVector<Value>> whole = wholePart(part, context))
    return *whole;
  SmallVector<Value> results =
      writeAttentionBackward(context.builder, *this, part.operands, part.limits, part.indices());
  if (part.band)
    for (unsigned result : {1, 2})
      results[result] = addPieces(context, part, result, results[result]);
  return results;
}
