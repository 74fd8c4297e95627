//===- GpuAttentionScores.cpp - Elements of an attention ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The regions of an attention are evaluated on each element of a tile of scores, which costs as
// much time as the products if it takes more than a few instructions:
//
// * Regions of 16-bit floats are computed in f32, without rounding.
// * Tiles where the comparisons of a mask have one value, which the launch decides for each tile,
//   are computed without the comparisons.
// * A constant factor of all scores is left out: the exponential multiplies by log2(e) anyway.
//
//===----------------------------------------------------------------------===//

#include "../Stub/GpuRetarget.h"
#include "GpuAttentionTiles.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

#include <numbers>

using namespace mlir;

namespace tessera::codegen {

static bool isNarrow(Type type) {
  auto real = dyn_cast<FloatType>(type);
  return real && real.getWidth() == 16;
}

/// Whether the 16-bit floats of a region can be computed in f32. Comparisons and functions keep
/// their roundings: these may decide a result, and functions that are only rounded to 16 bits are
/// faster.
static bool canComputeInF32(Region &region) {
  return llvm::all_of(region.getOps(), [](Operation &op) {
    bool isOfFlag = isa<arith::UIToFPOp>(op) && op.getOperand(0).getType().isInteger(1);
    bool hasWide = llvm::any_of(op.getOperandTypes(), [](Type type) { return type.isF64(); });
    bool isNarrowed =
        llvm::any_of(op.getOperandTypes(), isNarrow) || llvm::any_of(op.getResultTypes(), isNarrow);
    return !isNarrowed || isOfFlag || op.hasTrait<OpTrait::IsTerminator>() ||
           (!hasWide &&
            isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp,
                arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp,
                arith::SelectOp, arith::ConstantOp, arith::ExtFOp, arith::TruncFOp>(op));
  });
}

static std::optional<double> realOf(Value value) {
  llvm::APFloat constant(0.0);
  if (!matchPattern(value, m_ConstantFloat(&constant)))
    return std::nullopt;
  bool loses = false;
  constant.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &loses);
  return constant.convertToDouble();
}

AttentionTiles::RegionForm AttentionTiles::readForm(Region &region) const {
  RegionForm form;
  if (region.empty())
    return form;
  form.inF32 = canComputeInF32(region);
  // Scores of f32 are as precise as the difference of two of them.
  if (!form.inF32 || !isNarrow(element()) || &region == parts.weights())
    return form;
  // Without its factor, a gradient could exceed the range of f16.
  bool isScore = region.getRegionNumber() == 0;
  if (!isScore && element().isF16())
    return form;
  Block &block = region.front();
  Value value = block.getTerminator()->getOperand(0);
  Value end = isScore ? block.getArgument(0) : block.getArguments().back();
  RegionForm plain = form;
  while (value != end) {
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<arith::ExtFOp, arith::TruncFOp>(op)) {
      value = op->getOperand(0);
    } else if (auto select = dyn_cast_or_null<arith::SelectOp>(op)) {
      // A masked score is -inf, and its derivative zero.
      auto isMasked = [&](Value arm) {
        std::optional<double> constant = realOf(arm);
        return constant && *constant == (isScore ? -std::numeric_limits<double>::infinity() : 0.0);
      };
      if (isMasked(select.getFalseValue()))
        value = select.getTrueValue();
      else if (isMasked(select.getTrueValue()))
        value = select.getFalseValue();
      else
        return form;
    } else if (isa_and_nonnull<arith::MulFOp>(op) && !plain.factor) {
      std::optional<double> left = realOf(op->getOperand(0)), right = realOf(op->getOperand(1));
      std::optional<double> scale = left ? left : right;
      // A negative factor would exchange the order of scores.
      if (!scale || !(*scale > 0) || !std::isfinite(*scale))
        return form;
      plain.factor = op;
      plain.scale = *scale;
      value = op->getOperand(left ? 1 : 0);
    } else {
      return form;
    }
  }
  plain.isPlain = true;
  return plain;
}

std::optional<int64_t> AttentionTiles::mostOf(Value value) const {
  constexpr int64_t kMost = int64_t(1) << 31;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    unsigned first = 1 + parts.numExtras(), number = argument.getArgNumber();
    if (number < first || number - first >= parts.domain.extents.size())
      return std::nullopt;
    return extent(number - first);
  }
  llvm::APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.abs().getLimitedValue(kMost);
  Operation *op = value.getDefiningOp();
  SmallVector<int64_t> of;
  for (Value operand : op->getOperands())
    if (std::optional<int64_t> most = mostOf(operand))
      of.push_back(*most);
  std::optional<int64_t> most;
  if (of.size() == 1 && isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp>(op))
    most = of[0];
  else if (of.size() == 2 && isa<arith::AddIOp, arith::SubIOp>(op))
    most = of[0] + of[1];
  return most && *most < kMost ? most : std::nullopt;
}

