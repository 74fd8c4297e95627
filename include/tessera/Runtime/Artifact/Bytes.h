//===- Bytes.h - Aligned bytes, files, checksums ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_ARTIFACT_BYTES_H
#define TESSERA_RUNTIME_ARTIFACT_BYTES_H

#include "tessera/Runtime/Artifact/Status.h"

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::runtime {

/// Kernels may assume that every buffer starts at a multiple of this many bytes.
inline constexpr size_t kAlignment = 64;

/// A standard allocator of memory at multiples of kAlignment bytes.
template <typename T> struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <typename U> AlignedAllocator(const AlignedAllocator<U> &) {}
  T *allocate(size_t n) {
    return static_cast<T *>(::operator new(n * sizeof(T), std::align_val_t(kAlignment)));
  }
  void deallocate(T *pointer, size_t) { ::operator delete(pointer, std::align_val_t(kAlignment)); }
  bool operator==(const AlignedAllocator &) const { return true; }
};

/// Bytes at a 64-byte boundary.
using Bytes = std::vector<std::byte, AlignedAllocator<std::byte>>;

/// FNV-1a 64; `seed` continues an earlier checksum.
uint64_t fnv1a(const void *data, size_t size, uint64_t seed = 0xcbf29ce484222325u);
/// 16 hexadecimal digits.
std::string hexText(uint64_t value);

/// The whole of a regular file. Errors: "PATH: No such file or directory", …
Expected<Bytes> readFile(const std::string &path);

/// The file that writeFile(path) creates or replaces, without symbolic links, "." and "..", so that
/// two spellings of one file are equal. Empty for a device or a pipe.
std::string fileBehind(const std::string &path);

/// Writes a temporary file beside the target of `path`, syncs it, and renames it: no reader ever
/// sees a partial file. A device or a pipe is written directly.
Status writeFile(const std::string &path, const void *data, size_t size);
inline Status writeFile(const std::string &path, std::string_view text) {
  return writeFile(path, text.data(), text.size());
}

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_ARTIFACT_BYTES_H
