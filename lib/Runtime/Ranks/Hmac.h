//===- Hmac.h - Proving a shared secret -------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_RANKS_HMAC_H
#define TESSERA_LIB_RUNTIME_RANKS_HMAC_H

#include <array>
#include <cstdint>
#include <string>

namespace tessera::runtime {

using Digest = std::array<uint8_t, 32>;

/// SHA-256 (FIPS 180-4).
Digest sha256(const std::string &text);
/// HMAC-SHA-256 (RFC 2104).
Digest hmac(const std::string &key, const std::string &text);
/// In constant time.
bool areEqual(const Digest &a, const Digest &b);
/// Cryptographically secure random bytes.
std::string randomBytes(size_t count);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_RANKS_HMAC_H
