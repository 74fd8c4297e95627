//===- tessera-fuzz.cpp - Fuzz the passes with random programs ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Campaign.h"
#include "Compiled.h"
#include "Mutants.h"
#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Driver/Load.h"
#include "tessera/Phases/Register.h"

#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::fuzz;
namespace cl = llvm::cl;

static cl::OptionCategory ours("Options of tessera-fuzz");

static cl::opt<std::string> seeds("seeds", cl::cat(ours),
                                  cl::desc("Seeds to check: A:B, B exclusive"), cl::init("0:100"));
static cl::opt<uint64_t> seed("seed", cl::cat(ours),
                              cl::desc("One seed, for --emit, --emit-local and inputs"),
                              cl::init(0));
static cl::opt<bool> emit("emit", cl::cat(ours), cl::desc("Print the program of --seed and stop"));
static cl::opt<bool> emitLocal("emit-local", cl::cat(ours),
                               cl::desc("Print the local view of --seed's program and stop"));
static cl::opt<int64_t> runs("steps", cl::cat(ours), cl::init(2),
                             cl::desc("With --check: how often a program with feeds is run"));
static cl::opt<std::string> file("check", cl::cat(ours),
                                 cl::desc("Check the program in this file (function main) "
                                          "on the inputs of --seed; exit code 1 if it fails"));
static cl::opt<bool> gradients("gradients", cl::cat(ours),
                               cl::desc("Check derivatives: against differences, then sharded"));
static cl::opt<bool> unsharded("unsharded", cl::cat(ours),
                               cl::desc("With --gradients: against differences only"));
static cl::opt<unsigned> jobs("jobs", cl::cat(ours), cl::desc("Number of parallel processes"),
                              cl::init(2));
static cl::opt<unsigned> seconds("timeout", cl::cat(ours),
                                 cl::desc("Time limit per seed, in seconds"), cl::init(60));
static cl::opt<std::string> dumpDir("dump-dir", cl::cat(ours),
                                    cl::desc("Write failing programs to this folder"));
static cl::opt<bool> failuresOnly("quiet", cl::cat(ours),
                                  cl::desc("Print a line for failing seeds only"));
static cl::opt<std::string>
    poison("poison", cl::cat(ours),
           cl::desc("Value of undefined elements: nan, high, low, zero, or each "
                    "in turn by seed"),
           cl::init("each"));
static cl::opt<int64_t> maxOps("max-ops", cl::cat(ours), cl::init(10),
                               cl::desc("Largest number of ops in a program"));
static cl::opt<int64_t> maxSize("max-size", cl::cat(ours), cl::init(17),
                                cl::desc("Largest extent"));
static cl::opt<int64_t> maxDevices("max-devices", cl::cat(ours), cl::init(12),
                                   cl::desc("Devices of a mesh"));
static cl::opt<int64_t> maxAxes("max-axes", cl::cat(ours), cl::init(3), cl::desc("Axes of a mesh"));
static cl::opt<bool> oneMesh("one-mesh", cl::cat(ours), cl::desc("No programs with two meshes"));
static cl::opt<bool> noPartials("no-partials", cl::cat(ours), cl::desc("No partial annotations"));
static cl::opt<bool> noControlFlow("no-control-flow", cl::cat(ours),
                                   cl::desc("No loops and branches"));
static cl::list<std::string> only("only", cl::cat(ours), cl::CommaSeparated,
                                  cl::desc("Kinds of ops to take; --only=help lists them"));
static cl::list<std::string> planted("planted-faults", cl::cat(ours), cl::CommaSeparated,
                                     cl::desc("Make these mistakes in correct programs, or all; "
                                              "exit code 1 if one is not found; =help lists them"));
static cl::opt<bool> compiled("compiled", cl::cat(ours),
                              cl::desc("Run local views as compiled kernels on the threads backend "
                                       "in place of the interpreter"));
