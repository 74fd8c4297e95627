//===- SplitChunks.cpp - Attention within chunks of a sequence ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a mask lets a query see only keys of its own chunk of c positions, the chunks
// are batches: position i of a sequence of N c becomes chunk i / c and position i mod c.
// A query then has c scores instead of N c, and devices that cut the sequence between
// chunks exchange nothing.
//
//===----------------------------------------------------------------------===//

#include "MatchAttention.h"
#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Ext/IR/AttentionBand.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// A region of an attention whose positions of query and key have one extent.
class ChunkReader {
public:
  ChunkReader(const ext::AttentionParts &parts, unsigned query, Region &region)
      : block(region.front()), firstIndex(1 + parts.numExtras()), query(query),
        key(parts.domain.key) {}

  /// The chunk outside of which scores are masked, as far as known: the smallest one.
  std::optional<int64_t> chunkOf(Value score);
  /// Whether an op compares the chunks of query and key for equality, and the chunk.
  std::optional<int64_t> comparedChunk(Operation *op) const;

private:
  std::optional<int64_t> chunkWhere(Value condition, bool holds);
  /// The extent of chunks of an index of `loop` that a value numbers.
  std::optional<int64_t> numbersChunks(Value value, unsigned loop) const;
  static bool isMasked(Value score);

  Block &block;
  unsigned firstIndex, query, key;
};

std::optional<int64_t> smallerOf(std::optional<int64_t> a, std::optional<int64_t> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

} // namespace

static Value withoutCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

std::optional<int64_t> ChunkReader::numbersChunks(Value value, unsigned loop) const {
  Operation *op = withoutCasts(value).getDefiningOp();
  llvm::APInt divisor;
  // Indices are not negative.
  if (!isa_and_nonnull<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp>(op) ||
      !matchPattern(op->getOperand(1), m_ConstantInt(&divisor)) || !divisor.isStrictlyPositive())
    return std::nullopt;
  auto index = dyn_cast<BlockArgument>(withoutCasts(op->getOperand(0)));
  if (!index || index.getOwner() != &block || index.getArgNumber() != firstIndex + loop)
    return std::nullopt;
  return divisor.getSExtValue();
}

std::optional<int64_t> ChunkReader::comparedChunk(Operation *op) const {
  auto compare = dyn_cast_or_null<arith::CmpIOp>(op);
  if (!compare || (compare.getPredicate() != arith::CmpIPredicate::eq &&
                   compare.getPredicate() != arith::CmpIPredicate::ne))
    return std::nullopt;
  for (auto [a, b] : {std::pair(compare.getLhs(), compare.getRhs()),
                      std::pair(compare.getRhs(), compare.getLhs())}) {
    std::optional<int64_t> ofQuery = numbersChunks(a, query), ofKey = numbersChunks(b, key);
    if (ofQuery && ofQuery == ofKey)
      return ofQuery;
  }
  return std::nullopt;
}

/// The chunk of both positions where a condition holds, or fails.
std::optional<int64_t> ChunkReader::chunkWhere(Value condition, bool holds) {
  Operation *op = condition.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (std::optional<int64_t> chunk = comparedChunk(op)) {
    bool isEqual = cast<arith::CmpIOp>(op).getPredicate() == arith::CmpIPredicate::eq;
    return isEqual == holds ? chunk : std::nullopt;
  }
  if (holds ? isa<arith::AndIOp>(op) : isa<arith::OrIOp>(op))
    return smallerOf(chunkWhere(op->getOperand(0), holds), chunkWhere(op->getOperand(1), holds));
  if (isa<arith::XOrIOp>(op) && matchPattern(op->getOperand(1), m_One()))
    return chunkWhere(op->getOperand(0), !holds);
  return std::nullopt;
}

bool ChunkReader::isMasked(Value score) {
  constexpr double kMasked = -6e4; // as for windows (AttentionBand.cpp)
  llvm::APFloat constant(0.0);
  return matchPattern(score, m_ConstantFloat(&constant)) && constant.convertToDouble() <= kMasked;
}

std::optional<int64_t> ChunkReader::chunkOf(Value score) {
  Operation *op = score.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    bool yes = isMasked(select.getTrueValue()), no = isMasked(select.getFalseValue());
    if (yes == no)
      return std::nullopt;
    return smallerOf(chunkWhere(select.getCondition(), no),
                     chunkOf(no ? select.getTrueValue() : select.getFalseValue()));
  }
  if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    return chunkOf(op->getOperand(0));
  if (isa<arith::AddFOp>(op)) // of a mask
    return smallerOf(chunkOf(op->getOperand(0)), chunkOf(op->getOperand(1)));
  return std::nullopt;
}

namespace {

class ChunkSplitter {
public:
  ChunkSplitter(Operation *op, unsigned query, int64_t chunk)
      : op(op), b(op), loc(op->getLoc()), parts(ext::partsOf(op)), query(query),
        key(parts.domain.key), chunk(chunk), number(parts.domain.extents.size()) {}

