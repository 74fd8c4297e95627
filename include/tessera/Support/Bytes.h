//===- Bytes.h - Human-readable numbers of bytes ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_BYTES_H
#define TESSERA_SUPPORT_BYTES_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

/// Three significant digits in the largest unit that leaves at least 1, up to GiB: "107 bytes",
/// "13.9 MiB", "1490 GiB".
std::string bytesText(double bytes);
/// The same with the exact number, for values that users may pass back: "13.9 MiB (14576410
/// bytes)".
std::string exactBytesText(double bytes);

/// Parses a number of GiB, or a number with a unit: "0.5", "512M", "512MiB", "2G", "14576410B".
/// Units are powers of 1024 and case-insensitive. Empty if it is neither.
std::optional<double> parseGibibytes(std::string_view text);

} // namespace tessera

#endif // TESSERA_SUPPORT_BYTES_H
