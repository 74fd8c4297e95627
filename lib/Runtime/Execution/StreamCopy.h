//===- StreamCopy.h - Copies that bypass the cache ---------------*- C++ -*-===//
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

/// What moves more bytes than this in all writes past the cache: an ordinary store reads the line
/// that it overwrites, and evicts what is still needed.
inline constexpr int64_t kStreamBytes = int64_t(16) << 20;

/// As memcpy, with streaming stores where the processor has them.
void streamCopy(std::byte *to, const std::byte *from, size_t bytes);
/// Orders streamed writes before what this thread writes afterwards; call it before others are told.
void streamFence();

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_EXECUTION_STREAMCOPY_H
