//===- GpuConvolutionForm.cpp - Convolutions in the form of libraries -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each loop of a contraction appears in two of input x, weights w and output y (groups in all
// three):
//
//   x, y: images; positions of y      x, w: channels; taps      w, y: channels of y
//
// Windows move along the dimensions of x that have a position and a tap. The original names of the
// loops do not matter: the addresses are the same.
//
//===----------------------------------------------------------------------===//

#include "GpuContraction.h"

using namespace mlir;

namespace tessera::codegen {

namespace {

using Operand = runtime::GpuConvolution::Operand;

struct Loop {
  int64_t extent = 1;
  int64_t x = 0, w = 0, y = 0; ///< strides
};

/// The operands of the contraction that are x, w and y.
struct Roles {
  unsigned x, w, y;
};

/// A dimension along which windows move.
struct Window {
  Loop position, tap;
  int64_t distance; ///< of adjacent elements in x
};

class ConvolutionMatcher {
public:
  ConvolutionMatcher(rt::ContractionOp op, Roles roles) : op(op), roles(roles) {}
  std::optional<runtime::GpuConvolution> match(std::array<int64_t, 3> slots);

private:
  bool sortLoops();
  bool findWindows();
  bool mergeGroups();
  Operand operandOf(unsigned which, std::array<int64_t, 3> slots);

