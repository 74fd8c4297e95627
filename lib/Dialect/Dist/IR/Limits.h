//===- Limits.h - Limits of the dialect -------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_DIALECT_DIST_IR_LIMITS_H
#define TESSERA_LIB_DIALECT_DIST_IR_LIMITS_H

#include <cstdint>

namespace tessera::dist {

/// A backend has 1 + max(process id) devices.
inline constexpr int64_t kMaxProcessId = (int64_t(1) << 20) - 1;
/// Of a tensor: sizes in bytes and sums over devices do not overflow. Used by dist-guard.
inline constexpr int64_t kMaxElements = int64_t(1) << 48;

} // namespace tessera::dist

#endif // TESSERA_LIB_DIALECT_DIST_IR_LIMITS_H
