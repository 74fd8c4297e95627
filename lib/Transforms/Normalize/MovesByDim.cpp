//===- MovesByDim.cpp - Moves along several dimensions --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MovesByDim.h"

#include "PlainOps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::Segment;

/// Limits on the segments along a dimension, and on the ops of a chain.
static constexpr size_t kMostSegments = 16;
static constexpr int kMostSteps = 16;

namespace {

/// Composes moves from the last to the first.
class Composition {
public:
  explicit Composition(tensor::ExtractSliceOp slice)
      : shape(llvm::to_vector(slice.getType().getShape())), dims(shape.size()),
        isSliced(shape.size(), false), isMoved(shape.size(), false) {
    for (auto [d, extent] : llvm::enumerate(shape))
      dims[d] = {{0, 1, 0, 1, extent}};
  }

  /// Adds a slice in front of all moves.
  void add(tensor::ExtractSliceOp slice) {
    for (auto [d, segments] : llvm::enumerate(dims)) {
      isSliced[d] = isSliced[d] || slice.getStaticSizes()[d] != slice.getSourceType().getDimSize(d);
      for (Segment &segment : segments) {
        int64_t step = slice.getStaticStrides()[d];
        segment.from = slice.getStaticOffsets()[d] + segment.from * step;
        segment.fromStep *= step;
      }
    }
  }

  /// Adds a move along one dimension in front of all; false, without changes, if that is
  /// impossible.
  bool add(const Pieces &pieces) {
    SmallVector<Segment> &outer = dims[pieces.dim], composed;
    bool leavesFill = false;
    for (const Segment &segment : outer) {
      int64_t count = 0;
      for (auto &[value, inner] : pieces.segments)
        if (Segment both = through(segment, inner); both.count > 0) {
          count += both.count;
          composed.push_back(both);
        }
      leavesFill |= count < segment.count;
    }
    if (composed.empty() || composed.size() > kMostSegments ||
        (leavesFill && (!pieces.fill || (fill && fill != pieces.fill))))
      return false;
    if (leavesFill)
      fill = pieces.fill;
    outer = std::move(composed);
    isMoved[pieces.dim] = true;
    return true;
  }

  bool isSlicedAlong(int64_t dim) const { return isSliced[dim]; }
  bool isAlongSeveral() const {
    return llvm::count_if(llvm::zip_equal(isSliced, isMoved),
                          [](auto dim) { return std::get<0>(dim) || std::get<1>(dim); }) > 1;
  }

  /// The moves of `source`.
  MovesByDim of(Value source) const {
    MovesByDim result{source, {}};
    ArrayRef<int64_t> from = cast<RankedTensorType>(source.getType()).getShape();
    for (auto [d, segments] : llvm::enumerate(dims)) {
      if (segments.size() == 1 && shape[d] == from[d] && segments[0].count == shape[d] &&
          segments[0].toStep == 1)
        continue; // nothing moves
      Pieces pieces{static_cast<int64_t>(d), {}, fill};
      for (const Segment &segment : segments)
        pieces.segments.push_back({source, segment});
      join(pieces);
      result.moves.push_back(std::move(pieces));
    }
    return result;
  }

private:
  SmallVector<int64_t> shape;
  SmallVector<SmallVector<Segment>> dims;
  SmallVector<bool> isSliced, isMoved; ///< by dimension
  TypedAttr fill;
};

} // namespace

MovesByDim dist::readMovesByDim(tensor::ExtractSliceOp slice) {
  if (!slice || !isPlainSlice(slice))
    return {};
  Composition composition(slice);
  composition.add(slice);
  Value source = slice.getSource();
  MovesByDim result;
  for (int step = 0; step < kMostSteps; ++step) {
    Operation *op = source.getDefiningOp();
    if (!op || !isPlain(op))
      break;
    if (auto inner = dyn_cast<tensor::ExtractSliceOp>(op); inner && isPlainSlice(inner)) {
      composition.add(inner);
      source = inner.getSource();
      continue;
    }
    Pieces pieces = readPieces(op);
    Value next = onlySource(pieces);
    if (!next || !composition.add(pieces))
      break;
    source = next;
    // Moves before the last one along a sliced dimension stay: others may share them.
    if (composition.isSlicedAlong(pieces.dim) && composition.isAlongSeveral())
      result = composition.of(source);
  }
  return result;
}
