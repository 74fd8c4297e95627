//===- ContractionPhases.h - Iterations without known zeros -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A convolution of a dilated tensor (the derivative by the input of a convolution
// with a stride, a transposed convolution) has s phases along a dimension: results
// p = s q + r meet the taps k with t k + r + c divisible by s alone. Each phase is a
// dense contraction over its taps ("sub-pixel convolution").
//
// W. Shi et al., "Is the deconvolution layer the same as a convolutional layer?", 2016
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_CONTRACTIONPHASES_H
#define TESSERA_LIB_CODEGEN_CONTRACTIONPHASES_H

#include "PaddedView.h"

namespace tessera::codegen {

/// Iterations begin, begin + step, … of a loop.
struct LoopRange {
  int64_t begin = 0, step = 1, count = 0;
};

/// A box of iterations: a range of each loop.
using Phase = llvm::SmallVector<LoopRange>;

/// Whether a bound holds for the iterations of a phase.
enum class Holds { always, never, sometimes };
Holds holds(const Bound &bound, llvm::ArrayRef<LoopRange> phase);

/// The phases of loops with these extents: some bound does not hold outside of them. A bound that
/// couples loops may hold for a part of a phase. Empty if no split of loops makes a phase smaller.
llvm::SmallVector<Phase> phasesOf(llvm::ArrayRef<int64_t> extents, llvm::ArrayRef<Bound> bounds);

/// Shortens each loop that a bound of a single loop cuts; returns false if no iteration remains.
bool shorten(Phase &phase, llvm::ArrayRef<Bound> bounds);

/// The place at the first iteration of a phase and its distance along each loop; none if one is not
/// an integer.
struct PhaseAddress {
  int64_t start = 0;
  llvm::SmallVector<int64_t> strides;
};
std::optional<PhaseAddress> addressIn(const Place &place, llvm::ArrayRef<LoopRange> phase);

/// The number of iterations.
int64_t iterationsOf(llvm::ArrayRef<LoopRange> phase);

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_CONTRACTIONPHASES_H
