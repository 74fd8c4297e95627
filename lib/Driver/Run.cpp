//===- Run.cpp - tessera compile and tessera run --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ArtifactCache.h"

#include "tessera/Driver/Commands.h"
#include "tessera/Driver/Compilation.h"
#include "tessera/Driver/InterpreterCheck.h"

#include "tessera/Codegen/CUDA/Architectures.h"
#include "tessera/Codegen/Compile.h"
#include "tessera/Runtime/Session/Backend.h"
#include "tessera/Variants/Arena.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace tessera;
using llvm::failed;

static std::vector<std::string> splitAtCommas(llvm::ArrayRef<std::string> lists) {
  std::vector<std::string> result;
  for (llvm::StringRef list : lists)
    for (llvm::StringRef each : llvm::split(list, ','))
      result.push_back(each.str());
  return result;
}

/// Checks that a cache directory given by name exists or can be created. Empty, or the error.
static std::string checkCache(const CompileOptions &options) {
  if (options.noCache || options.cacheDirectory.empty())
    return "";
  std::error_code code = llvm::sys::fs::create_directories(options.cacheDirectory);
  if (!code && !llvm::sys::fs::is_directory(options.cacheDirectory))
    code = std::make_error_code(std::errc::not_a_directory);
  return code ? "--cache '" + options.cacheDirectory + "': " + code.message() +
                    "; expected a directory for compiled kernels"
              : "";
}

/// Why some option does not apply to the target, or empty.
static std::string checkTarget(const CompileOptions &options, Target target) {
  std::string other = ", not to '" + std::string(nameOf(target)) + "'";
  if (!options.archs.empty() && target != Target::cuda)
    return "--arch applies to target cuda" + other;
  if (options.warpgroups && target == Target::cpu)
    return "--warpgroups applies to targets cuda and stub" + other;
  if (!options.cpus.empty() && target != Target::cpu)
    return "--cpu applies to target cpu" + other;
  return checkCache(options);
}

/// Why some CPU is not valid, or empty.
static std::string checkCpus(llvm::ArrayRef<std::string> cpus) {
  for (auto [i, cpu] : llvm::enumerate(cpus)) {
    if (std::string why = codegen::checkCpu(cpu); !why.empty())
      return why;
    if (llvm::is_contained(cpus.take_front(i), cpu))
      return "--cpu names '" + cpu + "' twice";
  }
  return "";
}

/// What the command line states about the code; nothing after an error.
static std::optional<codegen::ArtifactOptions>
artifactOptions(Compilation &compilation, const CompileOptions &options, Target target) {
  codegen::ArtifactOptions result;
  result.cpus = splitAtCommas(options.cpus);
  result.cpu.cacheDirectory = options.cacheDirectory;
  result.cpu.useCache = !options.noCache;
  std::string why = checkTarget(options, target);
  if (why.empty() && target == Target::cpu)
    why = checkCpus(result.cpus);
  if (why.empty() && target != Target::cpu) {
    codegen::GpuOptions &gpu = result.gpu.emplace();
    if (target == Target::stub)
      gpu.archs = {"stub"};
    else if (!options.archs.empty())
      gpu.archs = splitAtCommas(options.archs);
    gpu.warpgroups = options.warpgroups;
    gpu.cacheDirectory = options.cacheDirectory;
    gpu.useCache = !options.noCache;
    why = codegen::checkArchitectures(gpu.archs, gpu.warpgroups);
  }
  if (why.empty())
    return result;
  compilation.errors() << "error: " << why << "\n";
  return std::nullopt;
}

