//===- SearchModes.cpp - The modes of the search as users name them -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Transforms/Search.h"

#include <utility>

namespace tessera::dist {

using solver::Mode;

constexpr std::pair<Mode, std::string_view> modeNames[] = {
    {Mode::completion, "sharding_propagation"},
    {Mode::dynamic_programming, "dynamic_programming"},
    {Mode::recursive_programming, "recursive_programming"},
    {Mode::exact, "exact"},
};

std::string_view nameOf(Mode mode) {
  for (auto &[known, name] : modeNames)
    if (known == mode)
      return name;
  return {};
}

solver::Expected<Mode> parseMode(std::string_view name) {
  std::string all;
  for (auto &[mode, known] : modeNames) {
    if (known == name)
      return mode;
    all += (all.empty() ? "" : ", ") + std::string(known);
  }
  return solver::Error{"'" + std::string(name) + "' is not a valid mode; expected one of " + all};
}

} // namespace tessera::dist
