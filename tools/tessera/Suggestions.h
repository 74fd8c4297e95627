//===- Suggestions.h - Errors of command lines with fixes -------*- C++ -*-===//
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

/// "; did you mean NAME?" for the name most similar to `text`; empty if none is similar. A name is
/// similar to its prefixes, and to texts that differ in fewer than half of its letters.
std::string suggest(const std::string &text, const std::vector<std::string> &names);

/// A validator for one of some names.
CLI::Validator oneOf(std::vector<std::string> names);

/// The error of a command line that `app` rejected; for an unknown command or option with the
/// nearest existing name.
std::string describe(const CLI::App &app, const CLI::ParseError &error);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_SUGGESTIONS_H
