//===- KernelCache.h - Objects compiled before ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_KERNELS_KERNELCACHE_H
#define TESSERA_LIB_CODEGEN_KERNELS_KERNELCACHE_H

#include "llvm/Support/JSON.h"

#include <string>

namespace tessera::codegen {

/// Identifies the compiler that made an object: LLVM's version and the sources of this library.
std::string kernelCompilerRevision();

/// Objects on disk, one file a key. Every failure is a miss or a lost entry, never an error: the
/// cache may be read-only, full, shared between processes or damaged.
class KernelCache {
public:
  /// `directory` empty: $XDG_CACHE_HOME/tessera, else ~/.cache/tessera, else no cache.
  KernelCache(std::string directory, uint64_t limitBytes);

  /// Whether `key` was found whole; fills `object` and what was said about it.
  bool load(llvm::StringRef key, std::string &object, llvm::json::Object &about) const;
  /// Keeps an object. Safe beside other threads and processes: the file appears whole or not at
  /// all.
  void store(llvm::StringRef key, llvm::StringRef object, llvm::json::Object about) const;
  /// Removes the entries used longest ago until the directory holds no more than the limit.
  void trim() const;

private:
  std::string directory;
  uint64_t limitBytes;
};

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_KERNELCACHE_H
