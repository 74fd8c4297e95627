//===- tessera.cpp - The command line -------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../RunFlags.h"
#include "../Version.h"
#include "PythonCommand.h"
#include "Suggestions.h"
#include "tessera/Driver/Commands.h"
#include "tessera/Driver/Supervisor.h"
#include "tessera/Support/Bytes.h"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

using tessera::deviceCount;
using tessera::wholeNumber;

/// A finite number from `least` to `most`.
static CLI::Validator within(double least, double most, const char *what) {
  auto check = [=](const std::string &text) {
    char *end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    bool isNumber = end != text.c_str() && *end == 0;
    return isNumber && value >= least && value <= most ? std::string()
                                                       : "'" + text + "' is not " + what;
  };
  return CLI::Validator(check, "");
}

/// A memory budget in GiB or with an explicit unit; converted to GiB.
static CLI::Validator gibibytes() {
  auto convert = [](std::string &text) {
    std::optional<double> value = tessera::parseGibibytes(text);
    if (!value || !(*value >= 0 && *value <= 1e9))
      return "'" + text +
             "' is not a valid amount of memory: expected a number of GiB, or one with a unit, "
             "such as 512M";
    char exact[64];
    std::snprintf(exact, sizeof(exact), "%.17g", *value);
    text = exact;
    return std::string();
  };
  return CLI::Validator(convert, "");
}

static CLI::Validator seconds() {
  return within(1e-6, 1e9, "a positive number of seconds");
}

/// An option whose values have names. Sets `value`, which may be optional.
template <typename Enum, typename Value>
static CLI::Option *addChoice(CLI::App *command, const char *name, Value &value, const char *help) {
  auto set = [&value](const std::string &text) { value = *tessera::parse<Enum>(text); };
  return command->add_option_function<std::string>(name, set, help)
      ->check(tessera::oneOf({tessera::kNames<Enum>.begin(), tessera::kNames<Enum>.end()}));
}

/// Options of the search. For subcommands in which the search is optional, they require --mode.
static void addSearchOptions(CLI::App *command, tessera::SearchRequest &options) {
  bool isAlways = !options.mode.empty();
  CLI::Option *mode =
      command
          ->add_option("--mode", options.mode,
                       "Search algorithm for shardings: sharding_propagation, dynamic_programming, "
                       "recursive_programming or exact; default: " +
                           (isAlways ? options.mode : "no search, annotations are propagated"))
          ->check(tessera::oneOf(
              {"sharding_propagation", "dynamic_programming", "recursive_programming", "exact"}));
  command
      ->add_option("--memory-budget", options.memoryBudget,
                   "Memory per device, in GiB or with a unit, such as 512M")
      ->transform(gibibytes());
  CLI::Option *own[] = {
      addChoice<tessera::Minimise>(command, "--minimise", options.minimise,
                                   "Objective of the search: time or memory (per device)"),
      command->add_option(
          "--fully-use-devices", options.fullyUseDevices,
          "Whether contractions must use all devices where sizes allow it; default: true"),
      command
          ->add_option("--time-limit", options.timeLimit,
                       "Seconds after which the search returns the best plan so far")
          ->check(seconds()),
      command->add_option(
          "--solver", options.solver,
          "HiGHS library or cbc program for mode exact; default: the first found on the system")};
  if (!isAlways)
    for (CLI::Option *option : own)
      option->needs(mode);
}

/// Options of every subcommand that reads a program.
static void addInputOptions(CLI::App *command, tessera::ProgramOptions &options) {
  command->add_option("file", options.file, "Program (.mlir); - for standard input")->required();
  command->add_option("--function", options.function,
                      "Function to compile; default: @main, or the only public function");
  command->add_option("--compile-from", options.compileFrom, "Phase of the program in the file");
  command->add_option("--topology", options.topology,
                      "Machine of the cost model: a JSON file, or hwloc for this machine; default: "
                      "a node of 8 GPUs "
                      "with NVLink");
  command
      ->add_option("--load-dialect-plugin", options.dialectPlugins,
                   "Shared object that registers dialects, as for mlir-opt")
      ->allow_extra_args(false);
  command->add_flag("--remarks", options.remarks,
                    "Print the compiler's decisions with their reasons");
  addSearchOptions(command, options.search);
}

