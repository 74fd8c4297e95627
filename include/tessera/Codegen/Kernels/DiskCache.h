//===- DiskCache.h - Compiled objects on disk -------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_KERNELS_DISKCACHE_H
#define TESSERA_CODEGEN_KERNELS_DISKCACHE_H

#include "llvm/Support/JSON.h"

#include <string>

namespace tessera::codegen {

/// Objects on disk, one file per key. Failures are misses or lost entries, never errors: the cache
/// may be read-only, full, shared between processes or damaged.
class DiskCache {
public:
  /// `directory` empty: $XDG_CACHE_HOME/tessera, else ~/.cache/tessera, else no cache. `extension`
  /// of its files, ".kernel": caches with different ones share a directory, each with its limit.
  DiskCache(std::string directory, std::string extension, uint64_t limitBytes);

  /// Loads the object of `key` and its information. False if there is no intact entry.
  bool load(llvm::StringRef key, std::string &object, llvm::json::Object &about) const;
  /// Stores an object atomically, also with concurrent threads and processes.
  void store(llvm::StringRef key, llvm::StringRef object, llvm::json::Object about) const;
  /// Removes the least recently used entries until the directory is within the limit, once a
  /// sixteenth of the limit has been stored since that was last done.
  void trim() const;

private:
  std::string path(llvm::StringRef key) const;
  /// A file whose length says how much was stored since the directory was trimmed.
  std::string ledger() const;

  std::string directory, extension;
  uint64_t limitBytes;
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_KERNELS_DISKCACHE_H
