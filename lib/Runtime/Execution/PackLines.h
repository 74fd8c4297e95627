//===- PackLines.h - Packing rows and columns of matrices -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_PACKLINES_H
#define TESSERA_LIB_RUNTIME_EXECUTION_PACKLINES_H

#include <cstdint>

namespace tessera::runtime {

/// Rows of A or columns of B: `count` lines of `depth` elements each.
template <typename Element> struct Lines {
  const Element *from;
  int64_t line, step; ///< elements between lines, between the elements of one; one of them is 1
  int64_t count, depth;
};

/// Panels of `width` lines each; the width of the last one is a multiple of `lineUnit`. A panel is
/// a list of blocks of `unit` elements of each line.
struct PanelForm {
  int64_t width, lineUnit, unit;
};

/// Packs all lines, panel behind panel. A panel has `depth` elements of each line, a multiple of
/// `unit`; those beyond the last line, and beyond the last element, are zero.
void packLines(const Lines<float> &lines, const PanelForm &form, int64_t depth, float *to);
void packLines(const Lines<uint16_t> &lines, const PanelForm &form, int64_t depth, uint16_t *to);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_PACKLINES_H