/// One line per kernel: its launches' schemes, and spilled registers per thread.
static void printGpuKernels(llvm::ArrayRef<codegen::GpuKernelInfo> infos) {
  for (const codegen::GpuKernelInfo &info : infos) {
    llvm::outs() << "kernel " << info.name << " ";
    int64_t spilled = 0, registers = 0;
    for (const codegen::GpuLaunchInfo &launch : info.launches) {
      if (!launch.tf32) // runs in place of the others
        llvm::outs() << " " << codegen::toString(launch.scheme);
      for (const codegen::GpuUsage &usage : launch.usage) {
        spilled += usage.spillBytes;
        registers = std::max(registers, usage.registers);
      }
    }
    if (registers)
      llvm::outs() << "  " << registers << " registers";
    if (spilled)
      llvm::outs() << ", " << spilled << " bytes spilled";
    llvm::outs() << (info.reason.empty() ? "" : "  (" + info.reason + ")") << "\n";
  }
}

/// One program as an artifact; with its plan summary unless it is the reference of a check.
static std::shared_ptr<const runtime::Artifact>
compileWith(Compilation &compilation, const CompileOptions &options, bool singleDevice) {
  Target target = options.target.value_or(Target::cpu);
  std::optional<codegen::ArtifactOptions> codegenOptions =
      artifactOptions(compilation, options, target);
  if (!codegenOptions)
    return nullptr;
  if (codegenOptions->gpu)
    compilation.keepAttentionWhole();
  if (target == Target::cuda)
    compilation.overlapByDefault();
  if (failed(singleDevice ? compilation.toSingleDevice() : compilation.toLocalView()))
    return nullptr;
  mlir::FailureOr<Report> report = compilation.report();
  if (failed(report))
    return nullptr;
  if (failed(compilation.toSteps(codegenOptions->gpu.has_value())))
    return nullptr;
  report->peakMemoryBytes = peakMemory(compilation.module());

  llvm::json::Value json = report->toJson();
  std::string summary;
  llvm::raw_string_ostream os(summary);
  report->printTable(os);
  json.getAsObject()->insert({"summary", summary});

  codegenOptions->report = llvm::formatv("{0}", json).str();
  std::vector<codegen::KernelInfo> infos;
  std::vector<codegen::GpuKernelInfo> gpuInfos;
  mlir::FailureOr<runtime::Artifact> artifact =
      codegen::compileRt(compilation.module(), *codegenOptions, &infos, &gpuInfos);
  if (failed(artifact))
    return nullptr;
  if (options.kernels)
    printGpuKernels(gpuInfos);
  if (options.kernels)
    for (const codegen::KernelInfo &info : infos)
      llvm::outs() << "kernel " << info.name << "  "
                   << (codegenOptions->cpus.size() > 1 ? "for " + info.cpu + "  " : "")
                   << (info.scheme == codegen::KernelScheme::Fallback ? "plain loops"
                                                                      : "vectorised")
                   << (info.reason.empty() ? "" : "  (" + info.reason + ")") << "\n";
  return std::make_shared<const runtime::Artifact>(std::move(*artifact));
}

std::shared_ptr<const runtime::Artifact> tessera::compileProgram(const CompileOptions &options) {
  Compilation compilation(options);
  return compileWith(compilation, options, /*singleDevice=*/false);
}

std::shared_ptr<const runtime::Artifact> tessera::compileOnce(const CompileOptions &options) {
  ArtifactCache cache(options);
  std::string messages;
  std::shared_ptr<const runtime::Artifact> artifact = cache.load(messages);
  if (!artifact) {
    CompileOptions capturing = options;
    capturing.messages = &messages;
    artifact = compileProgram(capturing);
    if (artifact)
      cache.store(*artifact, messages);
  }
  if (options.messages)
    *options.messages += messages;
  else
    llvm::errs() << messages;
  return artifact;
}

int tessera::compile(const CompileOptions &options) {
  auto artifact = compileProgram(options);
  if (!artifact)
    return 1;
  runtime::Status status = runtime::writeArtifact(*artifact, options.output);
  return status.ok() ? 0 : runtime::printError(status);
}

