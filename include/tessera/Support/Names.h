//===- Names.h - Enums whose values users type ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An enum with names specializes kNames beside its declaration:
//
//   enum class Target { cpu, cuda, stub };
//   template <> inline constexpr std::array kNames<Target> = named("cpu", "cuda", "stub");
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_NAMES_H
#define TESSERA_SUPPORT_NAMES_H

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

/// The names of an enum's values, in their order.
template <typename Enum> inline constexpr std::array<std::string_view, 0> kNames;

template <typename... Text>
constexpr std::array<std::string_view, sizeof...(Text)> named(Text... names) {
  return {names...};
}

template <typename Enum> constexpr std::string_view nameOf(Enum value) {
  return kNames<Enum>[static_cast<size_t>(value)];
}

template <typename Enum> std::optional<Enum> parse(std::string_view name) {
  auto found = std::find(kNames<Enum>.begin(), kNames<Enum>.end(), name);
  if (found == kNames<Enum>.end())
    return std::nullopt;
  return static_cast<Enum>(found - kNames<Enum>.begin());
}

/// "OPTION 'NAME' is not one of cpu, cuda, stub".
template <typename Enum> std::string unknownName(std::string_view option, std::string_view name) {
  std::string text(option);
  text.append(" '").append(name).append("' is not one of ");
  for (size_t i = 0; i < kNames<Enum>.size(); ++i)
    text.append(i ? ", " : "").append(kNames<Enum>[i]);
  return text;
}

} // namespace tessera

#endif // TESSERA_SUPPORT_NAMES_H