Value AttentionTiles::compare(arith::CmpIOp op, Value left, Value right) {
  auto narrow = [&](Value x) -> Value {
    if (x.getType().isIndex())
      return arith::IndexCastOp::create(b, loc, b.getI32Type(), x);
    return arith::TruncIOp::create(b, loc, b.getI32Type(), x);
  };
  bool isWide = left.getType().isIndex() || left.getType().isInteger(64);
  if (!isWide || !mostOf(op.getLhs()) || !mostOf(op.getRhs()))
    return arith::CmpIOp::create(b, loc, op.getPredicate(), left, right);
  return arith::CmpIOp::create(b, loc, op.getPredicate(), narrow(left), narrow(right));
}

Value AttentionTiles::evaluate(Region &region, Value product, Value queryIndex, Value keyIndex,
                               Value derivative) {
  Block &block = region.front();
  const RegionForm &form = formOf(region);
  Type f32 = b.getF32Type();
  unsigned extras = parts.numExtras(), loops = parts.domain.extents.size();
  Value keyAt = least(keyIndex, constant(extent(parts.domain.key) - 1));
  Value queryAt = query ? least(queryIndex, constant(extent(query) - 1)) : Value();
  IRMapping mapping;
  auto typeOf = [&](Type type) { return form.inF32 && isNarrow(type) ? f32 : type; };
  for (BlockArgument argument : block.getArguments()) {
    unsigned number = argument.getArgNumber();
    if (argument.use_empty())
      continue;
    if (number == 0) {
      mapping.map(argument, convert(product, typeOf(argument.getType())));
    } else if (number <= extras) {
      unsigned operand = parts.firstExtra + number - 1;
      AffineMap map = parts.maps[operand];
      Value offset = constant(0);
      for (AffineExpr expr : map.getResults()) {
        unsigned each = cast<AffineDimExpr>(expr).getPosition();
        Value at = each == parts.domain.key ? keyAt : query == each ? queryAt : fixed[each];
        offset = add(offset, multiply(at, strideOf(map, roots[operand], each)));
      }
      Value root = roots[operand];
      if (map.getNumResults() > 0)
        note(root, /*store=*/false, bytesOf(cast<MemRefType>(root.getType()).getElementType()),
             "one element per row or score");
      Value loaded = memref::LoadOp::create(b, loc, launch.flat(root, /*write=*/false), offset);
      bool widens = typeOf(argument.getType()) != argument.getType();
      mapping.map(argument, widens ? convert(loaded, f32) : loaded);
    } else if (number <= extras + loops) {
      unsigned each = number - 1 - extras;
      mapping.map(argument, each == parts.domain.key ? keyIndex
                            : query == each          ? queryIndex
                                                     : fixed[each]);
    } else {
      mapping.map(argument, convert(derivative, typeOf(argument.getType())));
    }
  }
  auto isKnown = [&](Operation &op) -> std::optional<bool> {
    if (isInnerTile && known)
      for (auto [condition, value] : known->values)
        if (condition == &op)
          return value;
    return std::nullopt;
  };
  auto cloned = [&](Operation &op) {
    Type type = op.getResult(0).getType();
    if (isa<arith::ConstantOp>(op) && typeOf(type) != type)
      return real(*realOf(op.getResult(0)));
    Value copy = b.clone(op, mapping)->getResult(0);
    copy.setType(typeOf(type));
    return copy;
  };
  for (Operation &op : block) {
    for (Value operand : op.getOperands())
      if (operand.getParentRegion() != &region && !mapping.contains(operand))
        mapping.map(operand, cloned(*operand.getDefiningOp())); // a constant
    if (op.hasTrait<OpTrait::IsTerminator>())
      break;
    if (std::optional<bool> value = isKnown(op))
      mapping.map(op.getResult(0), arith::ConstantIntOp::create(b, loc, *value, 1).getResult());
    else if (&op == form.factor)
      mapping.map(op.getResult(0), mapping.lookup(op.getOperand(realOf(op.getOperand(0)) ? 1 : 0)));
    else if (form.inF32 && isa<arith::ExtFOp, arith::TruncFOp>(op))
      mapping.map(op.getResult(0),
                  convert(mapping.lookup(op.getOperand(0)), typeOf(op.getResult(0).getType())));
    else if (auto comparison = dyn_cast<arith::CmpIOp>(op))
      mapping.map(op.getResult(0), compare(comparison, mapping.lookup(comparison.getLhs()),
                                           mapping.lookup(comparison.getRhs())));
    else
      mapping.map(op.getResult(0), cloned(op));
  }
  return convert(mapping.lookupOrDefault(block.getTerminator()->getOperand(0)), f32);
}

