//===- GpuCacheEntry.h - Compiled kernels as the cache keeps them -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An entry of the cache is a section `gpu` of one kernel, with an image for each architecture, and
// beside it, as JSON, what the compiler says of the kernel.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUCACHEENTRY_H
#define TESSERA_CODEGEN_CUDA_GPUCACHEENTRY_H

#include "GpuStages.h"

#include "llvm/Support/JSON.h"

namespace tessera::codegen {

/// The entry of a compiled kernel; code `i` is of architecture `i`.
std::string cacheEntryOf(const GpuUnit &unit, llvm::ArrayRef<std::string> archs);
/// What is kept beside it: everything of `info` but its name, its times and texts.
llvm::json::Object aboutCacheEntry(const GpuKernelInfo &info);

/// Reads both into `unit`; false when they are damaged, or of other architectures.
bool readCacheEntry(const std::string &entry, const llvm::json::Object &about,
                    llvm::ArrayRef<std::string> archs, GpuUnit &unit);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUCACHEENTRY_H
