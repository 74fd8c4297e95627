//===- ArtifactCache.h - Artifacts of programs compiled before --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_DRIVER_ARTIFACTCACHE_H
#define TESSERA_LIB_DRIVER_ARTIFACTCACHE_H

#include "tessera/Codegen/Kernels/DiskCache.h"
#include "tessera/Driver/Commands.h"

namespace tessera {

/// Artifacts on disk by everything that they depend on: the text of the program, the options, the
/// files that these name, the processor, and the build of the compiler. Like the cache of kernels
/// it never causes an error.
class ArtifactCache {
public:
  explicit ArtifactCache(const CompileOptions &options);

  /// The artifact with the messages of its compilation; null if there is none.
  std::shared_ptr<const runtime::Artifact> load(std::string &messages) const;
  void store(const runtime::Artifact &artifact, llvm::StringRef messages) const;

private:
  codegen::DiskCache files;
  std::string key; ///< empty: this program is not cached
};

} // namespace tessera

#endif // TESSERA_LIB_DRIVER_ARTIFACTCACHE_H
