//===- KernelCache.h - Cache of compiled objects ----------------*- C++ -*-===//
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

/// Objects on disk, one file per key. Failures are misses or lost entries, never errors: the cache
/// may be read-only, full, shared between processes or damaged.
class KernelCache {
public:
  /// `directory` empty: $XDG_CACHE_HOME/tessera, else ~/.cache/tessera, else no cache.
  KernelCache(std::string directory, uint64_t limitBytes);

  /// Loads the object of `key` and its information. False if there is no intact entry.
  bool load(llvm::StringRef key, std::string &object, llvm::json::Object &about) const;
  /// Stores an object atomically, also with concurrent threads and processes.
  void store(llvm::StringRef key, llvm::StringRef object, llvm::json::Object about) const;
  /// Removes the least recently used entries until the directory is within the limit.
  void trim() const;

private:
  std::string directory;
  uint64_t limitBytes;
};

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_KERNELS_KERNELCACHE_H