static cl::opt<std::string> cacheDirectory("cache", cl::cat(ours),
                                           cl::desc("Directory of compiled kernels"));
static cl::list<std::string>
    mutate("mutate", cl::cat(ours), cl::CommaSeparated,
           cl::desc("Files with correct inputs (.mlir, .mlirbc, .tsra, .json, .npy): give each "
                    "seed's mutant of one file to its reader; crashes and hangs are failures"));
static cl::opt<std::string> propagate("propagate", cl::cat(ours),
                                      cl::init(CheckOptions().propagate),
                                      cl::desc("Passes up to the annotated program"));
static cl::opt<std::string> partition("partition", cl::cat(ours),
                                      cl::init(CheckOptions().partition),
                                      cl::desc("Passes from there to the local view"));

static GeneratorOptions generatorOptions() {
  GeneratorOptions options;
  options.maxOps = maxOps;
  options.maxSize = maxSize;
  options.maxDevices = maxDevices;
  options.maxAxes = maxAxes;
  options.twoMeshes = !oneMesh;
  options.partials = !noPartials;
  options.controlFlow = !noControlFlow;
  options.differentiable = gradients;
  options.only.assign(only.begin(), only.end());
  return options;
}

static CheckOptions checkOptions(uint64_t of) {
  static const interpreter::Poison kinds[] = {interpreter::Poison::nan, interpreter::Poison::high,
                                              interpreter::Poison::low, interpreter::Poison::zero};
  CheckOptions options;
  options.propagate = propagate;
  options.partition = partition;
  options.poison = poison == "nan"    ? kinds[0]
                   : poison == "high" ? kinds[1]
                   : poison == "low"  ? kinds[2]
                   : poison == "zero" ? kinds[3]
                                      : kinds[of % 4];
  if (compiled)
    options.runLocal = [](ModuleOp local, ArrayRef<interpreter::Tensor> inputs, int64_t steps) {
      return runCompiled(local, inputs, steps, cacheDirectory);
    };
  return options;
}

static CheckResult checkProgram(const GeneratedProgram &program, uint64_t of) {
  if (!gradients)
    return check(program, of, checkOptions(of));
  GradientOptions options;
  options.check = checkOptions(of);
  options.sharded = !unsharded;
  return checkGradient(program, of, options);
}

static std::string dumpPath(uint64_t of) {
  return dumpDir + "/seed-" + std::to_string(of) + ".mlir";
}

static void writeProgram(uint64_t of, ModuleOp module) {
  std::string error, path = dumpPath(of);
  std::unique_ptr<llvm::ToolOutputFile> out = openOutputFile(path, &error);
  if (!out) {
    llvm::errs() << error << "\n";
    return;
  }
  module.print(out->os());
  out->os() << "\n";
  out->keep();
}

static int checkFile(MLIRContext *context) {
  GeneratedProgram program;
  program.module = loadProgram(context, file);
  if (!program.module)
    return 1;
  program.steps = 10;
  auto main = program.module->lookupSymbol<func::FuncOp>("main");
  for (unsigned i = 0; main && i < main.getNumResults(); ++i)
    if (main.getResultAttr(i, dist::DistDialect::kFeeds))
      program.runs = runs;
  CheckResult result = checkProgram(program, seed);
  llvm::outs() << toString(result.status);
  if (!result.message.empty())
    llvm::outs() << ": " << result.message;
  llvm::outs() << "\n";
  return result.status == CheckResult::passed ? 0 : 1;
}

static int emitProgram(MLIRContext *context) {
  GeneratedProgram program = generate(context, seed, generatorOptions());
  if (!emitLocal) {
    program.module->print(llvm::outs());
    llvm::outs() << "\n";
    return 0;
  }
  OwningOpRef<ModuleOp> local;
  CheckResult result = check(program, seed, checkOptions(seed), &local);
  if (local)
    local->print(llvm::outs());
  llvm::outs() << "\n// " << toString(result.status) << " " << result.message << "\n";
  return 0;
}

