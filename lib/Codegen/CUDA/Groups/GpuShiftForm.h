//===- GpuShiftForm.h - Values that depend on a row's maximum ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_CUDA_GROUPS_GPUSHIFTFORM_H
#define TESSERA_LIB_CODEGEN_CUDA_GROUPS_GPUSHIFTFORM_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tessera::codegen {

/// How a value depends on the shift, the maximum of its row, in a sum of exponentials. A sum of
/// proportional terms can be computed with the maximum so far and corrected when it grows.
enum class ShiftForm {
  independent,  ///< of the shift
  shift,        ///< the shift itself, or a wider float equal to it
  difference,   ///< x - shift
  proportional, ///< to exp(-shift)
  other
};

/// The form of the result of `op` for the forms of its operands. `isTerm` tells whether its first
/// operand is the value whose maximum the shift is.
inline ShiftForm shiftFormOf(mlir::Operation *op, llvm::ArrayRef<ShiftForm> forms,
                             llvm::function_ref<bool()> isTerm) {
  using namespace mlir;
  using enum ShiftForm;
  auto independents = static_cast<size_t>(llvm::count(forms, independent));
  if (independents == forms.size())
    return independent;
  bool scales = independents + 1 == forms.size() && llvm::is_contained(forms, proportional);
  if (isa<arith::ExtFOp>(op) && forms[0] != other)
    return forms[0];
  if (isa<arith::SubFOp>(op) && forms[0] == independent && forms[1] == shift && isTerm())
    return difference;
  if (isa<math::ExpOp>(op) && forms[0] == difference)
    return proportional;
  if (isa<arith::NegFOp, arith::MulFOp>(op) && scales)
    return proportional;
  if (isa<arith::DivFOp>(op) && scales && forms[0] == proportional)
    return proportional;
  return other;
}

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_CUDA_GROUPS_GPUSHIFTFORM_H
