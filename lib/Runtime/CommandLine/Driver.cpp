//===- Driver.cpp - Running a program from the command line ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/CommandLine/Driver.h"

#include "../Artifact/Steps.h"
#include "../Ranks/Routes.h"
#include "tessera/Runtime/CommandLine/Npy.h"
#include "tessera/Runtime/Execution/GemmTable.h"
#include "tessera/Runtime/Session/Compare.h"
#include "tessera/Support/Bytes.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <new>
#include <set>
#include <sys/resource.h>
#include <unistd.h>

namespace tessera::runtime {

Expected<DriverOptions::NamedFile> parseNamedFile(const std::string &option,
                                                  const std::string &text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return Status::error(option + " '" + text + "': expected name=file.npy");
  return DriverOptions::NamedFile{text.substr(0, equals), text.substr(equals + 1)};
}

template <typename List> static std::string namesOf(const List &list) {
  std::string names;
  for (const auto &each : list)
    names += (names.empty() ? "" : ", ") + each.name;
  return names.empty() ? "none" : names;
}

namespace {

using Seconds = std::chrono::duration<double>;

/// CPU time of all threads of this process so far.
double coreSeconds() {
  struct rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval &time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// A progress line on standard error for long runs: overwritten on a terminal, rare elsewhere.
class Progress {
public:
  Progress(int64_t steps, bool quiet)
      : steps(steps), terminal(::isatty(STDERR_FILENO) == 1), silent(quiet || steps < 2) {}
  ~Progress() {
    if (shown && terminal)
      std::fputs("\r\033[K", stderr);
  }
  /// Called after each step; `printed`: the step has printed a line itself.
  void update(int64_t done, bool printed) {
    double now = elapsed();
    bool visible = printed && ::isatty(STDOUT_FILENO) == 1;
    if (silent || visible || now < 2 || now - last < (terminal ? 0.2 : 10) || done == steps)
      return;
    last = now;
    shown = true;
    double left = now / static_cast<double>(done) * static_cast<double>(steps - done);
    std::fprintf(stderr, "%sstep %lld of %lld, %.0f s, about %.0f s left%s", terminal ? "\r" : "",
                 static_cast<long long>(done), static_cast<long long>(steps), now, left,
                 terminal ? "\033[K" : "\n");
    std::fflush(stderr);
  }
  double elapsed() const { return Seconds(std::chrono::steady_clock::now() - begin).count(); }

private:
  int64_t steps;
  bool terminal, silent, shown = false;
  double last = 0;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
};

/// An argument whose value changes every step.
struct Stream {
  int64_t argument;
  HostTensor values; ///< leading axis: the step
};

/// The run itself, from options to report.
class Run {
public:
  Run(std::shared_ptr<const Artifact> artifact, const DriverOptions &options)
      : artifact(std::move(artifact)), program(this->artifact->program), options(options),
        printing(!options.quiet && options.jsonPath != "-") {}

  Expected<RunReport> operator()() {
    TESSERA_RETURN_IF_ERROR(checkSeed());
    TESSERA_RETURN_IF_ERROR(checkHostMemory());
    TESSERA_RETURN_IF_ERROR(checkNames());
    TESSERA_RETURN_IF_ERROR(openSession());
    TESSERA_RETURN_IF_ERROR(loadInputs());
    TESSERA_RETURN_IF_ERROR(loadStreams());
    TESSERA_RETURN_IF_ERROR(decideSteps());
    constexpr int64_t kMostTimedSteps = 10000; // two events each
    if (!options.jsonPath.empty())
      TESSERA_RETURN_IF_ERROR(
          session->executor().timeSteps(std::min(report.steps, kMostTimedSteps)));
    reportsResults = session->executor().reportsResults();
    printing &= reportsResults;
    if (printing)
      std::fputs(planSummary(*artifact).c_str(), stdout);
    TESSERA_RETURN_IF_ERROR(runSteps());
    TESSERA_RETURN_IF_ERROR(collect());
    return std::move(report);
  }

private:
  /// A seed that the backend ignores is an error.
  Status checkSeed() {
    auto backend = findBackend(options.backend);
    if (options.scheduleSeed == 0 || !backend || backend->readsScheduleSeed)
      return {}; // the session reports an unknown backend
    return Status::error("--schedule-seed " + std::to_string(options.scheduleSeed) +
                         " applies to backend stub, not to '" + options.backend + "'");
  }

  /// Arguments and results are whole on the host.
  Status checkHostMemory() {
    double wanted = 0, machine = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                                 static_cast<double>(::sysconf(_SC_PAGESIZE));
    auto add = [&](const auto &ports) {
      for (const auto &port : ports)
        wanted += static_cast<double>(elementCount(port.globalShape).value_or(0)) *
                  static_cast<double>(sizeOf(port.dtype));
    };
    add(program.arguments);
    add(program.results);
    if (wanted <= machine)
      return {};
    return Status::error("arguments and results take " + bytesText(wanted) +
                         " together, this machine has " + bytesText(machine));
  }

  Status checkNames() {
    std::set<std::string> given;
    for (auto *list : {&options.inputs, &options.streams})
      for (auto &[name, path] : *list) {
        const char *option = list == &options.inputs ? "--input " : "--stream ";
        int64_t index = program.findArgument(name);
        if (index < 0)
          return Status::error(option + name + ": the program has no such argument; it has " +
                               namesOf(program.arguments));
        if (!given.insert(name).second)
          return Status::error(option + name + ": duplicate value for the argument");
        bool fed = std::any_of(program.results.begin(), program.results.end(),
                               [&](const Result &result) { return result.feeds == index; });
        if (fed && list == &options.streams)
          return Status::error(option + name +
                               ": a result of each step feeds this argument; give --input instead");
      }
    given.clear();
    for (auto &[name, path] : options.outputs) {
      if (program.findResult(name) < 0)
        return Status::error("--output " + name + ": the program has no such result; it has " +
                             namesOf(program.results));
      if (!given.insert(name).second)
        return Status::error("--output " + name + ": duplicate file for the result");
    }
    TESSERA_RETURN_IF_ERROR(checkDistinctFiles());
    // A run may take hours: checks before it that files can be written.
    for (auto &[name, path] : options.outputs)
      TESSERA_RETURN_IF_ERROR(checkFolder(path));
    TESSERA_RETURN_IF_ERROR(checkFolder(options.tracePath));
    return checkFolder(options.jsonPath);
  }

  /// Outputs go to distinct files, under any spelling of their paths.
  Status checkDistinctFiles() {
    DriverOptions::NamedFile trace{"--trace", options.tracePath}, json{"--json", options.jsonPath};
    std::vector<DriverOptions::NamedFile> files{trace, json};
    for (auto &[name, path] : options.outputs)
      files.push_back({"--output " + name, path});
    std::map<std::string, std::string> writers; // by file
    for (auto &[writer, path] : files) {
      std::string file =
          path.empty() || (writer == "--json" && path == "-") ? "" : fileBehind(path);
      if (file.empty())
        continue;
      auto [it, isNew] = writers.try_emplace(file, writer);
      if (!isNew)
        return Status::error(writer + ": '" + path + "' is already the file of " + it->second +
                             "; give each output a file of its own");
    }
    return {};
  }

  static Status checkFolder(const std::string &path) {
    if (path.empty() || path == "-")
      return {};
    size_t slash = path.rfind('/');
    std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    if (::access(folder.c_str(), W_OK) != 0)
      return Status::error(path + ": " + std::strerror(errno));
    return {};
  }

  Status openSession() {
    SessionOptions session{options.backend,
                           {options.devices, options.cores, !options.tracePath.empty(),
                            options.scheduleSeed, options.timeout, options.dumpFolder,
                            options.guard == "full", options.precision, options.pins},
                           options.seed};
    auto opened = Session::open(artifact, session);
    if (!opened)
      return opened.status();
    this->session = std::move(*opened);
    return {};
  }

  Status loadInputs() {
    for (auto &[name, path] : options.inputs) {
      int64_t index = program.findArgument(name);
      const Argument &argument = program.arguments[index];
      auto file = readNpy(path);
      if (!file)
        return file.status().in("--input " + name);
      auto value = asArgument(std::move(*file), argument.dtype, argument.globalShape,
                              "--input " + name + ": " + path);
      if (!value)
        return value.status();
      TESSERA_RETURN_IF_ERROR(session->setArgument(index, std::move(*value)));
    }
    return {};
  }

  Status loadStreams() {
    for (auto &[name, path] : options.streams) {
      int64_t index = program.findArgument(name);
      const Argument &argument = program.arguments[index];
      std::string origin = "--stream " + name;
      auto file = readNpy(path);
      if (!file)
        return file.status().in(origin);
      if (file->shape.empty() || file->shape[0] == 0)
        return Status::error(origin + ": " + path +
                             ": the leading axis is the step; the array is " +
                             typeText(file->dtype, file->shape));
      Shape wanted = argument.globalShape;
      wanted.insert(wanted.begin(), file->shape[0]);
      auto value = asArgument(std::move(*file), argument.dtype, wanted, origin + ": " + path);
      if (!value)
        return value.status();
      streams.push_back({index, std::move(*value)});
    }
    return {};
  }

  Status decideSteps() {
    int64_t shortest = -1;
    size_t which = 0;
    for (size_t i = 0; i < streams.size(); ++i)
      if (int64_t length = streams[i].values.shape[0]; shortest < 0 || length < shortest) {
        shortest = length;
        which = i;
      }
    report.steps = options.steps.value_or(shortest < 0 ? 1 : shortest);
    if (report.steps < 1)
      return Status::error("--steps " + std::to_string(report.steps) +
                           ": expected at least one step");
    if (shortest >= 0 && report.steps > shortest)
      return Status::error("--steps " + std::to_string(report.steps) + ": " +
                           options.streams[which].second + " holds " + std::to_string(shortest) +
                           " steps of '" + options.streams[which].first + "'");
    return {};
  }

  Status setStreams(int64_t step) {
    for (Stream &stream : streams) {
      const Argument &argument = program.arguments[stream.argument];
      HostTensor slice = HostTensor::zeros(argument.dtype, argument.globalShape);
      std::copy_n(stream.values.data.data() + step * static_cast<int64_t>(slice.data.size()),
                  slice.data.size(), slice.data.data());
      TESSERA_RETURN_IF_ERROR(session->setArgument(stream.argument, std::move(slice)));
    }
    return {};
  }

  Status runSteps() {
    std::vector<int64_t> scalars;
    for (size_t i = 0; i < program.results.size(); ++i)
      if (program.results[i].globalShape.empty()) {
        scalars.push_back(static_cast<int64_t>(i));
        report.scalarNames.push_back(program.results[i].name);
      }
    Progress progress(report.steps, options.quiet || !reportsResults);
    for (int64_t step = 0; step < report.steps; ++step) {
      TESSERA_RETURN_IF_ERROR(setStreams(step));
      double begin = progress.elapsed(), beginCores = coreSeconds();
      TESSERA_RETURN_IF_ERROR(session->step());
      report.stepSeconds.push_back(progress.elapsed() - begin);
      report.stepCoreSeconds.push_back(coreSeconds() - beginCores);
      if (step == 0)
        report.firstStep = session->executor().counters();
      std::string line = "step " + std::to_string(step + 1);
      auto &values = report.scalars.emplace_back();
      for (int64_t index : scalars) {
        auto value = session->result(index, Executor::Readers::reporter);
        if (!value)
          return value.status();
        if (!reportsResults)
          continue;
        values.push_back(value->number(0));
        line += "  " + program.results[index].name + " " + scalarText(*value);
      }
      if (printing && !scalars.empty()) {
        std::printf("%s\n", line.c_str());
        std::fflush(stdout);
      }
      progress.update(step + 1, printing && !scalars.empty());
    }
    TESSERA_RETURN_IF_ERROR(session->executor().finish());
    report.seconds = progress.elapsed();
    auto onDevice = session->executor().stepSeconds();
    if (!onDevice)
      return onDevice.status();
    report.deviceStepSeconds = std::move(*onDevice);
    report.laterSteps = session->executor().counters();
    for (size_t i = 0; i < report.laterSteps.size(); ++i)
      report.laterSteps[i].second -= report.firstStep[i].second;
    return {};
  }

  static std::string scalarText(const HostTensor &value) {
    if (!isFloat(value.dtype))
      return std::to_string(value.integer(0));
    char buffer[32];
    std::snprintf(buffer, sizeof(buffer), value.dtype == DType::f64 ? "%.12g" : "%.7g",
                  value.number(0));
    return buffer;
  }

  Status collect() {
    for (size_t i = 0; i < program.results.size(); ++i) {
      auto value = session->result(static_cast<int64_t>(i), Executor::Readers::reporter);
      if (!value)
        return value.status();
      if (!reportsResults)
        continue;
      if (printing && !value->shape.empty())
        std::printf("%s  %s  checksum %s\n", program.results[i].name.c_str(),
                    typeText(value->dtype, value->shape).c_str(),
                    hexText(value->checksum()).c_str());
      report.results.push_back({program.results[i].name, std::move(*value)});
    }
    report.reportsResults = reportsResults;
    report.devices = program.numDevices();
    report.seed = options.seed;
    report.backend = options.backend;
    if (auto kernels = chooseKernels(artifact->kernels); kernels && *kernels)
      report.cpu = (*kernels)->cpu;
    if (artifact->gpu.empty() && hasStep<GemmStep>(program))
      report.products = describeGemmChoice();
    report.collectives = session->executor().stats();
    if (options.backend == "mpi" || options.backend == "tcp")
      TESSERA_RETURN_IF_ERROR(reportRoutes());
    report.trace = session->executor().traceJson();
    return {};
  }

  Status reportRoutes() {
    auto all = routesOf(program);
    if (!all)
      return all.status();
    for (CollectiveRoutes &each : *all) {
      auto &routes =
          report.routes.emplace_back(RunReport::Routes{each.id, std::move(each.algorithms), {}});
      for (auto &[ends, bytes] : each.bytes)
        routes.sent.push_back({ends.first, ends.second, bytes});
    }
    return {};
  }

  std::shared_ptr<const Artifact> artifact;
  const Program &program;
  const DriverOptions &options;
  bool reportsResults = true; ///< one process of the job prints
  bool printing;              ///< false if JSON goes to standard output
  std::unique_ptr<Session> session;
  std::vector<Stream> streams;
  RunReport report;
};

} // namespace

Expected<RunReport> runProgram(std::shared_ptr<const Artifact> artifact,
                               const DriverOptions &options) {
  try {
    return Run(std::move(artifact), options)();
  } catch (const std::bad_alloc &) {
    return Status::error("out of memory");
  }
}

int printError(const Status &status) {
  if (status.isReportedElsewhere())
    return 1;
  std::fflush(stdout);
  std::fprintf(stderr, "tessera: error: %s\n", status.message().c_str());
  return 1;
}

int runDriver(std::shared_ptr<const Artifact> artifact, const DriverOptions &options) {
  auto report = runProgram(std::move(artifact), options);
  if (!report)
    return printError(report.status());
  if (Status status = writeOutputs(*report, options); !status.ok())
    return printError(status);
  return 0;
}

} // namespace tessera::runtime
