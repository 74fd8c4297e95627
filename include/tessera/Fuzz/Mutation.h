//===- Mutation.h - Text with mistakes in it --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FUZZ_MUTATION_H
#define TESSERA_FUZZ_MUTATION_H

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::fuzz {

/// The text with one to three mistakes: a number becomes an extreme one; a token is removed,
/// duplicated, swapped or copied from elsewhere in the text; a line is removed, duplicated or
/// moved; a type becomes another; the end is missing. The same seed gives the same mistakes.
std::string mutateText(std::string_view text, uint64_t seed);

/// The bytes with one to four of them changed, removed or repeated, or without their end.
std::string mutateBytes(std::string_view bytes, uint64_t seed);

} // namespace tessera::fuzz

#endif // TESSERA_FUZZ_MUTATION_H
