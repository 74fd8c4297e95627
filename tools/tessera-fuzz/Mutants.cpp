//===- Mutants.cpp - Invalid inputs by mutation ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mutants.h"

#include "Campaign.h"

#include "tessera/Driver/Commands.h"
#include "tessera/Driver/Supervisor.h"
#include "tessera/Fuzz/Mutation.h"
#include "tessera/Phases/Register.h"
#include "tessera/Runtime/CommandLine/Driver.h"
#include "tessera/Runtime/CommandLine/Npy.h"
#include "tessera/Sharding/Topology.h"
#include "tessera/Solver/Problem.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <sys/resource.h>

using namespace tessera;
using namespace tessera::fuzz;
using llvm::StringRef;

/// Memory limit of a mutant in bytes.
static constexpr rlim_t kMemory = rlim_t(4) << 30;

namespace {
struct Input {
  std::string path, content;
};
} // namespace

static CheckResult passed(bool accepted) {
  CheckResult result;
  result.status = CheckResult::passed;
  result.message = accepted ? "accepted" : "refused";
  return result;
}

/// Runs an artifact once, within the host's memory.
static bool execute(std::shared_ptr<const runtime::Artifact> artifact) {
  double bytes = 0;
  for (const runtime::Argument &argument : artifact->program.arguments)
    bytes += static_cast<double>(runtime::elementCount(argument.globalShape).value_or(0));
  for (const runtime::Part &part : artifact->program.parts)
    bytes += static_cast<double>(part.arenaBytes) *
             static_cast<double>(artifact->program.meshes[part.mesh].numDevices());
  if (bytes > (1 << 28)) // valid, but slow
    return true;
  runtime::DriverOptions driver;
  driver.quiet = true;
  driver.cores = 2;
  driver.steps = 1;
  return static_cast<bool>(runtime::runProgram(std::move(artifact), driver));
}

/// Runs the part of a command line of `tessera` that handles a program; `way` chooses the command.
static bool compileMutant(const std::string &text, const std::string &name, uint64_t way) {
  static const char *const kPhases[] = {"normalized", "propagated",  "resharded",
                                        "planned",    "partitioned", "fused"};
  std::string messages;
  RunOptions options;
  options.text = text;
  options.file = name;
  options.messages = &messages;
  options.noCache = true;
  if (way % 4 == 1) {
    options.search.mode = "dynamic_programming";
    options.search.timeLimit = 0.5;
    if (way & 16)
      options.search.devices = 4;
    if (way & 32)
      options.search.memoryBudget = way & 64 ? 0 : 1e-6;
  } else if (way % 4 == 2) {
    options.compileFrom = kPhases[way / 4 % std::size(kPhases)];
  }
  if (way % 4 != 3) {
    ExplainOptions explain;
    static_cast<ProgramOptions &>(explain) = options;
    return explainTexts(explain).has_value();
  }
  std::shared_ptr<const runtime::Artifact> artifact = compileProgram(options);
  bool mayLoop = StringRef(text).contains("scf."); // for any number of iterations
  return artifact && (mayLoop || execute(artifact));
}

/// Runs an artifact with a mutated program text, or with mutated bytes.
static bool runArtifactMutant(const Input &input, uint64_t seed) {
  auto bytesOf = [](const std::string &text) {
    return reinterpret_cast<const std::byte *>(text.data());
  };
  if (seed % 4 == 0) {
    std::string bytes = mutateBytes(input.content, seed);
    auto artifact = runtime::parseArtifact(bytesOf(bytes), bytes.size(), input.path);
    return artifact && execute(std::make_shared<const runtime::Artifact>(std::move(*artifact)));
  }
  auto artifact = runtime::parseArtifact(bytesOf(input.content), input.content.size(), input.path);
  if (!artifact)
    return false;
  auto program = runtime::parseProgram(mutateText(runtime::toJson(artifact->program), seed),
                                       static_cast<int64_t>(artifact->constants.size()));
  if (!program)
    return false;
  artifact->program = std::move(*program);
  return execute(std::make_shared<const runtime::Artifact>(std::move(*artifact)));
}