/// The same steps and inputs on one device.
static runtime::Expected<runtime::RunReport> runReference(const RunOptions &options,
                                                          const runtime::Artifact &program,
                                                          const runtime::RunReport &report) {
  if (options.check == Check::interpreter)
    return interpretReference(options, program.program, report);
  Compilation compilation(options);
  CompileOptions compileOptions = options;
  compileOptions.kernels = false;
  compileOptions.target = Target::cpu; // independent of the code for a GPU
  compileOptions.archs.clear();        // of target cuda
  compileOptions.warpgroups = false;
  auto artifact = compileWith(compilation, compileOptions, /*singleDevice=*/true);
  if (!artifact)
    return runtime::Status::error("the program without its meshes does not compile");
  runtime::DriverOptions driver = options.driver;
  driver.quiet = true;
  driver.devices = 0;
  driver.steps = report.steps;
  if (options.target != Target::cpu)
    driver.backend = "threads", driver.scheduleSeed = 0;
  if (auto backend = runtime::findBackend(driver.backend); backend && backend->hasProcesses)
    driver.backend = "threads"; // one process checks
  return runtime::runProgram(artifact, driver);
}

/// Standard input can be read only once, but a check compiles the program again.
static RunOptions withStandardInput(RunOptions options) {
  if (options.file != "-" || options.text)
    return options;
  if (llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> buffer = llvm::MemoryBuffer::getSTDIN()) {
    options.text = (*buffer)->getBuffer().str();
    options.file = "<stdin>";
  }
  return options;
}

/// The target whose code a backend executes; this CPU for an unknown backend, which the run will
/// reject.
static runtime::Expected<Target> targetOfBackend(const std::string &backend) {
  auto found = runtime::findBackend(backend);
  if (!found)
    return Target::cpu;
  if (std::optional<Target> target = parse<Target>(found->target))
    return *target;
  return runtime::Status::error("backend '" + backend +
                                "': " + unknownName<Target>("target", found->target));
}

int tessera::run(const RunOptions &requested) {
  RunOptions options = withStandardInput(requested);
  if (!options.plugin.empty())
    if (runtime::Status status = runtime::loadBackend(options.plugin); !status.ok())
      return runtime::printError(status);
  auto target = targetOfBackend(options.driver.backend);
  if (!target)
    return runtime::printError(target.status());
  if (options.target.value_or(*target) != *target)
    return runtime::printError(runtime::Status::error(
        "--target '" + std::string(nameOf(*options.target)) + "': backend '" +
        options.driver.backend + "' runs '" + std::string(nameOf(*target)) +
        "'; leave --target out, or name another --backend"));
  options.target = *target;
  if (options.driver.devices < 0 || options.driver.cores < 0)
    return runtime::printError(runtime::Status::error("--devices and --cores must be positive"));
  std::shared_ptr<const runtime::Artifact> artifact;
  {
    Compilation compilation(options);
    artifact = compileWith(compilation, options, /*singleDevice=*/false);
    if (artifact && options.check != Check::none && failed(compilation.checkHasReference()))
      return 1;
  }
  if (!artifact)
    return 1;
  auto report = runtime::runProgram(artifact, options.driver);
  if (!report)
    return runtime::printError(report.status());
  bool equal = true;
  if (options.check != Check::none && report->reportsResults) {
    auto reference = runReference(options, *artifact, *report);
    if (!reference)
      return runtime::printError(reference.status());
    equal = runtime::checkAgainst(*report, *reference);
    std::string note;
    if (options.check == Check::both)
      equal &= checkIfSmall(options, artifact->program, *report, note);
    if (options.driver.jsonPath != "-") { // standard output is JSON then
      runtime::printChecks(*report);
      if (!note.empty())
        std::printf("interpreter  %s\n", note.c_str());
    }
  }
  runtime::Status written = runtime::writeOutputs(*report, options.driver);
  if (!written.ok())
    return runtime::printError(written);
  return equal ? 0 : 1;
}