/// Options of the subcommands that compile a program.
static void addProgramOptions(CLI::App *command, tessera::ProgramOptions &options) {
  addInputOptions(command, options);
  command->add_flag("--narrow-reductions", options.narrowReductions,
                    "Reduce 16-bit floats in 16 bits: sends half the bytes, less accurate");
  addChoice<tessera::AttentionSequence>(
      command, "--attention-sequence", options.attentionSequence,
      "Keys and values where an attention's sequence is cut: gather, ring (blocks that "
      "arrive in turn), auto (the better by --overlap and --memory-budget); default auto");
  CLI::Option *overlap = command->add_flag_callback(
      "--overlap", [&options] { options.overlaps = true; },
      "Overlap collectives with computation where the model predicts a gain; default for target "
      "cuda");
  command
      ->add_flag_callback(
          "--no-overlap", [&options] { options.overlaps = false; },
          "Wait for each collective; default for the other targets")
      ->excludes(overlap);
  command->add_option(
      "--schedule", options.schedule,
      "Pipeline schedule of a program with stages: sequential, gpipe, 1f1b, interleaved, zb-h1 or "
      "auto (the shortest modelled step); default: the schedule in the program");
  addChoice<tessera::sharding::Objective>(command, "--objective", options.objective,
                                          "Objective of reshard plans: time or bytes");
  command->add_option(
      "--comm-fusion", options.fusion,
      "Options of dist-fuse-collectives, e.g. \"all-reduce=size all-reduce-config=16\"");
}

static CLI::Option *addCountOption(CLI::App *command, tessera::SearchRequest &options) {
  return command
      ->add_option("--devices", options.devices,
                   "Number of devices for a program without a mesh; needs --mode")
      ->check(deviceCount());
}

static void addCompileOptions(CLI::App *command, tessera::CompileOptions &options) {
  addProgramOptions(command, options);
  addChoice<tessera::Target>(command, "--target", options.target, "Target: cpu, cuda or stub");
  command
      ->add_option(
          "--arch", options.archs,
          "Architectures of target cuda: sm_NN (requires ptxas) or compute_NN (PTX); default: "
          "sm_80,sm_90a,compute_80")
      ->allow_extra_args(false);
  command->add_flag("--warpgroups", options.warpgroups,
                    "Multiply by warpgroups (wgmma) in attention, of target cuda with --arch "
                    "sm_90a alone, or of stub; default: no, see docs/gpu.md");
  command
      ->add_option("--cpu", options.cpus,
                   "CPUs of target cpu, by LLVM's names: native, x86-64-v3, znver4, aarch64, ...; "
                   "the kernels "
                   "are compiled for each, and a machine runs the best for it; default: native")
      ->allow_extra_args(false);
  CLI::Option *cache =
      command->add_option("--cache", options.cacheDirectory, "Directory of the kernel cache");
  command->add_flag("--no-cache", options.noCache, "Do not use the kernel cache")->excludes(cache);
  command->add_flag("--kernels", options.kernels, "Print how each kernel was compiled");
}

/// Whether the mode uses all given options of the search; false after one printed error.
static bool readsAll(const tessera::SearchRequest &search) {
  if (search.solver.empty() || search.mode == "exact")
    return true;
  tessera::runtime::printError(tessera::runtime::Status::error(
      "--solver requires --mode exact, got mode '" + search.mode + "'"));
  return false;
}

