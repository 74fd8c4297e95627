//===- ContractionPhases.cpp - Iterations without known zeros -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ContractionPhases.h"

#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

static constexpr int64_t kMostPhases = 64;

/// A place as an integer combination of a phase's iterations, before the division.
static PhaseAddress numeratorIn(const Place &place, ArrayRef<LoopRange> phase) {
  PhaseAddress result{place.constant, SmallVector<int64_t>(phase.size(), 0)};
  for (auto [loop, range] : llvm::enumerate(phase)) {
    result.start += place.terms[loop] * range.begin;
    if (range.count > 1)
      result.strides[loop] = place.terms[loop] * range.step;
  }
  return result;
}

std::optional<PhaseAddress> codegen::addressIn(const Place &place, ArrayRef<LoopRange> phase) {
  PhaseAddress result = numeratorIn(place, phase);
  if (result.start % place.divisor != 0)
    return std::nullopt;
  result.start /= place.divisor;
  for (int64_t &stride : result.strides) {
    if (stride % place.divisor != 0)
      return std::nullopt;
    stride /= place.divisor;
  }
  return result;
}

int64_t codegen::iterationsOf(ArrayRef<LoopRange> phase) {
  int64_t count = 1;
  for (const LoopRange &range : phase)
    count *= range.count;
  return count;
}

Holds codegen::holds(const Bound &bound, ArrayRef<LoopRange> phase) {
  PhaseAddress address = numeratorIn(bound.place, phase);
  bool isWhole = llvm::all_of(address.strides,
                              [&](int64_t stride) { return stride % bound.place.divisor == 0; });
  if (isWhole && address.start % bound.place.divisor != 0)
    return Holds::never;
  int64_t least = address.start, most = least;
  for (auto [stride, range] : llvm::zip_equal(address.strides, phase))
    (stride < 0 ? least : most) += stride * (range.count - 1);
  int64_t end = (bound.extent - 1) * bound.place.divisor;
  if (most < 0 || least > end)
    return Holds::never;
  return isWhole && least >= 0 && most <= end ? Holds::always : Holds::sometimes;
}

/// Shortens the only loop that a bound depends on in a phase; returns false if no iteration
/// remains.
static bool shorten(Phase &phase, const Bound &bound) {
  PhaseAddress address = numeratorIn(bound.place, phase);
  std::optional<unsigned> only;
  for (auto [loop, stride] : llvm::enumerate(address.strides)) {
    if (stride == 0)
      continue;
    if (only)
      return true;
    only = loop;
  }
  int64_t divisor = bound.place.divisor;
  if (!only || address.strides[*only] % divisor != 0 || address.start % divisor != 0)
    return true;
  int64_t start = address.start / divisor, stride = address.strides[*only] / divisor;
  LoopRange &range = phase[*only];
  // 0 <= start + stride * i < extent.
  int64_t low = stride > 0 ? llvm::divideCeilSigned(-start, stride)
                           : llvm::divideCeilSigned(bound.extent - 1 - start, stride);
  int64_t high = stride > 0 ? llvm::divideFloorSigned(bound.extent - 1 - start, stride)
                            : llvm::divideFloorSigned(-start, stride);
  low = std::max<int64_t>(low, 0);
  high = std::min(high, range.count - 1);
  range.begin += low * range.step;
  range.count = std::max<int64_t>(0, high - low + 1);
  return range.count > 0;
}

bool codegen::shorten(Phase &phase, ArrayRef<Bound> bounds) {
  // A loop of one iteration may leave the bounds of others with a single loop.
  for (size_t round = 0; round < phase.size() + 1; ++round)
    for (const Bound &bound : bounds)
      if (holds(bound, phase) == Holds::never || !::shorten(phase, bound))
        return false;
  return true;
}

/// The modulus of each loop by which its iterations are divided into phases.
static SmallVector<int64_t> moduliOf(ArrayRef<int64_t> extents, ArrayRef<LoopRange> whole,
                                     ArrayRef<Bound> bounds) {
  SmallVector<int64_t> moduli(extents.size(), 1);
  for (const Bound &bound : bounds) {
    const Place &place = bound.place;
    if (holds(bound, whole) == Holds::always)
      continue;
    SmallVector<unsigned> loops;
    for (auto [loop, term] : llvm::enumerate(place.terms))
      if (term != 0 && extents[loop] > 1)
        loops.push_back(loop);
    for (unsigned loop : loops)
      moduli[loop] =
          std::lcm(moduli[loop], place.divisor / std::gcd(place.divisor, place.terms[loop]));
    if (place.divisor != 1 || loops.size() < 2)
      continue;
    // Digits of one number: where a window of s j + r is cut, each r has its own count of j.
    llvm::stable_sort(loops, [&](unsigned a, unsigned b) {
      return std::abs(place.terms[a]) > std::abs(place.terms[b]);
    });
    int64_t rest = 0;
    for (unsigned loop : llvm::drop_begin(loops))
      rest += std::abs(place.terms[loop]) * (extents[loop] - 1);
    if (std::abs(place.terms[loops.front()]) > rest)
      for (unsigned loop : llvm::drop_begin(loops))
        moduli[loop] = std::lcm(moduli[loop], extents[loop]);
  }
  for (auto [modulus, extent] : llvm::zip_equal(moduli, extents))
    modulus = std::min(modulus, extent);
  return moduli;
}

SmallVector<Phase> codegen::phasesOf(ArrayRef<int64_t> extents, ArrayRef<Bound> bounds) {
  Phase whole;
  for (int64_t extent : extents)
    whole.push_back({0, 1, extent});
  SmallVector<int64_t> moduli = moduliOf(extents, whole, bounds);
  SmallVector<Phase> phases{whole};
  for (auto [loop, modulus] : llvm::enumerate(moduli)) {
    if (modulus == 1)
      continue;
    SmallVector<Phase> split;
    for (const Phase &phase : phases)
      for (int64_t rest = 0; rest < modulus; ++rest) {
        Phase one = phase;
        one[loop] = {rest, modulus, (extents[loop] - rest + modulus - 1) / modulus};
        // Filter here, since most combinations are impossible before the next loop is split.
        if (llvm::none_of(bounds, [&](const Bound &b) { return holds(b, one) == Holds::never; }))
          split.push_back(std::move(one));
      }
    phases = std::move(split);
    if (static_cast<int64_t>(phases.size()) > kMostPhases)
      return {};
  }
  llvm::erase_if(phases, [&](Phase &phase) { return !shorten(phase, bounds); });
  return phases;
}
