//===- tessera-exec.cpp - Runs an artifact without a compiler -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../OptionChecks.h"
#include "tessera/Runtime/CommandLine/Driver.h"

using namespace tessera::runtime;

int main(int argc, char **argv) {
  DriverOptions options;
  std::string path, plugin;
  std::vector<std::string> inputs, streams, outputs;
  std::optional<int64_t> steps;

  CLI::App app{"Runs a compiled Tessera program (.tsra)", "tessera-exec"};
  app.add_option("artifact", path, "what `tessera compile` wrote")->required();
  app.add_option("--input", inputs, "name=f.npy: the value of an argument; others are random")
      ->allow_extra_args(false);
  app.add_option("--stream", streams, "name=f.npy: a value for every step, along the leading axis")
      ->allow_extra_args(false);
  app.add_option("--output", outputs, "name=f.npy: where to write a result after the last step")
      ->allow_extra_args(false);
  app.add_option("--steps", steps, "how often to run the program")->check(tessera::stepCount());
  app.add_option("--seed", options.seed, "of random arguments")
      ->check(tessera::seed())
      ->default_val(0);
  app.add_option("--json", options.jsonPath, "checksums and counted bytes; - is standard output");
  app.add_option("--trace", options.tracePath, "Chrome/Perfetto trace, a track a device");
  app.add_option("--devices", options.devices, "devices to offer (default: what it needs)")
      ->check(tessera::deviceCount());
  app.add_option("--cores", options.cores,
                 "workers (default: one for each processor that the affinity and the quotas of the "
                 "process leave it)")
      ->check(tessera::coreCount());
  app.add_option("--timeout", options.timeout,
                 "seconds that processes wait for each other (default: TESSERA_TIMEOUT, or 120)")
      ->check(tessera::timeout());
  app.add_option("--dump-dir", options.dumpFolder,
                 "of processes: gets a rank's last 1024 calls when one fails (default: "
                 "TESSERA_DUMP_DIR, or nothing is written)");
  app.add_option("--guard", options.guard,
                 "what processes compare: the program when it is loaded, or (full) every call "
                 "before data moves")
      ->check(CLI::IsMember({"program", "full"}))
      ->default_val("program");
  app.add_option("--backend", options.backend, "what executes it")->default_val("threads");
  app.add_option("--schedule-seed", options.scheduleSeed,
                 "of the stub backend: which legal order of the streams is run")
      ->check(tessera::seed())
      ->default_val(0);
  app.add_option("--plugin", plugin, "a shared object that registers a backend");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error); // --help
    return printError(Status::error(error.what()));
  }
  options.steps = steps;

  auto addFiles = [](const char *option, const std::vector<std::string> &texts,
                     std::vector<DriverOptions::NamedFile> &files) -> Status {
    for (const std::string &text : texts) {
      auto file = parseNamedFile(option, text);
      if (!file)
        return file.status();
      files.push_back(*file);
    }
    return {};
  };
  for (const Status &status :
       {addFiles("--input", inputs, options.inputs), addFiles("--stream", streams, options.streams),
        addFiles("--output", outputs, options.outputs)})
    if (!status.ok())
      return printError(status);
  if (!plugin.empty())
    if (Status status = loadBackend(plugin); !status.ok())
      return printError(status);

  auto artifact = readArtifact(path);
  if (!artifact)
    return printError(artifact.status());
  return runDriver(std::make_shared<const Artifact>(std::move(*artifact)), options);
}