  rt::ContractionOp op;
  Roles roles;
  SmallVector<Loop> positions, taps; ///< include images and channels
  SmallVector<Window> windows;
  Loop image, channel, result, group;
  bool flipped = false; ///< taps go backwards in w
};

} // namespace

/// The loop that `loops` form together in all operands; none if they do not form one.
static std::optional<Loop> single(SmallVector<Loop> loops) {
  llvm::stable_sort(loops, [](const Loop &a, const Loop &b) {
    return std::abs(a.x) + std::abs(a.w) + std::abs(a.y) >
           std::abs(b.x) + std::abs(b.w) + std::abs(b.y);
  });
  Loop merged;
  for (const Loop &loop : loops) {
    bool continues = merged.extent == 1 ||
                     (merged.x == loop.x * loop.extent && merged.w == loop.w * loop.extent &&
                      merged.y == loop.y * loop.extent);
    if (!continues)
      return std::nullopt;
    merged = {merged.extent * loop.extent, loop.x, loop.w, loop.y};
  }
  return merged;
}

bool ConvolutionMatcher::sortLoops() {
  SmallVector<Loop> results, groups;
  std::array<ArrayRef<int64_t>, 3> strides{op.getAStrides(), op.getBStrides(), op.getCStrides()};
  for (auto [i, extent] : llvm::enumerate(op.getExtents())) {
    Loop loop{extent, strides[roles.x][i], strides[roles.w][i], strides[roles.y][i]};
    if (loop.x != 0 && loop.w != 0 && loop.y != 0)
      groups.push_back(loop);
    else if (loop.x != 0 && loop.y != 0)
      positions.push_back(loop);
    else if (loop.x != 0 && loop.w != 0)
      taps.push_back(loop);
    else if (loop.w != 0 && loop.y != 0)
      results.push_back(loop);
    else
      return false;
  }
  std::optional<Loop> theResult = single(results), theGroup = single(groups);
  if (!theResult || !theGroup)
    return false;
  result = *theResult;
  group = *theGroup;
  return true;
}

/// Pairs positions with taps of the same dimension of x; the remaining loops are images and
/// channels.
bool ConvolutionMatcher::findWindows() {
  auto type = cast<RankedTensorType>(op->getOperand(roles.x).getType());
  SmallVector<int64_t> distances; // of the dimensions, in decreasing order
  int64_t distance = 1;
  for (int64_t extent : llvm::reverse(type.getShape())) {
    if (extent > 1)
      distances.insert(distances.begin(), distance);
    distance *= extent;
  }
  auto dimensionOf = [&](const Loop &loop) -> int64_t {
    for (int64_t each : distances)
      if (each <= loop.x)
        return loop.x % each == 0 ? each : 0;
    return 0;
  };
  for (int64_t each : distances) {
    auto isHere = [&](const Loop &loop) { return dimensionOf(loop) == each; };
    Loop *position = llvm::find_if(positions, isHere), *tap = llvm::find_if(taps, isHere);
    if (position == positions.end() || tap == taps.end())
      continue;
    windows.push_back({*position, *tap, each});
    positions.erase(position);
    taps.erase(tap);
  }
  // Positions without a tap, such as those of a window of 1 x 3: the loop with the largest stride
  // is the images.
  llvm::stable_sort(positions, [](const Loop &a, const Loop &b) { return a.x > b.x; });
  while (positions.size() > 1 && !single(positions)) {
    windows.push_back({positions.back(), Loop(), positions.back().x});
    positions.pop_back();
  }
  // Taps without a position, such as those of a window over the whole input: the loop with the
  // largest extent is the channels.
  llvm::stable_sort(taps, [](const Loop &a, const Loop &b) { return a.extent > b.extent; });
  while (taps.size() > 1 && !single(taps)) {
    windows.push_back({Loop(), taps.back(), taps.back().x});
    taps.pop_back();
  }
  image = *single(positions);
  channel = *single(taps);
  bool goesBack = image.x < 0 || channel.x < 0;
  int64_t forwards = 0, backwards = 0;
  for (const Window &window : windows) {
    goesBack |= window.position.x < 0 || window.tap.x < 0;
    if (window.tap.extent > 1)
      ++(window.tap.w > 0 ? forwards : backwards);
  }
  flipped = backwards > 0;
  llvm::stable_sort(windows,
                    [](const Window &a, const Window &b) { return a.distance > b.distance; });
  constexpr size_t kMostDimensions = 3;
  return !goesBack && (forwards == 0 || backwards == 0) && windows.size() <= kMostDimensions;
}

/// Checks that groups are the outer part of the channels in each tensor.
bool ConvolutionMatcher::mergeGroups() {
  if (group.extent == 1)
    return true;
  auto continues = [](int64_t outer, int64_t inner, int64_t extent) {
    return extent == 1 || outer == inner * extent;
  };
  int64_t first = flipped ? channel.w : result.w, count = flipped ? channel.extent : result.extent;
  return continues(group.x, channel.x, channel.extent) && continues(group.w, first, count) &&
         continues(group.y, result.y, result.extent);
}

Operand ConvolutionMatcher::operandOf(unsigned which, std::array<int64_t, 3> slots) {
  const unsigned numbers[] = {roles.x, roles.w, roles.y};
  Operand operand;
  operand.slot = slots[numbers[which]];
  operand.offset = op.getStarts()[numbers[which]];
  auto add = [&](int64_t extent, int64_t stride) {
    operand.shape.push_back(extent);
    operand.strides.push_back(stride);
  };
  int64_t groups = group.extent;
  // With one channel per group, the group's stride replaces the channel's.
  auto channels = [&](const Loop &loop, int64_t stride, int64_t ofGroup) {
    add(groups * loop.extent, loop.extent == 1 ? ofGroup : stride);
  };
  if (which == 0) {
    add(image.extent, image.x);
    channels(channel, channel.x, group.x);
    for (const Window &window : windows)
      add((window.position.extent - 1) * (window.position.x / window.distance) +
              (window.tap.extent - 1) * (window.tap.x / window.distance) + 1,
          window.distance);
  } else if (which == 1) {
    // The derivative by the input sums over the first dimension of the weights.
    const Loop &outer = flipped ? channel : result, &inner = flipped ? result : channel;
    channels(outer, outer.w, group.w);
    add(inner.extent, inner.w);
    for (const Window &window : windows) {
      add(window.tap.extent, std::abs(window.tap.w));
      operand.offset += std::min<int64_t>(window.tap.w, 0) * (window.tap.extent - 1);
    }
  } else {
    add(image.extent, image.y);
    channels(result, result.y, group.y);
    for (const Window &window : windows)
      add(window.position.extent, window.position.y);
  }
  // A dimension of one element has no stride of its own.
  int64_t size = 1;
  for (auto [extent, stride] : llvm::zip_equal(operand.shape, operand.strides))
    size = std::max(size, extent * stride);
  for (int64_t &stride : operand.strides)
    stride = stride == 0 ? size : stride;
  return operand;
}

/// Whether memory has the dimensions (a, b, positions...) in this order, or, `last`, with b as the
/// innermost one.
static bool isInOrder(const Operand &operand, bool last) {
  SmallVector<size_t> order = llvm::to_vector(llvm::seq<size_t>(0, operand.shape.size()));
  if (last)
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  int64_t outer = 0;
  for (size_t dimension : order) {
    if (operand.shape[dimension] == 1)
      continue;
    if (outer && operand.strides[dimension] >= outer)
      return false;
    outer = operand.strides[dimension];
  }
  return true;
}

std::optional<runtime::GpuConvolution> ConvolutionMatcher::match(std::array<int64_t, 3> slots) {
  if (!sortLoops() || !findWindows() || windows.empty())
    return std::nullopt;
  using Kind = runtime::GpuConvolution::Kind;
  runtime::GpuConvolution convolution;
  convolution.kind = roles.w == 2 ? Kind::byWeights : flipped ? Kind::byInput : Kind::forward;
  if (flipped && roles.w == 2)
    return std::nullopt;
  constexpr size_t kFewestDimensions = 2;
  while (windows.size() < kFewestDimensions)
    windows.insert(windows.begin(), {Loop(), Loop(), windows.front().distance});
  for (const Window &window : windows) {
    int64_t stride = std::max<int64_t>(window.position.x / window.distance, 1);
    int64_t dilation = std::max<int64_t>(window.tap.x / window.distance, 1);
    if (convolution.kind == Kind::byInput && stride != 1)
      return std::nullopt;
    convolution.strides.push_back(stride);
    convolution.dilations.push_back(dilation);
    // The gradient that the derivative by the input reads is already padded by the extent of a
    // window beyond its first tap. As the output of a convolution, it therefore results from the
    // same padding.
    convolution.padding.push_back(
        convolution.kind == Kind::byInput ? dilation * (window.tap.extent - 1) : 0);
  }
  if (!mergeGroups())
    return std::nullopt;
  auto typeOf = [](Value value) {
    Type element = cast<RankedTensorType>(value.getType()).getElementType();
    return element.isF32()    ? runtime::DType::f32
           : element.isBF16() ? runtime::DType::bf16
                              : runtime::DType::f16;
  };
  convolution.dtype = typeOf(op.getA());
  convolution.result = typeOf(op.getInit());
  convolution.x = operandOf(0, slots);
  convolution.w = operandOf(1, slots);
  convolution.y = operandOf(2, slots);
  if (convolution.kind == Kind::byInput)
    std::swap(convolution.x, convolution.y);
  // cuDNN accepts other strides, but computes wrong results: seen of version 9.19 on an H200 for
  // images NHWC and weights HWCF.
  auto allInOrder = [&](bool last) {
    return isInOrder(convolution.x, last) && isInOrder(convolution.w, last) &&
           isInOrder(convolution.y, last);
  };
  if (!allInOrder(/*last=*/false) && !allInOrder(/*last=*/true))
    return std::nullopt;
  return convolution;
}

std::optional<runtime::GpuConvolution> convolutionOf(rt::ContractionOp op,
                                                     std::array<int64_t, 3> slots) {
  // A derivative by the weights is also a convolution with large windows, and vice versa. Libraries
  // are optimized for the form with the smaller windows.
  std::optional<runtime::GpuConvolution> best;
  auto windowOf = [](const runtime::GpuConvolution &convolution) {
    int64_t size = 1;
    for (int64_t extent : llvm::drop_begin(convolution.w.shape, 2))
      size *= extent;
    return size;
  };
  for (Roles roles : {Roles{0, 1, 2}, Roles{1, 0, 2}, Roles{0, 2, 1}, Roles{1, 2, 0}}) {
    std::optional<runtime::GpuConvolution> found = ConvolutionMatcher(op, roles).match(slots);
    if (found && (!best || windowOf(*found) < windowOf(*best)))
      best = std::move(found);
  }
  return best;
}

} // namespace tessera::codegen
