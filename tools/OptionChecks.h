//===- OptionChecks.h - Numbers that options may have -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks of what `tessera` and `tessera-exec` have in common. CLI11's own print all
// 309 digits of the largest number, and its conversions let what is too large be
// the largest.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_OPTIONCHECKS_H
#define TESSERA_TOOLS_OPTIONCHECKS_H

#include <CLI/CLI.hpp>

#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <limits>

namespace tessera {

/// A whole number from `least` to `most`; `what` says in an error what it should be.
inline CLI::Validator wholeNumber(uint64_t least, uint64_t most, const char *what) {
  auto check = [=](const std::string &text) {
    char *end = nullptr;
    errno = 0;
    unsigned long long value = std::strtoull(text.c_str(), &end, 0);
    bool isNumber = !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) &&
                    *end == 0 && errno == 0;
    return isNumber && value >= least && value <= most ? std::string()
                                                       : "'" + text + "' is not " + what;
  };
  return CLI::Validator(check, "");
}

/// Devices that a program may have (the runtime's bound).
inline CLI::Validator deviceCount() {
  return wholeNumber(1, 1 << 20, "a number of devices from 1 to 1048576");
}

/// Workers; how many a backend takes it says itself.
inline CLI::Validator coreCount() {
  return wholeNumber(1, std::numeric_limits<int64_t>::max(), "a number of cores, at least 1");
}

inline CLI::Validator timeout() {
  return wholeNumber(1, 1000000, "a number of seconds, at least 1");
}

inline CLI::Validator stepCount() {
  return wholeNumber(1, std::numeric_limits<int64_t>::max(), "a number of steps, at least 1");
}

inline CLI::Validator seed() {
  return wholeNumber(0, std::numeric_limits<uint64_t>::max(),
                     "a seed, a whole number that is at least 0 and has 64 bits");
}

} // namespace tessera

#endif // TESSERA_TOOLS_OPTIONCHECKS_H
