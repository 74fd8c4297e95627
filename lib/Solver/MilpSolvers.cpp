//===- MilpSolvers.cpp - HiGHS and CBC ------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// HiGHS is opened with dlopen; the few functions used of its C interface
// (highs/interfaces/highs_c_api.h) are declared here. CBC runs as a program on an MPS
// file.
//
//===----------------------------------------------------------------------===//

#include "Milp.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <limits>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <cstdlib>
#include <fcntl.h>

extern char **environ;

namespace tessera::solver {
namespace {

/// The relative gap at which a solver may stop.
constexpr double solverGap = 1e-9;
/// Seconds after the limit for a solver to stop and write its solution.
constexpr double graceSeconds = 1;

struct Highs {
  void *(*create)();
  void (*destroy)(void *);
  int (*setBool)(void *, const char *, int);
  int (*setInt)(void *, const char *, int);
  int (*setDouble)(void *, const char *, double);
  int (*passMip)(void *, int columns, int rows, int nonzeros, int format, int sense, double offset,
                 const double *cost, const double *lower, const double *upper,
                 const double *rowLower, const double *rowUpper, const int *start, const int *index,
                 const double *value, const int *integrality);
  int (*run)(void *);
  int (*status)(const void *);
  int (*solution)(const void *, double *, double *, double *, double *);
  int (*info)(const void *, const char *, double *);
  int (*sizeOfInt)(const void *);
};

/// Constants of HiGHS (HConst.h).
enum { columnwise = 1, minimise = 1, optimal = 7, infeasible = 8, timeLimit = 13 };

template <typename Function> bool load(void *library, const char *name, Function &function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

/// Null if the library does not exist or is not HiGHS.
void *openHighs(const std::string &path, Highs &highs) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return nullptr;
  bool good = load(library, "Highs_create", highs.create) &&
              load(library, "Highs_destroy", highs.destroy) &&
              load(library, "Highs_setBoolOptionValue", highs.setBool) &&
              load(library, "Highs_setIntOptionValue", highs.setInt) &&
              load(library, "Highs_setDoubleOptionValue", highs.setDouble) &&
              load(library, "Highs_passMip", highs.passMip) &&
              load(library, "Highs_run", highs.run) &&
              load(library, "Highs_getModelStatus", highs.status) &&
              load(library, "Highs_getSolution", highs.solution) &&
              load(library, "Highs_getDoubleInfoValue", highs.info) &&
              load(library, "Highs_getSizeofHighsInt", highs.sizeOfInt);
  return good ? library : nullptr;
}

Expected<MilpResult> runHighs(const Highs &highs, const Milp &milp, double seconds) {
  void *solver = highs.create();
  auto columns = static_cast<int>(milp.cost.size()), rows = static_cast<int>(milp.lower.size());
  MilpResult result;
  if (highs.sizeOfInt(solver) != sizeof(int)) {
    highs.destroy(solver);
    return Error{"HiGHS was built with 64-bit integers; the usual build has 32-bit ones"};
  }
  highs.setBool(solver, "output_flag", 0);
  highs.setInt(solver, "threads", 1);
  highs.setDouble(solver, "time_limit", seconds);
  highs.setDouble(solver, "mip_rel_gap", solverGap);
  highs.setDouble(solver, "mip_abs_gap", 0);
  std::vector<double> zero(columns, 0), one(columns, 1), lower = milp.lower;
  std::vector<int> integrality(columns, 0);
  std::fill(integrality.begin(), integrality.begin() + milp.numInteger, 1);
  int status = highs.passMip(solver, columns, rows, static_cast<int>(milp.value.size()), columnwise,
                             minimise, 0, milp.cost.data(), zero.data(), one.data(), lower.data(),
                             milp.upper.data(), milp.start.data(), milp.index.data(),
                             milp.value.data(), integrality.data());
  if (status >= 0)
    status = highs.run(solver);
  if (status < 0) {
    highs.destroy(solver);
    return Error{"HiGHS failed with status " + std::to_string(status)};
  }
  int model = highs.status(solver);
  result.isDone = model == optimal;
  result.isInfeasible = model == infeasible;
  double primal = 0;
  highs.info(solver, "mip_dual_bound", &result.bound);
  highs.info(solver, "objective_function_value", &primal);
  double feasible = 0;
  std::vector<double> values(columns), dual(columns), row(rows), rowDual(rows);
  highs.solution(solver, values.data(), dual.data(), row.data(), rowDual.data());
  for (double value : values)
    feasible = std::max(feasible, value);
  if (!result.isInfeasible && feasible > 0 && primal < std::numeric_limits<double>::max())
    result.values = std::move(values);
  highs.destroy(solver);
  return result;
}

/// Path of a program, searched in PATH; empty if there is none.
std::string findProgram(const std::string &name) {
  const char *path = getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (std::string file = folder + "/" + name; access(file.c_str(), X_OK) == 0)
      return file;
  return {};
}

/// The status of a process, which is killed after so many seconds. CBC checks its limit only
/// between steps, of which the first can take minutes.
std::optional<int> waitFor(pid_t child, double seconds) {
  Deadline deadline(seconds);
  int status = 0;
  while (!deadline.isOver()) {
    pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child)
      return status;
    if (ended < 0 && errno != EINTR)
      return -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(child, SIGKILL);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  return std::nullopt;
}

Expected<MilpResult> runCbc(const std::string &program, const Milp &milp, double seconds) {
  std::error_code ignored;
  std::string folder = std::filesystem::temp_directory_path(ignored).string() + "/tessera-XXXXXX";
  if (!mkdtemp(folder.data()))
    return Error{"cannot make a temporary folder for '" + program + "'"};
  struct Remove {
    std::string folder;
    ~Remove() {
      std::error_code ignored;
      std::filesystem::remove_all(folder, ignored);
    }
  } remove{folder};
  std::string mps = folder + "/p.mps", solution = folder + "/p.sol";
  if (!milp.write(mps))
    return Error{"cannot write '" + mps + "'"};
  std::vector<std::string> words{program,  mps,         "-seconds",  std::to_string(seconds),
                                 "-ratio", "1e-9",      "-timeMode", "elapsed",
                                 "-solve", "-solution", solution};
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  pid_t child;
  int failed = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed)
    return Error{"'" + program + "' cannot be started"};
  std::optional<int> status = waitFor(child, seconds + graceSeconds);
  if (!status) {
    MilpResult nothing;
    nothing.bound = -std::numeric_limits<double>::infinity();
    return nothing;
  }
  if (*status != 0)
    return Error{"'" + program + "' failed"};
  if (!std::filesystem::exists(solution, ignored))
    return Error{"'" + program +
                 "' wrote no solution: it did not take the program that --write-mps writes"};
  // First line: "Optimal - objective value 1.5"; then "index name value reduced cost".
  std::ifstream in(solution);
  MilpResult result;
  std::string line, name;
  std::getline(in, line);
  result.isInfeasible = line.find("nfeasible") != std::string::npos;
  result.isDone = line.starts_with("Optimal");
  result.bound = -std::numeric_limits<double>::infinity();
  if (size_t at = line.find("value "); result.isDone && at != std::string::npos)
    result.bound = std::strtod(line.c_str() + at + 6, nullptr) * (1 - solverGap);
  if (!in || result.isInfeasible)
    return result;
  result.values.assign(milp.cost.size(), 0);
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string number, value;
    if (words >> number && number == "**")
      words >> number;
    words >> name >> value;
    char *end = nullptr;
    long column = std::strtol(number.c_str(), &end, 10);
    if (column >= 0 && column < std::ssize(result.values))
      result.values[column] = std::strtod(value.c_str(), nullptr);
  }
  return result;
}

} // namespace

Expected<MilpResult> runMilp(const Milp &milp, const std::string &library, double seconds) {
  Highs highs;
  if (!library.empty()) {
    if (openHighs(library, highs))
      return runHighs(highs, milp, seconds);
    if (access(library.c_str(), X_OK) == 0 && library.find(".so") == std::string::npos)
      return runCbc(library, milp, seconds);
    return Error{"'" + library + "' is neither a library of HiGHS nor the program cbc"};
  }
  for (const char *name : {"libhighs.so.1", "libhighs.so"})
    if (openHighs(name, highs))
      return runHighs(highs, milp, seconds);
  if (std::string program = findProgram("cbc"); !program.empty())
    return runCbc(program, milp, seconds);
  return Error{"mode exact needs a MILP solver and found none; install highspy from PyPI and name "
               "its libhighs.so.1 with --solver, or Debian's coinor-cbc"};
}

} // namespace tessera::solver
