//===- RunFlags.h - Options of running a program ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The options that `tessera run` and `tessera-exec` share.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_RUNFLAGS_H
#define TESSERA_TOOLS_RUNFLAGS_H

#include "OptionChecks.h"
#include "tessera/Runtime/CommandLine/Driver.h"

#include <optional>
#include <string>
#include <vector>

namespace tessera {

class RunFlags {
public:
  RunFlags(CLI::App *command, runtime::DriverOptions &options) : options(options) {
    command
        ->add_option("--devices", options.devices,
                     "Number of devices to provide; default: as many as the program needs")
        ->check(deviceCount());
    command->add_option("--backend", options.backend, "Backend that executes the program")
        ->default_val("threads");
    command
        ->add_option("--schedule-seed", options.scheduleSeed,
                     "Backend stub: seed of the order in which streams execute")
        ->check(tessera::seed())
        ->default_val(0);
    command->add_option("--plugin", plugin, "Shared object that registers a backend");
    command
        ->add_option("--cores", options.cores,
                     "Number of workers; default: the physical cores that the affinity and the "
                     "quotas of the process allow")
        ->check(coreCount());
    command->add_flag("!--no-pin", options.pins,
                      "Let workers move between cores; default: they are pinned where this process "
                      "has the whole machine and no other Tessera job has pinned workers");
    command
        ->add_option("--timeout", options.timeout,
                     "Seconds that processes wait for each other; default: TESSERA_TIMEOUT, or 120")
        ->check(tessera::timeout());
    command->add_option("--dump-dir", options.dumpFolder,
                        "Directory to which a process writes its last 1024 collective calls when a "
                        "process fails; default: TESSERA_DUMP_DIR, or none");
    command
        ->add_option("--precision", options.precision,
                     "Precision of f32 products on GPUs: highest (f32) or high (TF32); default: "
                     "highest")
        ->check(CLI::IsMember({"highest", "high"}));
    command
        ->add_option("--guard", options.guard,
                     "What processes compare: the program when it is loaded, or (full) also every "
                     "collective call before data moves")
        ->check(CLI::IsMember({"program", "full"}))
        ->default_val("program");
    command
        ->add_option("--input", inputs, "name=f.npy: value of an argument; default: random values")
        ->allow_extra_args(false);
    command
        ->add_option("--stream", streams,
                     "name=f.npy: values of an argument, one per step along the leading axis")
        ->allow_extra_args(false);
    command
        ->add_option("--output", outputs,
                     "name=f.npy: file to write a result to after the last step")
        ->allow_extra_args(false);
    command->add_option("--steps", steps, "Number of steps to run")->check(stepCount());
    command->add_option("--seed", options.seed, "Seed of random arguments")
        ->check(tessera::seed())
        ->default_val(0);
    command->add_option("--json", options.jsonPath,
                        "File for checksums, checks and counted bytes; - for standard output");
    command->add_option("--trace", options.tracePath,
                        "File for a Chrome/Perfetto trace with one track per device");
  }

  /// Parses the name=f.npy texts after the command line has been read.
  runtime::Status collect() {
    options.steps = steps;
    if (runtime::Status status = collect("--input", inputs, options.inputs); !status.ok())
      return status;
    if (runtime::Status status = collect("--stream", streams, options.streams); !status.ok())
      return status;
    return collect("--output", outputs, options.outputs);
  }

  const std::string &pluginPath() const { return plugin; }

private:
  static runtime::Status collect(const char *option, const std::vector<std::string> &texts,
                                 std::vector<runtime::DriverOptions::NamedFile> &files) {
    for (const std::string &text : texts) {
      auto file = runtime::parseNamedFile(option, text);
      if (!file)
        return file.status();
      files.push_back(*file);
    }
    return {};
  }

  runtime::DriverOptions &options;
  std::vector<std::string> inputs, streams, outputs;
  std::optional<int64_t> steps;
  std::string plugin;
};

} // namespace tessera

#endif // TESSERA_TOOLS_RUNFLAGS_H