static void printCoverage(const Coverage &coverage) {
  auto share = [&](int64_t part) {
    return std::to_string(coverage.programs ? 100 * part / coverage.programs : 0) + " %";
  };
  llvm::outs() << coverage.programs << " programs: " << share(coverage.withCollectives)
               << " with collectives, " << share(coverage.withUneven) << " with uneven shards, "
               << share(coverage.withEmpty) << " with empty shards, " << share(coverage.weak)
               << " with a constant result\n";
  if (gradients)
    llvm::outs() << coverage.directions << " directions compared, " << coverage.kinks
                 << " at kinks\n";
  llvm::outs() << "collectives:";
  for (const auto &[kind, count] : coverage.collectives)
    llvm::outs() << " " << kind << " " << count;
  llvm::outs() << "\nop x placement (results of ops):\n";
  // `name placement` entries are sorted, so those of one op are adjacent.
  std::string current;
  for (const auto &[key, count] : coverage.placements) {
    auto [name, placement] = StringRef(key).rsplit(' ');
    if (name != current) {
      llvm::outs() << (current.empty() ? "  " : "\n  ") << name << ":";
      current = name.str();
    }
    llvm::outs() << " " << placement << " " << count;
  }
  llvm::outs() << "\n";
}

/// The faults named by --planted-faults.
static std::optional<std::vector<const PlantedFault *>> chosenFaults() {
  std::vector<const PlantedFault *> chosen;
  for (const std::string &name : planted) {
    size_t before = chosen.size();
    for (const PlantedFault &fault : plantedFaults())
      if (name == "all" || name == fault.name)
        chosen.push_back(&fault);
    if (chosen.size() == before) {
      llvm::errs() << "error: unknown fault '" << name << "'; --planted-faults=help lists them\n";
      return std::nullopt;
    }
  }
  return chosen;
}

/// Plants faults in the programs of the seeds until each has been found, and prints the seed that
/// found it.
static int runPlanted(MLIRContext *context, uint64_t first, uint64_t last,
                      const std::vector<const PlantedFault *> &faults) {
  GeneratorOptions options = generatorOptions();
  struct Found {
    uint64_t seed;
    std::string how;
  };
  std::map<std::string, Found> found;
  std::map<std::string, int64_t> places;
  int64_t wrong = 0;
  runCampaign(
      first, last, std::max(1u, jobs.getValue()), seconds,
      [&](uint64_t of) {
        // Faults that earlier seeds had found and reported when this process began.
        std::vector<PlantedCheck> checks;
        for (const PlantedFault *fault : faults)
          if (!found.count(fault->name))
            checks.push_back({fault, false, {}});
        CheckResult result =
            check(generate(context, of, options), of, checkOptions(of), nullptr, &checks);
        if (result.status == CheckResult::passed)
          for (const PlantedCheck &one : checks)
            if (one.applied)
              result.message += one.fault->name + "=" +
                                (one.found() ? toString(one.result.status) : "missed") + ";";
        return result;
      },
      [&](uint64_t of, const Verdict &verdict) {
        if (verdict.status != "passed") {
          ++wrong;
          llvm::outs() << "seed " << of << ": FAILED " << verdict.status << ": " << verdict.message
                       << "\n";
          return;
        }
        SmallVector<StringRef> entries;
        StringRef(verdict.message).split(entries, ';', -1, /*KeepEmpty=*/false);
        for (StringRef entry : entries) {
          auto [name, how] = entry.split('=');
          ++places[name.str()];
          if (how != "missed")
            found.try_emplace(name.str(), Found{of, how.str()});
        }
      });
  int64_t missed = 0;
  for (const PlantedFault *fault : faults) {
    auto it = found.find(fault->name);
    llvm::outs() << fault->name << ": ";
    if (it != found.end())
      llvm::outs() << "found by seed " << it->second.seed << " (" << it->second.how << ")\n";
    else
      llvm::outs() << "NOT FOUND, possible in " << places[fault->name] << " programs\n";
    missed += it == found.end();
  }
  llvm::outs() << found.size() << " of " << faults.size() << " planted faults found, " << wrong
               << " correct programs failed\n";
  return missed == 0 && wrong == 0 ? 0 : 1;
}

