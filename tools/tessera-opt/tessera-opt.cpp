//===- tessera-opt.cpp - Run passes on IR files ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Driver/Load.h"
#include "tessera/Driver/Supervisor.h"
#include "tessera/Phases/Register.h"

#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/ToolOutputFile.h"

/// `supervise` reads it; declared here for --help.
static llvm::cl::opt<bool>
    inProcess("in-process", llvm::cl::desc("Work in this process and print a stack trace when it "
                                           "crashes, for debuggers"));

static int optMain(int argc, char **argv) {
  mlir::DialectRegistry registry;
  tessera::registerDialects(registry);
  tessera::registerPasses();

  // A diagnostic is one line; printing its op is optional.
  std::vector<char *> arguments(argv, argv + argc);
  std::string noDump = "--mlir-print-op-on-diagnostic=false";
  if (llvm::none_of(arguments, [](const char *argument) {
        return llvm::StringRef(argument).contains("mlir-print-op-on-diagnostic");
      }))
    arguments.push_back(noDump.data());
  auto [input, output] = mlir::registerAndParseCLIOptions(
      static_cast<int>(arguments.size()), arguments.data(), "Tessera's pass driver\n", registry);

  std::string error;
  auto file = mlir::openInputFile(input, &error);
  if (!file) {
    llvm::errs() << error << "\n";
    return 1;
  }
  tessera::noteProgram(file->getBufferIdentifier().str(), file->getBuffer());
  if (std::optional<std::string> nesting = tessera::checkNesting(*file)) {
    llvm::errs() << *nesting << "\n";
    return 1;
  }
  auto out = mlir::openOutputFile(output, &error);
  if (!out) {
    llvm::errs() << error << "\n";
    return 1;
  }
  if (failed(mlir::MlirOptMain(out->os(), std::move(file), registry,
                               mlir::MlirOptMainConfig::createFromCLOptions())))
    return 1;
  out->keep();
  return 0;
}

int main(int argc, char **argv) {
  return tessera::supervise(argc, argv, optMain);
}
