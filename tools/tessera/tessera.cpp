//===- tessera.cpp - The command line --------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Driver/Commands.h"

#include <CLI/CLI.hpp>

/// Options of every subcommand that reads a program.
static void addProgramOptions(CLI::App *command, tessera::ProgramOptions &options) {
  command->add_option("file", options.file, "Program (.mlir), - for standard input")->required();
  command->add_option("--function", options.function,
                      "Function to take; default @main, else the only public one");
  command->add_option("--compile-from", options.compileFrom, "Phase that the file is in");
  command->add_option("--objective", options.objective,
                      "What reshard plans minimise: time or bytes");
  command->add_option("--comm-fusion", options.fusion,
                      "Options of dist-fuse-collectives, e.g. \"all-reduce=size config=16\"");
  command->add_flag("--remarks", options.remarks, "Print what the compiler chose and why");
}

int main(int argc, char **argv) {
  CLI::App app("Tessera: tensor programs for one device, run on many");
  app.require_subcommand(1);
  int code = 0;

  tessera::ExplainOptions explain;
  CLI::App *command =
      app.add_subcommand("explain", "Say what a program would communicate, and why");
  addProgramOptions(command, explain);
  command->add_option("--json", explain.json,
                      "Write the report as JSON to a file, - for standard output");
  command->add_flag("--timing", explain.timing, "Add compile times to the JSON");
  command->callback([&]() { code = tessera::explain(explain); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    int status = app.exit(error);
    return status == 0 ? 0 : 1;
  }
  return code;
}
