//===- Bytes.cpp - Numbers of bytes as people read them -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Support/Bytes.h"

#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace tessera {

static constexpr double kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

static std::string wholeBytes(double bytes) {
  return std::to_string(static_cast<int64_t>(bytes)) + (bytes == 1 ? " byte" : " bytes");
}

std::string bytesText(double bytes) {
  if (bytes < kKiB)
    return wholeBytes(bytes);
  double scale = bytes < kMiB ? kKiB : bytes < kGiB ? kMiB : kGiB;
  const char *unit = bytes < kMiB ? "KiB" : bytes < kGiB ? "MiB" : "GiB";
  double value = bytes / scale;
  char text[64];
  if (value < 999.5)
    std::snprintf(text, sizeof(text), "%.3g %s", value, unit);
  else // %g would write 1.49e+03; the fourth digit counts nothing
    std::snprintf(text, sizeof(text), "%.0f %s", 10 * std::round(value / 10), unit);
  return text;
}

std::string exactBytesText(double bytes) {
  return bytes < kKiB ? wholeBytes(bytes) : bytesText(bytes) + " (" + wholeBytes(bytes) + ")";
}

std::optional<double> parseGibibytes(std::string_view given) {
  std::string text(given);
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str())
    return std::nullopt;
  std::string unit;
  for (; *end; ++end)
    unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*end)));
  if (unit.empty())
    return value;
  if (unit == "b")
    return value / kGiB;
  static constexpr std::pair<char, double> kUnits[] = {
      {'k', kKiB / kGiB}, {'m', kMiB / kGiB}, {'g', 1}, {'t', 1024}};
  for (auto &[letter, scale] : kUnits)
    if (unit[0] == letter && (unit.size() == 1 || unit.substr(1) == "ib" || unit.substr(1) == "b"))
      return value * scale;
  return std::nullopt;
}

} // namespace tessera
