//===- FormRearrangements.cpp - Chains of moves as one op -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An op that moves elements along one dimension is a list of segments: strided ranges of an
// operand that become strided ranges of the result. Lists compose by intersecting segments.
// A sum of two values with disjoint nonzero elements has the segments of both; derivatives
// of rolls have this form. The sign of a zero may differ from that of the sum.
//
// Moves along different dimensions commute. Where two along one dimension have one along
// another between them, as the dilations and pads of a transposed convolution do, the one
// between goes last.
//
//===----------------------------------------------------------------------===//

#include "FormRearrangements.h"

#include "PlainOps.h"

#include "MovesByDim.h"
#include "Pieces.h"

#include "tessera/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::Segment;

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Whole operands, one behind the other, in their order; empty for other moves.
static SmallVector<Value> concatenated(Pieces pieces, int64_t extent) {
  llvm::sort(pieces.segments,
             [](const auto &a, const auto &b) { return a.second.to < b.second.to; });
  SmallVector<Value> values;
  int64_t end = 0;
  for (auto &[value, segment] : pieces.segments) {
    int64_t size = cast<RankedTensorType>(value.getType()).getDimSize(pieces.dim);
    if (segment != Segment{0, 1, end, 1, size})
      return {};
    values.push_back(value);
    end += size;
  }
  return end == extent ? values : SmallVector<Value>();
}

static Value write(OpBuilder &b, Location loc, RankedTensorType type, const Pieces &pieces) {
  const Segment &first = pieces.segments.front().second;
  bool isCovered = coversResult(pieces, type.getDimSize(pieces.dim));
  if (pieces.segments.size() == 1 && isCovered && first.toStep == 1) {
    Value source = pieces.segments.front().first;
    if (source.getType() == type)
      return source;
    SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1)), sizes;
    for (int64_t size : type.getShape())
      sizes.push_back(b.getIndexAttr(size));
    offsets[pieces.dim] = b.getIndexAttr(first.from);
    strides[pieces.dim] = b.getIndexAttr(first.fromStep);
    return tensor::ExtractSliceOp::create(b, loc, type, source, offsets, sizes, strides);
  }
  SmallVector<Value> inputs = concatenated(pieces, type.getDimSize(pieces.dim));
  if (inputs.size() > 1)
    return tensor::ConcatOp::create(b, loc, type, pieces.dim, inputs);
  inputs.clear();
  SmallVector<int64_t> fields;
  for (auto &[value, segment] : pieces.segments) {
    inputs.push_back(value);
    llvm::append_range(fields, ArrayRef<int64_t>{segment.from, segment.fromStep, segment.to,
                                                 segment.toStep, segment.count});
  }
  return RearrangeOp::create(b, loc, type, inputs, pieces.dim, fields,
                             isCovered ? TypedAttr() : pieces.fill);
}

//===----------------------------------------------------------------------===//
// Moves along several dimensions
//===----------------------------------------------------------------------===//

/// Removes copies, as reversals of one element are.
static void dropCopies(func::FuncOp function) {
  function.walk([](linalg::GenericOp op) {
    if (isPlain(op) && op->getNumResults() == 1 && op.getNumDpsInputs() == 1 &&
        op.getInputs()[0].getType() == op->getResult(0).getType() &&
        llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); }) &&
        op.getBody()->getTerminator()->getOperand(0) == op.getBody()->getArgument(0)) {
      op->getResult(0).replaceAllUsesWith(op.getInputs()[0]);
      op.erase();
    }
  });
}

/// Whether only `reader` reads a value, possibly through other moves.
static bool isReadOnlyBy(Operation *reader, Value value, int steps = 4) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    return user == reader || (steps > 0 && user->getNumResults() == 1 && isPlain(user) &&
                              !readPieces(user).segments.empty() &&
                              isReadOnlyBy(reader, user->getResult(0), steps - 1));
  });
}

/// The segments by which a value, without other readers, moves one other value.
static Pieces readMove(Value value, Operation *reader) {
  Operation *op = value.getDefiningOp();
  if (!op || !isPlain(op) || !isReadOnlyBy(reader, value))
    return {};
  Pieces pieces = readPieces(op);
  return onlySource(pieces) ? pieces : Pieces();
}

/// Whether a pad along several dimensions pads a value that was moved along some of them.
static bool isPadOfMoves(tensor::PadOp pad) {
  constexpr int kMostSteps = 8;
  Value value = pad.getSource();
  Operation *reader = pad;
  for (int step = 0; step < kMostSteps; ++step) {
    Pieces pieces = readMove(value, reader);
    if (pieces.segments.empty())
      return false;
    reader = value.getDefiningOp();
    if (pad.getStaticLow()[pieces.dim] != 0 || pad.getStaticHigh()[pieces.dim] != 0)
      return true;
    value = onlySource(pieces);
  }
  return false;
}

/// Splits a pad into one per dimension.
static void splitPad(tensor::PadOp pad) {
  Attribute fill;
  Value padding = pad.getConstantPaddingValue();
  int64_t rank = pad.getResultType().getRank();
  auto isPadded = [&](int64_t d) {
    return pad.getStaticLow()[d] != 0 || pad.getStaticHigh()[d] != 0;
  };
  if (!pad.getLow().empty() || !pad.getHigh().empty() || !padding || !isPlain(pad) ||
      !matchPattern(padding, m_Constant(&fill)) ||
      llvm::count_if(llvm::seq<int64_t>(0, rank), isPadded) < 2 || !isPadOfMoves(pad))
    return;
  OpBuilder b(pad);
  Value value = pad.getSource();
  for (int64_t d = 0; d < rank; ++d) {
    if (!isPadded(d))
      continue;
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> low(rank, 0), high(rank, 0), shape(type.getShape());
    low[d] = pad.getStaticLow()[d];
    high[d] = pad.getStaticHigh()[d];
    shape[d] += low[d] + high[d];
    Value constant = arith::ConstantOp::create(b, pad.getLoc(), cast<TypedAttr>(fill));
    value = tensor::PadOp::create(b, pad.getLoc(), type.clone(shape), value,
                                  getAsIndexOpFoldResult(b.getContext(), low),
                                  getAsIndexOpFoldResult(b.getContext(), high), constant);
  }
  pad.getResult().replaceAllUsesWith(value);
  pad.erase();
}

