//===- Compilation.cpp - Compile one program ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Driver/Compilation.h"

#include "tessera/Codegen/Compile.h"
#include "tessera/Dialect/Dist/IR/Pipeline.h"
#include "tessera/Dialect/Dist/IR/SignatureAttrs.h"
#include "tessera/Dialect/Dist/IR/ValueShardings.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"
#include "tessera/Phases/Register.h"
#include "tessera/Planning/CostOptions.h"
#include "tessera/Transforms/Passes.h"
#include "tessera/Transforms/Search.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <set>

using namespace mlir;
using namespace tessera;

static MLIRContext::Threading kNoThreads = MLIRContext::Threading::DISABLED;

Compilation::Compilation(const ProgramOptions &options)
    : options(options),
      captured(options.messages ? std::make_unique<llvm::raw_string_ostream>(*options.messages)
                                : nullptr),
      errorStream(captured ? static_cast<llvm::raw_ostream *>(captured.get()) : &llvm::errs()),
      mlirContext(
          [] {
            DialectRegistry registry;
            registerDialects(registry);
            return registry;
          }(),
          kNoThreads),
      diagnostics(&mlirContext, options.remarks, *errorStream),
      program(&mlirContext, options.topology) {
  mlirContext.printOpOnDiagnostic(false);
}

Compilation::~Compilation() = default;

LogicalResult Compilation::read() {
  DialectRegistry plugins;
  for (const std::string &file : options.dialectPlugins) {
    llvm::Expected<DialectPlugin> plugin = DialectPlugin::load(file);
    if (!plugin) {
      errors() << "error: " << llvm::toString(plugin.takeError()) << "\n";
      return failure();
    }
    plugin->registerDialectRegistryCallbacks(plugins);
  }
  mlirContext.appendDialectRegistry(plugins);
  mlirContext.loadDialect<dist::DistDialect>(); // meshes are made before passes load it
  program.module = loadProgram(&mlirContext, options.file, options.text, errors());
  if (!program.module || options.passes.empty())
    return success(static_cast<bool>(program.module));
  registerPasses();
  PassManager manager(&mlirContext, ModuleOp::getOperationName());
  if (failed(parsePassPipeline(options.passes, manager, errors())))
    return failure();
  return manager.run(*program.module);
}

LogicalResult Compilation::load() {
  if (failed(read()))
    return failure();
  func::FuncOp function = selectFunction(*program.module, options.function, options.file, errors());
  if (!function)
    return failure();
  std::optional<Phase> from = parsePhase(options.compileFrom);
  if (dist::isLocalView(function))
    localView = function.getLoc();
  else if (from && *from >= Phase::partitioned)
    return function.emitError() << "'" << function.getSymName()
                                << "' is in the global view; after phase '" << options.compileFrom
                                << "' functions must have dist.view = \"local\"";
  return !from || *from == Phase::input ? success() : checkNormalized(*from);
}

