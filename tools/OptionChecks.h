//===- OptionChecks.h - Checks of numbers in options ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks shared by `tessera` and `tessera-exec`. CLI11's own checks print all 309
// digits of the largest number, and its conversions clamp values that are too large.
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

/// A whole number from `least` to `most`; `what` describes the expected value in an error.
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

/// Number of devices of a program, up to the runtime's limit.
inline CLI::Validator deviceCount() {
  return wholeNumber(1, 1 << 20, "a number of devices from 1 to 1048576");
}

/// Number of workers; the backend checks its own limit.
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
