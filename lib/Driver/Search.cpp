//===- Search.cpp - tessera search ----------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Transforms/Search.h"
#include "tessera/Driver/Commands.h"
#include "tessera/Driver/Compilation.h"
#include "tessera/Planning/CostOptions.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace tessera;
using namespace tessera::solver;

static int fail(const std::string &message) {
  llvm::errs() << "error: " << message << "\n";
  return 1;
}

static llvm::json::Value toJson(const Solution &solution, Mode mode) {
  llvm::json::Array choice;
  for (int64_t strategy : solution.choice)
    choice.push_back(strategy);
  return llvm::json::Object{{"mode", std::string(dist::nameOf(mode))},
                            {"cost", solution.cost},
                            {"lower_bound", solution.lowerBound},
                            {"gap", solution.gap()},
                            {"memory_bytes", solution.memory},
                            {"choice", std::move(choice)},
                            {"seconds", solution.seconds},
                            {"cpu_seconds", solution.cpuSeconds},
                            {"stopped_by_time", solution.stoppedByTime}};
}

/// Solves the tables of a file.
static int searchProblem(const SearchOptions &options, Mode mode) {
  Expected<Problem> problem = readProblem(options.problem);
  if (auto *error = std::get_if<Error>(&problem))
    return fail(error->message);
  Options requested;
  requested.mode = mode;
  if (options.search.memoryBudget)
    requested.memoryBudget = *options.search.memoryBudget * 1024 * 1024 * 1024;
  requested.timeLimit = options.search.timeLimit;
  requested.solverLibrary = options.search.solver;
  if (!options.mps.empty())
    if (auto error = writeMps(std::get<Problem>(problem), requested, options.mps))
      return fail(error->message);
  Expected<Solution> solution = solve(std::get<Problem>(problem), requested);
  if (auto *error = std::get_if<Error>(&solution))
    return fail(error->message);
  const Solution &found = std::get<Solution>(solution);
  if (options.json.empty()) {
    llvm::outs() << llvm::format("%s: cost %.9g, lower bound %.9g, gap %.2f %%, memory %.2f MiB, "
                                 "%.4f s%s\n",
                                 dist::nameOf(requested.mode).data(), found.cost, found.lowerBound,
                                 100 * found.gap(), found.memory / (1 << 20), found.seconds,
                                 found.stoppedByTime ? ", stopped by the time limit" : "");
    return 0;
  }
  std::string text;
  llvm::raw_string_ostream(text) << toJson(found, requested.mode) << "\n";
  return writeText(options.json, text);
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

static std::string shapeText(const dist::SearchedPlan &plan) {
  std::string text;
  for (int64_t extent : plan.meshShape)
    text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text.empty() ? "declared" : text;
}

static llvm::json::Value toJson(const dist::SearchedPlan &plan) {
  return llvm::json::Object{{"mesh_shape", llvm::json::Array(plan.meshShape)},
                            {"cost", plan.cost},
                            {"lower_bound", plan.lowerBound},
                            {"gap", plan.gap()},
                            {"compute_seconds", plan.computeSeconds},
                            {"propagation_cost", plan.propagationCost},
                            {"memory_bytes", plan.memory},
                            {"mode", std::string(dist::nameOf(plan.mode))},
                            {"parallelisms", llvm::json::Array(plan.parallelisms)},
                            {"seconds", plan.seconds},
                            {"solver_cpu_seconds", plan.solverCpuSeconds},
                            {"stopped_by_time", plan.stoppedByTime}};
}

static void printPlans(llvm::ArrayRef<dist::SearchedPlan> plans) {
  llvm::outs() << "  plan  mesh        step ms    compute ms  comm ms    bound ms   gap %   "
                  "propagation ms  memory MiB  search s  parallelism\n";
  for (auto [index, plan] : llvm::enumerate(plans))
    llvm::outs() << llvm::format("  %-4d  %-10s  %-9.6g  %-10.6g  %-9.6g  %-9.6g  %-6.2f  %-14.6g  "
                                 "%-10.2f  %-8.3f  ",
                                 static_cast<int>(index + 1), shapeText(plan).c_str(),
                                 1e3 * plan.cost, 1e3 * plan.computeSeconds,
                                 1e3 * (plan.cost - plan.computeSeconds), 1e3 * plan.lowerBound,
                                 100 * plan.gap(), 1e3 * plan.propagationCost,
                                 plan.memory / (1 << 20), plan.seconds)
                 << llvm::join(plan.parallelisms, "; ")
                 << (plan.stoppedByTime ? " (stopped by the time limit)" : "") << "\n";
}

/// Compares plans for a program.
static int searchProgram(const SearchOptions &options, Mode mode) {
  ProgramOptions program = options;
  program.search.mode.clear(); // stops at the normalized phase
  Compilation compilation(program);
  if (mlir::failed(compilation.checkCanSearch()) ||
      mlir::failed(compilation.toPhase(Phase::normalized)) ||
      mlir::failed(compilation.checkCanSearch())) // the program as loaded
    return 1;
  mlir::FailureOr<dist::CostOptions> cost =
      dist::readCostOptions(compilation.module(), "time", options.topology);
  if (mlir::failed(cost))
    return 1;
  if (mlir::failed(checkDevices(compilation.module(), options.search)))
    return 1;
  dist::SearchSettings settings;
  settings.solver.mode = mode;
  if (options.search.memoryBudget)
    settings.solver.memoryBudget = *options.search.memoryBudget * 1024 * 1024 * 1024;
  settings.solver.timeLimit = options.search.timeLimit;
  settings.solver.solverLibrary = options.search.solver;
  if (options.search.minimise == Minimise::memory) {
    if (options.search.memoryBudget)
      return fail("--minimise memory cannot be combined with --memory-budget");
    settings.minimiseMemory();
  }
  settings.topology = cost->topology;
  settings.fullyUseDevices = options.search.fullyUseDevices;
  settings.devices = options.search.devices;
  dist::ModuleSearch search(compilation.module(), settings);
  if (mlir::failed(search.run()))
    return 1;
  if (search.plans().empty())
    return fail(
        options.file +
        ": the program declares no mesh; give the number of devices to search for with --devices");
  if (options.remarks)
    search.write(0);
  llvm::ArrayRef<dist::SearchedPlan> plans(search.plans());
  plans = plans.take_front(static_cast<size_t>(std::max<int64_t>(1, options.top)));
  if (options.json.empty()) {
    printPlans(plans);
    return 0;
  }
  llvm::json::Array list;
  for (const dist::SearchedPlan &plan : plans)
    list.push_back(toJson(plan));
  llvm::json::Value report = llvm::json::Object{{"version", 1},
                                                {"mode", std::string(dist::nameOf(mode))},
                                                {"topology", settings.topology.name},
                                                {"plans", std::move(list)}};
  return writeText(options.json, llvm::formatv("{0:2}\n", report).str());
}

int tessera::search(const SearchOptions &options) {
  Expected<Mode> mode = dist::parseMode(options.search.mode);
  if (auto *error = std::get_if<Error>(&mode))
    return fail(error->message);
  if (options.problem.empty() == options.file.empty())
    return fail(
        "search takes a program, or --problem FILE with an exported problem (- for standard "
        "input)");
  return options.problem.empty() ? searchProgram(options, std::get<Mode>(mode))
                                 : searchProblem(options, std::get<Mode>(mode));
}