static int commandMain(int argc, char **argv) {
  CLI::App app("Tessera: tensor programs for one device, run on many");
  app.set_version_flag(
      "--version", [] { return tessera::versionText(); }, "Print the version and what kernels use");
  bool inProcess = false; // `supervise` reads it; declared here for --help
  app.add_flag("--in-process", inProcess, "Do not fork a supervised child process (for debuggers)");
  app.require_subcommand(1);
  int code = 0;

  for (const tessera::PythonCommand &command : tessera::kPythonCommands)
    app.add_subcommand(command.name, command.help);

  tessera::ExplainOptions explain;
  CLI::App *command =
      app.add_subcommand("explain", "Print what a program would communicate, and why");
  addProgramOptions(command, explain);
  CLI::Option *json = command->add_option("--json", explain.json,
                                          "File for the report as JSON; - for standard output");
  command->add_flag("--timing", explain.timing, "Add compile times to the JSON");
  command
      ->add_flag("--explain-comm", explain.communication,
                 "Print the algorithm of each collective and the times of the alternatives")
      ->excludes(json);
  addCountOption(command, explain.search)->needs("--mode");
  command->callback([&]() { code = readsAll(explain.search) ? tessera::explain(explain) : 1; });

  tessera::CompileOptions compile;
  command = app.add_subcommand("compile", "Compile a program to an artifact for tessera-exec");
  addCompileOptions(command, compile);
  addCountOption(command, compile.search)->needs("--mode");
  command->add_option("-o,--output", compile.output, "Artifact to write (.tsra)")->required();
  command->callback([&]() { code = readsAll(compile.search) ? tessera::compile(compile) : 1; });

  tessera::RunOptions run;
  std::string check;
  command = app.add_subcommand("run", "Compile and run a program");
  addCompileOptions(command, run);
  tessera::RunFlags flags(command, run.driver);
  // A flag with an optional value after '=': an option would take the file name as its value.
  command->add_flag(
      "--check{both}", check,
      "Compare with a run without meshes, and for small programs with the interpreter; "
      "--check=compiled or --check=interpreter: with only one of them");
  command->callback([&, command]() {
    if (command->count("--check")) {
      std::optional<tessera::Check> named =
          check.empty() ? tessera::Check::both : tessera::parse<tessera::Check>(check);
      if (named && *named != tessera::Check::none) {
        run.check = *named;
      } else {
        code = tessera::runtime::printError(tessera::runtime::Status::error(
            "--check '" + check + "': expected both, compiled or interpreter"));
        return;
      }
    }
    run.search.devices = run.driver.devices;
    run.search.offersDevices = true;
    run.plugin = flags.pluginPath();
    if (!readsAll(run.search))
      code = 1;
    else if (tessera::runtime::Status status = flags.collect(); !status.ok())
      code = tessera::runtime::printError(status);
    else
      code = tessera::run(run);
  });

  tessera::SearchOptions search;
  search.search.mode = "dynamic_programming";
  command =
      app.add_subcommand("search", "Compare plans for a program, or solve an exported problem");
  addInputOptions(command, search);
  command->get_option("file")->required(false);
  addCountOption(command, search.search);
  command->add_option("--top", search.top, "Number of plans to print")
      ->check(wholeNumber(1, 1000000000, "a positive number of plans"));
  command->add_option("--json", search.json, "File for the plans as JSON; - for standard output");
  // Options whose values are already in a problem's tables.
  CLI::Option *problem = command->add_option("--problem", search.problem,
                                             "File with an exported problem; - for standard input");
  for (const char *name : {"--function", "--compile-from", "--topology", "--remarks", "--minimise",
                           "--fully-use-devices", "--devices", "--top"})
    problem->excludes(name);
  command
      ->add_option("--write-mps", search.mps,
                   "File for the problem as a mixed-integer program (MPS)")
      ->needs(problem);
  command->callback([&]() { code = readsAll(search.search) ? tessera::search(search) : 1; });

  try {
    // The parser would take the next argument as the value.
    for (int i = 1; i < argc; ++i)
      if (std::string_view text = argv[i];
          text.starts_with("--") && text.find('=') == text.size() - 1)
        throw CLI::ValidationError(argv[i], "missing value after '='");
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error); // --help
    return tessera::runtime::printError(
        tessera::runtime::Status::error(tessera::describe(app, error)));
  }
  return code;
}

int main(int argc, char **argv) {
  // The remaining arguments are the module's; the ranks of a launcher are children of the launcher
  // itself.
  for (const tessera::PythonCommand &command : tessera::kPythonCommands)
    if (argc > 1 && std::string_view(argv[1]) == command.name)
      return tessera::run(command, argv + 2);
  return tessera::supervise(argc, argv, commandMain);
}
