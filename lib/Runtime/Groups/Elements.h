//===- Elements.h - Types and reductions of groups --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GROUPS_ELEMENTS_H
#define TESSERA_LIB_RUNTIME_GROUPS_ELEMENTS_H

#include "../Ranks/PlanRun.h"

namespace tessera::runtime {

/// The types of the step format and unsigned integers, for which max and min differ.
struct ElementType {
  DType dtype = DType::f32;
  bool isUnsigned = false;

  bool operator==(const ElementType &) const = default;
  /// "f32", "u8", …
  std::string text() const;
  /// Inverse of `text`; empty for anything else.
  static std::optional<ElementType> parse(std::string_view text);
};

enum class GroupReduction { sum, avg, max, min, prod, band, bor, bxor };
std::string_view toString(GroupReduction reduction);
std::optional<GroupReduction> parseGroupReduction(std::string_view text);

/// The combination of `ranks` contributions. Fails if the type does not support the reduction: avg
/// of integers, bitwise of floats.
Expected<PlanElements> elementsOf(ElementType type, GroupReduction reduction, int64_t ranks);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_GROUPS_ELEMENTS_H
