//===- Rounding.h - Roundings that contributions pass -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rounding is not linear: the sum of rounded contributions may differ from the rounded
// sum by one rounding per device. With --narrow-reductions the user accepts that, and
// contributions pass roundings to 16 bits, so that they are reduced in 16 bits:
//
//   %p = linalg.contract … : f32, partial(sum)
//   %r = linalg.generic ins(%p) {arith.truncf … to bf16} {dist.rounds_partials}, partial(sum)
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_DIST_RULES_ROUNDING_H
#define TESSERA_DIALECT_DIST_RULES_ROUNDING_H

#include "llvm/ADT/StringRef.h"

namespace tessera::dist {

/// Marks a `linalg` op whose roundings count as linear. `dist-narrow-partials` writes it.
inline constexpr llvm::StringLiteral kRoundsPartials = "dist.rounds_partials";

} // namespace tessera::dist

#endif // TESSERA_DIALECT_DIST_RULES_ROUNDING_H