static bool readJsonMutant(const std::string &text) {
  sharding::TopologyError error;
  if (sharding::parseTopology(text, error))
    return true;
  auto problem = solver::parseProblem(text, "mutant");
  return std::holds_alternative<solver::Problem>(problem);
}

static std::string mutantOf(const Input &input, uint64_t seed) {
  bool isText =
      StringRef(input.path).ends_with(".mlir") || StringRef(input.path).ends_with(".json");
  return isText ? mutateText(input.content, seed) : mutateBytes(input.content, seed);
}

static bool readMutant(const Input &input, uint64_t seed) {
  StringRef kind = llvm::sys::path::extension(input.path);
  if (kind == ".tsra")
    return runArtifactMutant(input, seed);
  std::string mutant = mutantOf(input, seed);
  if (kind == ".json")
    return readJsonMutant(mutant);
  if (kind == ".npy")
    return static_cast<bool>(
        runtime::parseNpy(reinterpret_cast<const std::byte *>(mutant.data()), mutant.size(), "m"));
  return compileMutant(mutant, input.path, seed / 7);
}

/// Whether the mutant crashes while it is read, which the tools report with its location.
static bool isReadCrash(const Input &input, uint64_t seed) {
  StringRef kind = llvm::sys::path::extension(input.path);
  return (kind == ".mlir" || kind == ".mlirbc") &&
         findReadCrash(mutantOf(input, seed), input.path).has_value();
}

static void dump(const MutantOptions &options, const Input &input, uint64_t seed) {
  if (options.dumpDir.empty())
    return;
  std::error_code code = llvm::sys::fs::create_directories(options.dumpDir);
  std::string path = options.dumpDir + "/mutant-" + std::to_string(seed) +
                     llvm::sys::path::extension(input.path).str();
  llvm::raw_fd_ostream file(path, code);
  if (code)
    llvm::errs() << "error: " << path << ": " << code.message() << "\n";
  else
    file << mutantOf(input, seed);
}

int tessera::fuzz::runMutants(const MutantOptions &options) {
  std::vector<Input> inputs;
  for (const std::string &path : options.files) {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    if (std::error_code code = buffer.getError()) {
      llvm::errs() << "error: " << path << ": " << code.message() << "\n";
      return 1;
    }
    inputs.push_back({path, (*buffer)->getBuffer().str()});
  }
  int64_t accepted = 0, refused = 0, unreadable = 0, wrong = 0;
  auto inputOf = [&](uint64_t seed) -> const Input & { return inputs[seed % inputs.size()]; };
  runCampaign(
      options.first, options.last, options.jobs, options.seconds,
      [&](uint64_t seed) {
        rlimit memory{kMemory, kMemory};
        ::setrlimit(RLIMIT_AS, &memory);
        return passed(readMutant(inputOf(seed), seed));
      },
      [&](uint64_t seed, const Verdict &verdict) {
        const Input &input = inputOf(seed);
        if (verdict.status == "passed") {
          ++(verdict.message == "accepted" ? accepted : refused);
        } else if (verdict.status == "crash" && isReadCrash(input, seed)) {
          ++unreadable;
        } else {
          ++wrong;
          llvm::outs() << "seed " << seed << ": FAILED " << verdict.status << ": " << input.path
                       << ": " << verdict.message << "\n";
          llvm::outs().flush();
          dump(options, input, seed);
        }
      });
  llvm::outs() << options.last - options.first << " mutants: " << accepted << " accepted, "
               << refused << " refused, " << unreadable
               << " that MLIR cannot read and supervision reports, " << wrong
               << " crashes and hangs\n";
  return wrong == 0 ? 0 : 1;
}