/// The seeds of --seeds; empty after one printed error.
static std::optional<std::pair<uint64_t, uint64_t>> seedRange() {
  auto [from, to] = StringRef(seeds).split(':');
  uint64_t first = 0, last = 0;
  if (from.getAsInteger(10, first) || to.getAsInteger(10, last) || first > last) {
    llvm::errs() << "error: --seeds=" << seeds << " is not a valid range: expected A:B\n";
    return std::nullopt;
  }
  return std::pair(first, last);
}

static int runSeeds(MLIRContext *context, const std::vector<const PlantedFault *> &faults) {
  auto range = seedRange();
  if (!range)
    return 1;
  auto [first, last] = *range;
  if (!faults.empty())
    return runPlanted(context, first, last, faults);
  if (!dumpDir.empty())
    if (std::error_code code = llvm::sys::fs::create_directories(dumpDir)) {
      llvm::errs() << "error: " << dumpDir << ": " << code.message() << "\n";
      return 1;
    }
  GeneratorOptions options = generatorOptions();
  Coverage coverage;
  int64_t passed = 0, failed = 0;
  runCampaign(
      first, last, std::max(1u, jobs.getValue()), seconds,
      [&](uint64_t of) {
        GeneratedProgram program = generate(context, of, options);
        // Written before the passes run, which may crash.
        if (!dumpDir.empty())
          writeProgram(of, *program.module);
        return checkProgram(program, of);
      },
      [&](uint64_t of, const Verdict &verdict) {
        coverage += verdict.coverage;
        bool good = verdict.status == "passed";
        ++(good ? passed : failed);
        if (good && !dumpDir.empty())
          llvm::sys::fs::remove(dumpPath(of));
        if (good && failuresOnly)
          return;
        llvm::outs() << "seed " << of << ": " << (good ? "passed" : "FAILED " + verdict.status);
        if (!verdict.message.empty())
          llvm::outs() << ": " << verdict.message;
        llvm::outs() << "\n";
        llvm::outs().flush();
      });
  printCoverage(coverage);
  llvm::outs() << passed << " passed, " << failed << " failed\n";
  return failed == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(ours);
  cl::ParseCommandLineOptions(argc, argv, "Random programs, sharded and unsharded, compared\n");
  if (llvm::is_contained(only, "help")) {
    for (const std::string &name : kindNames())
      llvm::outs() << name << "\n";
    return 0;
  }
  for (const std::string &name : only)
    if (!llvm::is_contained(kindNames(), name)) {
      llvm::errs() << "error: unknown kind of op '" << name << "'; --only=help lists them\n";
      return 1;
    }
  if (llvm::is_contained(planted, "help")) {
    for (const PlantedFault &fault : plantedFaults())
      llvm::outs() << fault.name << ": " << fault.description << "\n";
    return 0;
  }
  if (!mutate.empty()) {
    auto range = seedRange();
    return range ? runMutants({mutate, range->first, range->second, std::max(1u, jobs.getValue()),
                               seconds, dumpDir})
                 : 1;
  }
  auto faults = chosenFaults();
  if (!faults)
    return 1;
  registerPasses();
  registerPlantFaultPass();
  DialectRegistry registry;
  registerDialects(registry);
  // Children are forked, so the parent must not have threads.
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false);
  if (!file.empty())
    return checkFile(&context);
  if (emit || emitLocal)
    return emitProgram(&context);
  return runSeeds(&context, *faults);
}
