//===- PythonCommand.cpp - Commands that are Python modules ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PythonCommand.h"

#include "tessera/Runtime/CommandLine/Driver.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

/// The folder of the package next to this program's: PREFIX/bin and PREFIX/python. Empty if there
/// is none.
static std::string packageFolder() {
  std::error_code error;
  auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  auto folder = program.parent_path().parent_path() / "python";
  bool isThere = !error && std::filesystem::exists(folder / "tessera/launch/__main__.py", error);
  return isThere ? folder.string() : "";
}

int tessera::run(const PythonCommand &command, char **arguments) {
  if (std::string folder = packageFolder(); !folder.empty()) {
    const char *others = std::getenv("PYTHONPATH");
    if (others && *others)
      folder += std::string(":") + others;
    ::setenv("PYTHONPATH", folder.c_str(), /*overwrite=*/1);
  }
  std::string words[] = {"python3", "-m", command.module};
  std::vector<char *> line;
  for (std::string &word : words)
    line.push_back(word.data());
  for (char **each = arguments; *each; ++each)
    line.push_back(*each);
  line.push_back(nullptr);
  ::execvp(line[0], line.data());
  return runtime::printError(runtime::Status::error(
      std::string(command.name) +
      " runs in python3, which cannot be started: " + std::strerror(errno) + "; install Python 3.10 or newer, or put it on PATH"));
}