  void run() {
    SmallVector<Value> operands;
    for (auto [operand, map] : llvm::zip(op->getOperands(), parts.maps))
      operands.push_back(expand(operand, map));
    SmallVector<Type> types;
    unsigned numOperands = op->getNumOperands();
    for (auto [result, map] :
         llvm::zip_equal(op->getResults(), ArrayRef(parts.maps).drop_front(numOperands)))
      types.push_back(expandedType(result.getType(), map));
    OperationState state(loc, op->getName(), operands, types, op->getAttrs());
    SmallVector<AffineMap> maps =
        llvm::map_to_vector(parts.maps, [&](AffineMap map) { return expandedMap(map); });
    state.attributes.set("indexing_maps", b.getAffineMapArrayAttr(maps));
    for (Region &region : op->getRegions())
      splitRegion(region, *state.addRegion());
    Operation *made = b.create(state);
    for (auto [old, result, map] : llvm::zip_equal(op->getResults(), made->getResults(),
                                                   ArrayRef(parts.maps).drop_front(numOperands))) {
      Value collapsed = tensor::CollapseShapeOp::create(b, loc, old.getType(), result, groups(map));
      old.replaceAllUsesWith(collapsed);
    }
    op->erase();
  }

private:
  bool isSplit(AffineExpr expr) const {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    return loop == query || loop == key;
  }
  AffineMap expandedMap(AffineMap map) const {
    SmallVector<AffineExpr> exprs;
    for (AffineExpr expr : map.getResults()) {
      if (isSplit(expr))
        exprs.push_back(getAffineDimExpr(number, b.getContext()));
      exprs.push_back(expr);
    }
    return AffineMap::get(number + 1, 0, exprs, b.getContext());
  }
  SmallVector<ReassociationIndices> groups(AffineMap map) const {
    SmallVector<ReassociationIndices> result;
    int64_t next = 0;
    for (AffineExpr expr : map.getResults()) {
      result.push_back({next++});
      if (isSplit(expr))
        result.back().push_back(next++);
    }
    return result;
  }
  RankedTensorType expandedType(Type type, AffineMap map) const {
    auto tensor = cast<RankedTensorType>(type);
    SmallVector<int64_t> shape;
    for (auto [extent, expr] : llvm::zip_equal(tensor.getShape(), map.getResults())) {
      if (isSplit(expr))
        shape.push_back(extent / chunk);
      shape.push_back(isSplit(expr) ? chunk : extent);
    }
    return tensor.clone(shape);
  }
  Value expand(Value operand, AffineMap map) {
    RankedTensorType type = expandedType(operand.getType(), map);
    if (type == operand.getType())
      return operand;
    return tensor::ExpandShapeOp::create(b, loc, type, operand, groups(map));
  }

  /// A region over positions in chunks; chunks of query and key are equal.
  void splitRegion(Region &from, Region &to) {
    if (from.empty())
      return;
    ChunkReader reader(parts, query, from);
    Block &block = from.front(), &made = to.emplaceBlock();
    unsigned firstIndex = 1 + parts.numExtras();
    for (BlockArgument argument : block.getArguments()) {
      if (argument.getArgNumber() == firstIndex + number)
        made.addArgument(b.getIndexType(), loc); // before the derivative by the score
      made.addArgument(argument.getType(), argument.getLoc());
    }
    if (block.getNumArguments() == firstIndex + number)
      made.addArgument(b.getIndexType(), loc);
    OpBuilder body(op->getContext()); // the region has no parent op yet
    body.setInsertionPointToEnd(&made);
    IRMapping mapping;
    for (BlockArgument argument : block.getArguments()) {
      unsigned at = argument.getArgNumber();
      mapping.map(argument, made.getArgument(at < firstIndex + number ? at : at + 1));
    }
    for (unsigned loop : {query, key}) {
      BlockArgument index = block.getArgument(firstIndex + loop);
      if (index.use_empty())
        continue;
      Value begin = arith::MulIOp::create(body, loc, made.getArgument(firstIndex + number),
                                          arith::ConstantIndexOp::create(body, loc, chunk));
      mapping.map(index, arith::AddIOp::create(body, loc, begin, mapping.lookup(index)));
    }
    for (Operation &inner : block) {
      if (reader.comparedChunk(&inner) == chunk) {
        bool isEqual = cast<arith::CmpIOp>(inner).getPredicate() == arith::CmpIPredicate::eq;
        mapping.map(inner.getResult(0),
                    arith::ConstantOp::create(body, inner.getLoc(), body.getBoolAttr(isEqual)));
      } else {
        body.clone(inner, mapping);
      }
    }
    for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(made)))
      if (isOpTriviallyDead(&inner))
        inner.erase();
  }

  Operation *op;
  OpBuilder b;
  Location loc;
  ext::AttentionParts parts;
  unsigned query, key;
  int64_t chunk;
  unsigned number; ///< the new loop, over chunks
};

} // namespace

/// Splits the sequence of an attention within chunks. Each mesh must divide the chunks, else a
/// device would exchange parts of chunks.
static void splitSequence(Operation *op, int64_t devices) {
  ext::AttentionParts parts = ext::partsOf(op);
  const ext::AttentionDomain &domain = parts.domain;
  int64_t keys = domain.extents[domain.key];
  for (unsigned query : domain.query) {
    if (domain.extents[query] != keys || !ext::visibleKeysOf(parts, query) ||
        llvm::any_of(parts.maps, [&](AffineMap map) {
          return ext::hasLoop(map, query) && ext::hasLoop(map, domain.key);
        }))
      continue;
    Region &score = parts.score();
    std::optional<int64_t> chunk =
        ChunkReader(parts, query, score).chunkOf(score.front().getTerminator()->getOperand(0));
    if (!chunk || *chunk >= keys || keys % *chunk != 0 || keys / *chunk % devices != 0)
      continue;
    ChunkSplitter(op, query, *chunk).run();
    return;
  }
}

void dist::splitChunks(func::FuncOp function) {
  int64_t devices = 1;
  for (ProcessMeshOp mesh : function->getParentOfType<ModuleOp>().getOps<ProcessMeshOp>())
    devices = std::lcm(devices, llvm::product_of(mesh.getShape()));
  SmallVector<Operation *> attentions;
  function.walk([&](Operation *op) {
    if (isa<ext::AttentionOp, ext::AttentionBackwardOp>(op) && !op->hasAttr("ring"))
      attentions.push_back(op);
  });
  for (Operation *op : attentions)
    splitSequence(op, devices);
}
