//===- Suggestions.h - Errors of command lines that name the fix -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_SUGGESTIONS_H
#define TESSERA_TOOLS_TESSERA_SUGGESTIONS_H

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace tessera {

/// "; did you mean NAME?" for the name that is most like `text`; empty where none is like it. A
/// name is like a text that it starts with, or from which it differs in less than half of its
/// letters.
std::string suggest(const std::string &text, const std::vector<std::string> &names);

/// One of some names.
CLI::Validator oneOf(std::vector<std::string> names);

/// What is wrong with a command line that `app` refused: an unknown command or option is named with
/// the nearest one that there is.
std::string describe(const CLI::App &app, const CLI::ParseError &error);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_SUGGESTIONS_H
