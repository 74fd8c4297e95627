//===- GpuCacheEntry.h - Cache entries of compiled kernels ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An entry of the cache is a section `gpu` of one kernel, with an image per architecture, and the
// compiler's report on the kernel as JSON.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CUDA_GPUCACHEENTRY_H
#define TESSERA_CODEGEN_CUDA_GPUCACHEENTRY_H

#include "GpuStages.h"

#include "llvm/Support/JSON.h"

namespace tessera::codegen {

/// The entry of a compiled kernel; code `i` is of architecture `i`.
std::string cacheEntryOf(const GpuUnit &unit, llvm::ArrayRef<std::string> archs);
/// The JSON of the entry: all of `info` except its name, times and texts.
llvm::json::Object cacheEntryJson(const GpuKernelInfo &info);

/// Reads both into `unit`; returns false if they are damaged or for other architectures.
bool readCacheEntry(const std::string &entry, const llvm::json::Object &about,
                    llvm::ArrayRef<std::string> archs, GpuUnit &unit);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_CUDA_GPUCACHEENTRY_H
