//===- PhasedProgram.cpp - Run the phases of a program --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Variants/PhasedProgram.h"

#include "tessera/Planning/CostOptions.h"
#include "tessera/Transforms/Search.h"

#include "mlir/IR/Verifier.h"

#include <chrono>

using namespace mlir;
using namespace tessera;

/// Later the ops have local shapes without the cuts of their loops.
static void noteParallelisms(ModuleOp module) {
  std::vector<std::string> names = dist::parallelismsOf(module);
  SmallVector<StringRef> texts(names.begin(), names.end());
  module->setAttr(dist::kParallelisms, Builder(module.getContext()).getStrArrayAttr(texts));
  pipeline::setRolledPipelines(module, pipeline::findRolledPipelines(module));
}

LogicalResult PhasedProgram::run(PipelineOptions options, Phase from, Phase to) {
  // Phase by phase, so that each is timed.
  for (int phase = static_cast<int>(from); phase < static_cast<int>(to); ++phase) {
    options.from = static_cast<Phase>(phase);
    options.to = static_cast<Phase>(phase + 1);
    if (options.from == Phase::propagated)
      noteParallelisms(*module);
    PassManager manager(ofContext, ModuleOp::getOperationName());
    manager.enableVerifier(false); // below: after each pass, that is a quarter of the whole time
    if (failed(buildPipeline(manager, options)))
      return failure();
    auto begin = std::chrono::steady_clock::now();
    if (failed(manager.run(*module)))
      return failure();
    std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    seconds.push_back({toString(options.to).str(), elapsed.count()});
  }
  return mlir::verify(*module);
}

FailureOr<Report> PhasedProgram::report(ModuleOp variant) const {
  FailureOr<dist::CostOptions> cost = dist::readCostOptions(variant, "time", machine);
  if (failed(cost))
    return failure();
  return makeReport(variant, origins, cost->topology);
}