Value AttentionTiles::weigh(Value share, Value queryIndex, Value keyIndex) {
  Region *weights = parts.weights();
  return weights ? evaluate(*weights, share, queryIndex, keyIndex) : share;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Value AttentionTiles::position(Value first, Value offset) {
  constexpr int64_t kMost = int64_t(1) << 30;
  if (extent(query) > kMost || extent(parts.domain.key) > kMost)
    return add(first, offset);
  auto narrow = [&](Value x) {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), x).getResult();
  };
  Value sum = arith::AddIOp::create(b, loc, narrow(first), narrow(offset),
                                    arith::IntegerOverflowFlags::nsw);
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), sum);
}

Value AttentionTiles::isInner(const TilePlace &place, bool &isAlways) {
  Value result;
  auto require = [&](Value condition) {
    result = result ? arith::AndIOp::create(b, loc, result, condition).getResult() : condition;
  };
  isAlways = !known;
  if (known) {
    // Distances of keys and queries that exist are between these.
    int64_t least = 1 - extent(query), most = extent(parts.domain.key) - 1;
    bool hasFirst = known->first > least, hasLast = known->last < most;
    int64_t span = place.numQueries + place.numKeys - 2;
    if (hasFirst && hasLast && known->last - known->first < span)
      return {};
    isAlways = !hasFirst && !hasLast;
    if (hasFirst)
      require(less(add(place.firstQuery, known->first + place.numQueries - 2), place.firstKey));
    if (hasLast)
      require(less(add(place.firstKey, place.numKeys - 2), add(place.firstQuery, known->last)));
  }
  if (place.checksKeys)
    require(less(add(place.firstKey, place.numKeys - 1), constant(extent(parts.domain.key))));
  if (place.checksQueries)
    require(less(add(place.firstQuery, place.numQueries - 1), constant(extent(query))));
  return result;
}

Fragments AttentionTiles::forTile(const TilePlace &place, size_t count,
                                  function_ref<Fragments(bool)> body) {
  bool checks = place.checksKeys || place.checksQueries;
  if (isDecided)
    return body(!isInnerTile && checks);
  bool isAlways = false;
  Value inner = isInner(place, isAlways);
  auto emit = [&](bool isInner) {
    isDecided = true;
    isInnerTile = isInner;
    // What only rare tiles need, as the indices of a mask, must not take registers in all others.
    std::array<Value, 4> places{lane, warp, group, quad};
    if (inner && !isInner)
      useThread(launch.readThread());
    Fragments result = body(!isInner && checks);
    std::tie(lane, warp, group, quad) = std::tie(places[0], places[1], places[2], places[3]);
    isDecided = isInnerTile = false;
    return result;
  };
  if (!inner)
    return emit(isAlways);
  SmallVector<Type> types(4 * count, b.getF32Type());
  auto branch = scf::IfOp::create(b, loc, types, inner, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  for (bool isInner : {true, false}) {
    b.setInsertionPointToStart(isInner ? branch.thenBlock() : branch.elseBlock());
    scf::YieldOp::create(b, loc, flatten(emit(isInner)));
  }
  return unflatten(branch.getResults());
}

//===----------------------------------------------------------------------===//
// Exponentials
//===----------------------------------------------------------------------===//

Value AttentionTiles::acrossColumns(Value x, function_ref<Value(Value, Value)> body) {
  Type i32 = b.getI32Type();
  for (int32_t distance : {1, 2}) {
    Value word = arith::BitcastOp::create(b, loc, i32, x);
    Value other = gpu::ShuffleOp::create(b, loc, word, distance, 32, gpu::ShuffleMode::XOR)
                      .getShuffleResult();
    x = body(x, arith::BitcastOp::create(b, loc, b.getF32Type(), other));
  }
  return x;
}

/// One instruction with an error of two units in the last place, where math.exp would be a
/// polynomial of fifteen instructions: there are as many exponentials as scores.
Value AttentionTiles::power(Value x) {
  return LLVM::CallIntrinsicOp::create(b, loc, b.getF32Type(), b.getStringAttr(kExp2Intrinsic),
                                       ValueRange{x})
      .getResult(0);
}

Value AttentionTiles::exponential(Value x) {
  return power(arith::MulFOp::create(b, loc, x, real(std::numbers::log2e)));
}

/// One instruction; `arith.maxnumf` would become a comparison for NaN and two choices.
Value AttentionTiles::greater(Value x, Value y) {
  return LLVM::MaxNumOp::create(b, loc, x, y);
}

} // namespace tessera::codegen
