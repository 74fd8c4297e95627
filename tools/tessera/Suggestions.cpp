//===- Suggestions.cpp - Errors of command lines with fixes ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Suggestions.h"

#include <algorithm>
#include <numeric>
#include <utility>

using namespace tessera;

/// Edit distance: insertions, deletions and substitutions of a letter.
static size_t editDistance(const std::string &from, const std::string &to) {
  std::vector<size_t> row(to.size() + 1); // of the letters of `from` so far, to each prefix of `to`
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= from.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= to.size(); ++j) {
      size_t substituted = diagonal + (from[i - 1] != to[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

std::string tessera::suggest(const std::string &text, const std::vector<std::string> &names) {
  const std::string *nearest = nullptr;
  size_t least = 0;
  for (const std::string &name : names) {
    size_t distance = name.starts_with(text) ? 0 : editDistance(text, name);
    if (2 * distance < std::max(text.size(), name.size()) && (!nearest || distance < least)) {
      nearest = &name;
      least = distance;
    }
  }
  return nearest ? "; did you mean " + *nearest + "?" : "";
}

static std::string joined(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

CLI::Validator tessera::oneOf(std::vector<std::string> names) {
  auto check = [names = std::move(names)](const std::string &text) {
    bool isKnown = std::find(names.begin(), names.end(), text) != names.end();
    return isKnown ? std::string()
                   : "'" + text + "' is not one of " + joined(names) + suggest(text, names);
  };
  return CLI::Validator(check, "");
}

/// The first unparsed argument that is an option, or that is not one (`isOption`); empty if there
/// is none.
static std::string firstLeft(const CLI::App &app, bool isOption) {
  for (const std::string &text : app.remaining())
    if ((text.size() > 1 && text[0] == '-') == isOption)
      return text;
  return "";
}

static std::string describeCommand(const CLI::App &app, const std::string &command) {
  std::vector<std::string> names;
  for (const CLI::App *each : app.get_subcommands([](const CLI::App *) { return true; }))
    names.push_back(each->get_name());
  std::string nearest = suggest(command, names);
  return "unknown command '" + command + "'" +
         (nearest.empty() ? "; commands are " + joined(names) : nearest);
}

static std::string describeOption(const CLI::App &app, const CLI::App *command,
                                  const std::string &text) {
  std::string option = text.substr(0, text.find('='));
  std::vector<std::string> names;
  for (const CLI::App *level : {command, &app})
    if (level)
      for (const CLI::Option *each : level->get_options())
        for (const std::string &name : each->get_lnames())
          names.push_back("--" + name);
  std::string nearest = suggest(option, names);
  std::string help = "tessera " + (command ? command->get_name() + " " : "") + "--help";
  return "unknown option '" + option + "'" +
         (nearest.empty() ? "; " + help + " lists the options" : nearest);
}

std::string tessera::describe(const CLI::App &app, const CLI::ParseError &error) {
  std::string text = error.what();
  auto isA = [&](CLI::ExitCodes code) { return error.get_exit_code() == static_cast<int>(code); };
  if (isA(CLI::ExitCodes::RequiresError) && text.ends_with("requires --mode"))
    return text + "; add for example --mode dynamic_programming";
  // A missing argument may have been parsed as the value of an unknown option.
  if (!isA(CLI::ExitCodes::ExtrasError) && !isA(CLI::ExitCodes::RequiredError))
    return text;
  std::vector<CLI::App *> parsed = app.get_subcommands();
  const CLI::App *command = parsed.empty() ? nullptr : parsed.front();
  if (std::string word = firstLeft(app, /*isOption=*/false); !command && !word.empty())
    return describeCommand(app, word);
  for (const CLI::App *level : {&app, command})
    if (level)
      if (std::string option = firstLeft(*level, /*isOption=*/true); !option.empty())
        return describeOption(app, command, option);
  return text;
}
