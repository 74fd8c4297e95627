//===- Register.cpp - The dialects, passes and pipelines of all tools -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Phases/Register.h"

#include "tessera/Codegen/KernelPasses.h"
#include "tessera/Codegen/Passes.h"
#include "tessera/Dialect/Check/Check.h"
#include "tessera/Dialect/Dist/IR/Dist.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"
#include "tessera/Dialect/Rt/IR/Rt.h"
#include "tessera/Interpreter/Passes.h"
#include "tessera/Phases/Pipeline.h"
#include "tessera/Transforms/Autodiff/Passes.h"
#include "tessera/Transforms/Passes.h"
#include "tessera/Transforms/Pipeline/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace tessera;

namespace {
struct TextOptions : PassPipelineOptions<TextOptions> {
  Option<std::string> from{*this, "compile-from", llvm::cl::desc("Phase of the input"),
                           llvm::cl::init("input")};
  Option<std::string> to{*this, "compile-to", llvm::cl::desc("Phase to stop after"),
                         llvm::cl::init("scheduled")};
  Option<std::string> objective{*this, "objective", llvm::cl::desc("time or bytes"),
                                llvm::cl::init("time")};
  Option<bool> narrowReductions{*this, "narrow-reductions",
                                llvm::cl::desc("Reduce 16-bit floats in 16 bits")};
  Option<std::string> attentionSequence{
      *this, "attention-sequence",
      llvm::cl::desc("Keys of a cut sequence: gather or ring; auto is gather here"),
      llvm::cl::init("auto")};
  Option<bool> overlap{*this, "overlap", llvm::cl::desc("Overlap collectives with computation"),
                       llvm::cl::init(false)};
  Option<std::string> topology{*this, "topology", llvm::cl::desc("Topology file (JSON)")};
  Option<std::string> mode{*this, "mode", llvm::cl::desc("Mode of dist-search; none: propagate")};
  Option<int64_t> devices{*this, "devices",
                          llvm::cl::desc("Devices of the mesh for a program without one"),
                          llvm::cl::init(0)};
  Option<double> memoryBudget{*this, "memory-budget",
                              llvm::cl::desc("GiB per device; 0: no budget"), llvm::cl::init(0)};
  Option<std::string> minimise{*this, "minimise", llvm::cl::desc("time or memory"),
                               llvm::cl::init("time")};
  Option<bool> fullyUseDevices{*this, "fully-use-devices",
                               llvm::cl::desc("Contractions use every device where sizes allow"),
                               llvm::cl::init(true)};
  Option<double> timeLimit{*this, "time-limit", llvm::cl::desc("Seconds until the search stops"),
                           llvm::cl::init(SearchRequest().timeLimit)};
  Option<std::string> solver{*this, "solver", llvm::cl::desc("HiGHS library or cbc program")};
  Option<std::string> fusion{*this, "comm-fusion",
                             llvm::cl::desc("Options of dist-fuse-collectives, in braces")};
  Option<bool> gpu{*this, "gpu",
                   llvm::cl::desc("Do not decompose attention: GPUs have kernels for it"),
                   llvm::cl::init(false)};
  Option<bool> remarks{*this, "remarks", llvm::cl::desc("Emit remarks with decisions and reasons")};
};
} // namespace

/// The value of an option. A registered pipeline has no way to report an error but to end.
template <typename Value> static Value valueOf(StringRef option, const std::string &name) {
  std::optional<Value> value = parse<Value>(name);
  if (!value) {
    llvm::errs() << "error: " << unknownName<Value>(option, name) << "\n";
    std::exit(1);
  }
  return *value;
}

static void registerPipeline() {
  PassPipelineRegistration<TextOptions>(
      "tessera-pipeline", "All passes from one phase to another",
      [](OpPassManager &manager, const TextOptions &text) {
        std::optional<Phase> from = parsePhase(text.from), to = parsePhase(text.to);
        if (!from || !to) {
          llvm::errs() << "error: unknown phase '" << (from ? text.to : text.from).getValue()
                       << "'; phases are " << phaseNames() << "\n";
          std::exit(1);
        }
        PipelineOptions options;
        options.from = *from;
        options.to = *to;
        options.objective = valueOf<sharding::Objective>("objective", text.objective);
        options.narrowReductions = text.narrowReductions;
        options.attentionSequence =
            valueOf<AttentionSequence>("attention sequence", text.attentionSequence);
        options.overlaps = text.overlap;
        options.topology = text.topology;
        options.search.mode = text.mode;
        options.search.devices = text.devices;
        if (text.memoryBudget != 0) // the pass rejects negative values
          options.search.memoryBudget = text.memoryBudget;
        options.search.minimise = valueOf<Minimise>("minimise", text.minimise);
        options.search.fullyUseDevices = text.fullyUseDevices;
        options.search.timeLimit = text.timeLimit;
        options.search.solver = text.solver;
        options.fusion = text.fusion;
        options.remarks = text.remarks;
        options.keepsAttention = text.gpu;
        if (failed(buildPipeline(manager, options))) // it has emitted the error
          std::exit(1);
      });
}

void tessera::registerDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect, math::MathDialect,
                  scf::SCFDialect, tensor::TensorDialect, vector::VectorDialect,
                  check::CheckDialect, dist::DistDialect, ext::ExtDialect, rt::RtDialect>();
}

void tessera::registerPasses() {
  static const bool isOnce = [] {
    dist::registerTesseraDistPasses();
    dist::registerTesseraAutodiffPasses();
    dist::registerTesseraPipelinePasses();
    interpreter::registerTesseraInterpreterPasses();
    codegen::registerTesseraCodegenPasses();
    codegen::registerTesseraKernelPasses();
    registerCanonicalizerPass();
    registerCSEPass();
    registerPipeline();
    PassPipelineRegistration<codegen::CodegenPipelineOptions>(
        "codegen", "From the local view to rt.program",
        [](OpPassManager &manager, const codegen::CodegenPipelineOptions &options) {
          codegen::buildCodegenPipeline(manager, options);
        });
    return true;
  }();
  (void)isOnce;
}