/// Moves `pieces`, the effect of an op, before a move along another dimension if the op can then be
/// joined with the operation before that. Returns whether it did.
static bool moveInFront(Operation *op, Pieces pieces) {
  Value source = onlySource(pieces);
  Pieces between = source ? readMove(source, op) : Pieces();
  if (between.segments.empty() || between.dim == pieces.dim)
    return false;
  if (between.fill && pieces.fill && between.fill != pieces.fill)
    return false;
  Value inner = onlySource(between);
  for (auto &[value, segment] : pieces.segments)
    value = inner;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  auto innerType = cast<RankedTensorType>(inner.getType());
  SmallVector<int64_t> shape(innerType.getShape());
  shape[pieces.dim] = type.getDimSize(pieces.dim);
  if (!compose(pieces, shape[pieces.dim]) ||
      (between.fill && pieces.fill && between.fill != pieces.fill))
    return false;
  join(pieces);
  OpBuilder b(op);
  Value moved = write(b, op->getLoc(), innerType.clone(shape), pieces);
  for (auto &[value, segment] : between.segments)
    value = moved;
  op->getResult(0).replaceAllUsesWith(write(b, op->getLoc(), type, between));
  return true;
}

namespace {

/// Writes slices of values that were moved along several dimensions as one move for each of them.
/// Slices that move rows in the same way share that move.
class SliceSplitter {
public:
  bool split(tensor::ExtractSliceOp slice) {
    // What only moves read becomes a part of these.
    bool isRead = llvm::any_of(slice->getUsers(), [](Operation *user) {
      return !isPlain(user) || readPieces(user).segments.empty();
    });
    MovesByDim read = isRead ? readMovesByDim(slice) : MovesByDim();
    if (!read.source)
      return false;
    Value value = read.source;
    for (Pieces &pieces : read.moves) {
      for (auto &[source, segment] : pieces.segments)
        source = value;
      auto *known = llvm::find_if(made, [&](auto &other) {
        return other.second.getParentBlock() == slice->getBlock() && areEqual(other.first, pieces);
      });
      if (known == made.end()) {
        SmallVector<int64_t> shape(cast<RankedTensorType>(value.getType()).getShape());
        shape[pieces.dim] = slice.getType().getDimSize(pieces.dim);
        OpBuilder b(slice);
        made.push_back({pieces, ::write(b, slice.getLoc(), slice.getType().clone(shape), pieces)});
        known = &made.back();
      }
      value = known->second;
    }
    slice.replaceAllUsesWith(value);
    return true;
  }

private:
  static bool areEqual(const Pieces &a, const Pieces &b) {
    return a.dim == b.dim && a.fill == b.fill &&
           llvm::equal(a.segments, b.segments, [](const auto &x, const auto &y) {
             auto fields = [](const Segment &s) {
               return std::tuple(s.from, s.fromStep, s.to, s.toStep, s.count);
             };
             return x.first == y.first && fields(x.second) == fields(y.second);
           });
  }

  SmallVector<std::pair<Pieces, Value>> made;
};

} // namespace

void dist::formRearrangements(func::FuncOp function) {
  dropCopies(function);
  SmallVector<tensor::PadOp> pads;
  function.walk([&](tensor::PadOp pad) { pads.push_back(pad); });
  for (tensor::PadOp pad : pads)
    splitPad(pad);
  SmallVector<Operation *> moves;
  function.walk([&](Operation *op) {
    if (isPlain(op) && (isa<tensor::ExtractSliceOp>(op) || !readPieces(op).segments.empty()))
      moves.push_back(op);
  });
  SliceSplitter slices;
  auto isRepetition = [](Operation *op, const Pieces &pieces) { // a broadcast stays one
    return isa<linalg::GenericOp, tensor::CollapseShapeOp>(op) && pieces.segments.size() > 1 &&
           pieces.segments[0].first == pieces.segments[1].first &&
           pieces.segments[0].second.from == pieces.segments[1].second.from;
  };
  for (Operation *op : moves) {
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op); slice && slices.split(slice))
      continue;
    Pieces pieces = readPieces(op);
    if (pieces.segments.empty() || isRepetition(op, pieces))
      continue; // a sum whose operands are no longer moves, or a broadcast
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    Pieces composed = pieces;
    bool isComposed = compose(composed, type.getDimSize(pieces.dim));
    if (moveInFront(op, composed) || moveInFront(op, pieces))
      continue;
    pieces = std::move(composed);
    if (!isComposed && !isa<linalg::GenericOp>(op))
      continue;
    join(pieces);
    OpBuilder builder(op);
    op->getResult(0).replaceAllUsesWith(write(builder, op->getLoc(), type, pieces));
  }
  for (Operation *op : llvm::reverse(moves))
    if (op->use_empty())
      op->erase();
  // Moved ops, and reshapes between moves.
  SmallVector<Operation *> unused;
  function.walk([&](Operation *op) {
    if (isa<RearrangeOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::PadOp,
            tensor::ExtractSliceOp>(op))
      unused.push_back(op);
  });
  for (Operation *op : llvm::reverse(unused))
    if (isPlain(op) && op->use_empty())
      op->erase();
}
