//===- StreamCopy.h - Copies that bypass the cache --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_EXECUTION_STREAMCOPY_H
#define TESSERA_LIB_RUNTIME_EXECUTION_STREAMCOPY_H

#include <cstddef>
#include <cstdint>

namespace tessera::runtime {

/// Larger moves bypass the cache: an ordinary store reads the line that it overwrites, and evicts
/// useful lines.
inline constexpr int64_t kStreamBytes = int64_t(16) << 20;

/// Like memcpy, with streaming stores if the processor has them.
void streamCopy(std::byte *to, const std::byte *from, size_t bytes);
/// Orders streamed writes before later writes of this thread; call it before notifying others.
void streamFence();

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_STREAMCOPY_H
