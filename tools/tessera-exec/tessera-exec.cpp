//===- tessera-exec.cpp - Run an artifact without a compiler --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../RunFlags.h"
#include "../Version.h"
#include "tessera/Runtime/CommandLine/Driver.h"

using namespace tessera::runtime;

int main(int argc, char **argv) {
  DriverOptions options;
  std::string path, cpu;
  CLI::App app{"Runs a compiled Tessera program (.tsra)", "tessera-exec"};
  app.set_version_flag("--version", [] { return tessera::versionText(); },
                       "Print the version and what kernels use");
  app.add_option("artifact", path, "Artifact that `tessera compile` wrote")->required();
  app.add_option("--cpu", cpu,
                 "Run the kernels for this CPU, one of those of `tessera compile --cpu`; default: "
                 "the best for this machine");
  tessera::RunFlags flags(&app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error); // --help
    return printError(Status::error(error.what()));
  }
  if (Status status = flags.collect(); !status.ok())
    return printError(status);
  if (!flags.pluginPath().empty())
    if (Status status = loadBackend(flags.pluginPath()); !status.ok())
      return printError(status);

  auto artifact = readArtifact(path);
  if (!artifact)
    return printError(artifact.status());
  if (!cpu.empty())
    if (Status status = keepKernels(artifact->kernels, cpu); !status.ok())
      return printError(status);
  return runDriver(std::make_shared<const Artifact>(std::move(*artifact)), options);
}
