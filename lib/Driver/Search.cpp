//===- Search.cpp - tessera search ------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Driver/Commands.h"
#include "tessera/Sharding/Search/Solver.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace tessera;
using namespace tessera::sharding::search;

static int fail(const std::string &message) {
  llvm::errs() << "error: " << message << "\n";
  return 1;
}

static llvm::json::Value toJson(const Solution &solution, Mode mode) {
  llvm::json::Array choice;
  for (int64_t strategy : solution.choice)
    choice.push_back(strategy);
  return llvm::json::Object{
      {"mode", std::string(nameOf(mode))},  {"cost", solution.cost},
      {"lower_bound", solution.lowerBound}, {"gap", solution.gap()},
      {"memory_bytes", solution.memory},    {"choice", std::move(choice)},
      {"seconds", solution.seconds},        {"stopped_by_time", solution.stoppedByTime}};
}

int tessera::search(const SearchOptions &options) {
  if (options.problem.empty())
    return fail("--problem is missing; it names a file with an exported problem, - for standard "
                "input");
  Expected<Mode> mode = parseMode(options.mode);
  if (auto *error = std::get_if<Error>(&mode))
    return fail(error->message);
  Expected<Problem> problem = readProblem(options.problem);
  if (auto *error = std::get_if<Error>(&problem))
    return fail(error->message);
  Options wish;
  wish.mode = std::get<Mode>(mode);
  if (options.memoryBudget)
    wish.memoryBudget = *options.memoryBudget * 1024 * 1024 * 1024;
  wish.timeLimit = options.timeLimit;
  wish.solverLibrary = options.solver;
  if (!options.mps.empty())
    if (auto error = writeMps(std::get<Problem>(problem), wish, options.mps))
      return fail(error->message);
  Expected<Solution> solution = solve(std::get<Problem>(problem), wish);
  if (auto *error = std::get_if<Error>(&solution))
    return fail(error->message);
  const Solution &found = std::get<Solution>(solution);
  if (options.json.empty()) {
    llvm::outs() << llvm::format("%s: cost %.9g, lower bound %.9g, gap %.2f %%, memory %.2f MiB, "
                                 "%.4f s%s\n",
                                 nameOf(wish.mode).data(), found.cost, found.lowerBound,
                                 100 * found.gap(), found.memory / (1 << 20), found.seconds,
                                 found.stoppedByTime ? ", stopped by the time limit" : "");
    return 0;
  }
  if (options.json == "-") {
    llvm::outs() << toJson(found, wish.mode) << "\n";
    return 0;
  }
  std::error_code error;
  llvm::raw_fd_ostream out(options.json, error);
  if (error)
    return fail("cannot write '" + options.json + "': " + error.message());
  out << toJson(found, wish.mode) << "\n";
  return 0;
}