LogicalResult Compilation::checkNormalized(Phase from) {
  PassManager manager(&mlirContext, ModuleOp::getOperationName());
  dist::DistGuardOptions guard;
  guard.resharded = from >= Phase::resharded;
  manager.addPass(dist::createDistGuard(guard));
  if (failed(manager.run(*program.module)))
    return failure();
  WalkResult walk = program.module->walk([&](func::CallOp call) {
    call.emitError() << "'" << call->getName() << "' is not allowed in phase '"
                     << options.compileFrom
                     << "', where calls are inlined; compile from phase 'input'";
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult Compilation::checkHasReference() {
  if (!localView)
    return success();
  return emitError(*localView) << "the program is in the local view, and --check needs the global "
                                  "view to run it on one device; run it without --check";
}

LogicalResult tessera::checkDevices(ModuleOp program, const SearchRequest &search) {
  std::set<int64_t> ids;
  for (const auto &[name, mesh] : dist::MeshTable(program))
    ids.insert(mesh.processIds.begin(), mesh.processIds.end());
  auto declared = static_cast<int64_t>(ids.size());
  if (declared == 0 || search.devices == 0 || search.devices == declared ||
      (search.offersDevices && search.devices > declared))
    return success();
  dist::ProcessMeshOp first = *program.getOps<dist::ProcessMeshOp>().begin();
  return first.emitError() << "the meshes of the program have " << declared
                           << " devices, and --devices is " << search.devices
                           << "; --devices is for programs that declare no mesh";
}

LogicalResult Compilation::checkCanSearch() {
  if (localView)
    return emitError(*localView)
           << "the program is in the local view, where no sharding is left to search; give the "
              "program before propagation, or leave the search out";
  std::optional<Phase> from = parsePhase(options.compileFrom);
  if (!from || *from < Phase::propagated)
    return success();
  errors() << "error: --compile-from '" << options.compileFrom
           << "': after phase 'propagated' no sharding is left to search; give the program before "
              "propagation, or leave the search out\n";
  return failure();
}

LogicalResult Compilation::checkSearch(Phase from) {
  const SearchRequest &search = options.search;
  if (search.mode.empty())
    return success();
  if (failed(checkCanSearch()))
    return failure();
  bool hasMesh = !program.module->getOps<dist::ProcessMeshOp>().empty();
  if (search.devices == 0 && !hasMesh && from < Phase::scheduled) {
    errors() << "error: " << options.file
             << ": the program declares no mesh; give the number of devices to search for with "
                "--devices, in Python with devices= or jit's mesh=\n";
    return failure();
  }
  if (from < Phase::propagated && failed(checkDevices(*program.module, search)))
    return failure();
  auto mode = dist::parseMode(search.mode);
  if (auto *error = std::get_if<solver::Error>(&mode)) {
    errors() << "error: search " << error->message << "\n";
    return failure();
  }
  return success();
}

LogicalResult Compilation::runPhases(Phase to) {
  std::optional<Phase> from = parsePhase(options.compileFrom);
  if (!from) {
    errors() << "error: unknown phase '" << options.compileFrom << "'; phases are " << phaseNames()
             << "\n";
    return failure();
  }
  if (failed(checkSearch(*from)))
    return failure();
  WalkResult marked = program.module->walk([](Operation *op) {
    return op->hasAttr(dist::kMicroBatch) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (!options.schedule.empty() && !marked.wasInterrupted()) {
    errors() << "error: --schedule '" << options.schedule
             << "': the program has no micro-batches to order; mark their calls with "
                "dist.micro_batch, or leave the schedule out\n";
    return failure();
  }
  PipelineOptions pipeline(options);
  pipeline.overlaps = options.overlaps.value_or(false);
  pipeline.keepsAttention = keepsAttention;
  return compileBest(program, pipeline, *from, to);
}

LogicalResult Compilation::toSteps(bool forGpu) {
  auto begin = std::chrono::steady_clock::now();
  if (failed(codegen::lowerToRt(*program.module, forGpu)))
    return failure();
  constexpr double kGiB = 1024.0 * 1024 * 1024, kAny = std::numeric_limits<double>::infinity();
  const std::optional<double> &budget = options.search.memoryBudget;
  if (!forGpu && failed(codegen::packProducts(*program.module, budget ? *budget * kGiB : kAny)))
    return failure();
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  program.seconds.push_back({"steps", elapsed.count()});
  return success();
}

LogicalResult Compilation::toPhase(Phase phase) {
  if (failed(load()))
    return failure();
  return runPhases(phase);
}

/// Removes all meshes and annotations, which leaves the program for one device.
static void dropMeshes(ModuleOp module) {
  using namespace dist;
  auto drop = [](Operation *op) {
    for (StringRef name : {DistDialect::kShardings, DistDialect::kBeforeShardings,
                           DistDialect::kOpSharding, DistDialect::kMove, DistDialect::kReason})
      op->removeAttr(name);
  };
  module->removeAttr(DistDialect::kSearch);
  module->removeAttr(dist::kParallelisms);
  module->removeAttr(pipeline::kRolledPipelines);
  module.walk([&](Operation *op) {
    drop(op);
    if (isa<ShardTensorOp, ReshardOp>(op)) {
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
      return;
    }
    if (auto function = dyn_cast<func::FuncOp>(op)) {
      SignatureAttrs signature(function);
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        signature.ofArgument(i).erase(DistDialect::kSharding);
      for (unsigned i = 0; i < function.getNumResults(); ++i)
        signature.ofResult(i).erase(DistDialect::kSharding);
      signature.write();
    }
  });
  for (ProcessMeshOp mesh : llvm::make_early_inc_range(module.getOps<ProcessMeshOp>()))
    mesh.erase();
}

LogicalResult Compilation::toSingleDevice() {
  if (failed(load()))
    return failure();
  dropMeshes(*program.module);
  options.search = {}; // one device has no choice, and the budget is that of many devices
  return runPhases(Phase::scheduled);
}

func::FuncOp Compilation::toReference() {
  func::FuncOp function =
      succeeded(read()) ? selectFunction(*program.module, options.function, options.file, errors())
                        : func::FuncOp();
  if (function)
    dropMeshes(*program.module);
  return function;
}

llvm::json::Value Compilation::timing() const {
  llvm::json::Object object;
  for (auto &[phase, time] : program.seconds)
    object[phase] = time;
  return object;
}

int tessera::writeText(const std::string &path, const std::string &text) {
  if (path == "-") {
    llvm::outs() << text;
    return 0;
  }
  llvm::Error error = llvm::writeToOutput(path, [&](llvm::raw_ostream &os) {
    os << text;
    return llvm::Error::success();
  });
  if (!error)
    return 0;
  llvm::errs() << path << ": error: cannot be written: " << llvm::toString(std::move(error))
               << "\n";
  return 1;
}
