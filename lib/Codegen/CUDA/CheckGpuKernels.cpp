//===- CheckGpuKernels.cpp - Compare GPU kernels with the CPU's -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../Runtime/Gpu/Stub/Emulator.h"
#include "../Kernels/KernelModule.h"
#include "tessera/Codegen/CPU/KernelCompiler.h"
#include "tessera/Codegen/CUDA/GpuCompiler.h"
#include "tessera/Codegen/KernelPasses.h"
#include "tessera/Dialect/Ext/IR/ExtDialect.h"
#include "tessera/Runtime/Session/Compare.h"
#include "tessera/Runtime/Session/HostTensor.h"
#include "tessera/Runtime/Session/RandomInput.h"
#include "tessera/Support/Names.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using tessera::runtime::HostTensor;

namespace tessera {
template <>
inline constexpr auto kNames<runtime::WarpgroupFault> =
    named("none", "swizzle", "offset", "stride", "fence", "proxy", "wait");
} // namespace tessera

namespace tessera::codegen {
#define GEN_PASS_DEF_TESSERACHECKGPUKERNELS
#include "tessera/Codegen/KernelPasses.h.inc"

namespace {

std::optional<runtime::DType> dtypeOf(Type element) {
  std::string text;
  llvm::raw_string_ostream(text) << element;
  return runtime::parseDType(text);
}

/// A range of integers that are safe as inputs of a kernel: divisors are not zero, and indices are
/// within their tensors.
std::array<int64_t, 2> rangeFor(func::FuncOp kernel) {
  int64_t low = 0, high = 2;
  auto within = [&](int64_t places) { high = std::min(high, std::max<int64_t>(1, places)); };
  auto all = [&](Value tensor) {
    for (int64_t extent : cast<RankedTensorType>(tensor.getType()).getShape())
      within(extent);
  };
  auto slice = [&](OffsetSizeAndStrideOpInterface op, RankedTensorType whole) {
    for (auto [offset, size, extent] :
         llvm::zip_equal(op.getMixedOffsets(), op.getMixedSizes(), whole.getShape()))
      if (!getConstantIntValue(offset))
        within(extent - getConstantIntValue(size).value_or(extent) + 1);
  };
  kernel.walk([&](Operation *op) {
    if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::FloorDivSIOp,
            arith::CeilDivSIOp, arith::CeilDivUIOp>(op))
      low = 1;
    if (auto gather = dyn_cast<tensor::GatherOp>(op))
      all(gather.getSource());
    if (auto scatter = dyn_cast<tensor::ScatterOp>(op))
      all(scatter.getDest());
    if (auto extract = dyn_cast<tensor::ExtractOp>(op))
      all(extract.getTensor());
    if (auto extract = dyn_cast<tensor::ExtractSliceOp>(op))
      slice(extract, extract.getSourceType());
    if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
      slice(insert, insert.getDestType());
  });
  return {low, std::max(high, low + 1)};
}

bool readsAnywhere(func::FuncOp kernel) {
  return kernel
      .walk([](tensor::ExtractOp op) {
        return op.getIndices().empty() ? WalkResult::advance() : WalkResult::interrupt();
      })
      .wasInterrupted();
}

/// The input whose buffer each argument uses if results overwrite as many inputs as they may, or,
/// with `always`, as have their types; itself for the others.
std::vector<size_t> sharedBuffers(func::FuncOp kernel, bool always) {
  auto reads = static_cast<unsigned>(kernel->getAttrOfType<IntegerAttr>(kKernelReadsAttr).getInt());
  std::vector<size_t> buffers(kernel.getNumArguments());
  std::iota(buffers.begin(), buffers.end(), size_t(0));
  std::vector<bool> used(reads, false);
  for (unsigned output = reads; output < kernel.getNumArguments(); ++output)
    for (unsigned input = 0; input < reads; ++input)
      if (!used[input] && buffers[output] == output &&
          (always ? kernel.getArgument(input).getType() == kernel.getArgument(output).getType()
                  : canRunInPlace(kernel, input, output))) {
        buffers[output] = input;
        used[input] = true;
      }
  return buffers;
}

/// Whether a value of fewer than 64 bits was rounded on the way to `result`: its error remains if
/// the value is extended to f64.
bool isRoundedBelowF64(Value result) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitUsesFromAbove = false;
  if (failed(getBackwardSlice(result, &slice, options)))
    return false;
  auto rounds = [](Operation *op) {
    // Structured ops and loops have bodies; ops on tensors and constants only move elements.
    bool computes = !isa<linalg::LinalgOp, arith::ConstantOp>(op) &&
                    !isa<tensor::TensorDialect, scf::SCFDialect>(op->getDialect());
    return computes && llvm::any_of(op->getResultTypes(), [](Type type) {
             auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
             return element && element.getWidth() < 64;
           });
  };
  return llvm::any_of(slice, [&](Operation *op) {
    return !isa<func::FuncOp>(op) && op->walk([&](Operation *inner) {
                                         return rounds(inner) ? WalkResult::interrupt()
                                                              : WalkResult::advance();
                                       }).wasInterrupted();
  });
}

/// Results of f32 may have the tolerance of 16-bit floats where an attention of these rounds its
/// scores and weights to 16 bits: another order of a sum rounds to a neighbour. TF32 has the
/// mantissa of f16. Results of f64 have the tolerance of f32 where they are computed from rounded
/// values of that type. (In units of `compare`: 1e-4 or 1e-10 times the root.)
int64_t stepsFor(func::FuncOp kernel, size_t argument, bool tf32) {
  auto type = dyn_cast<FloatType>(getElementTypeOrSelf(kernel.getArgumentTypes()[argument]));
  int64_t reads = kernel->getAttrOfType<IntegerAttr>(kKernelReadsAttr).getInt();
  if (!type || static_cast<int64_t>(argument) < reads)
    return 1;
  if (type.isF64()) {
    Operation *end = kernel.getBody().front().getTerminator();
    return isRoundedBelowF64(end->getOperand(argument - reads)) ? 1'000'000'000'000 : 1;
  }
  auto isNarrow = [](Value operand) {
    auto type = dyn_cast<FloatType>(getElementTypeOrSelf(operand.getType()));
    return type && type.getWidth() == 16;
  };
  bool rounds = kernel
                    .walk([&](Operation *op) {
                      bool isAttention = isa<ext::AttentionOp, ext::AttentionBackwardOp>(op);
                      return isAttention && llvm::any_of(op->getOperands(), isNarrow)
                                 ? WalkResult::interrupt()
                                 : WalkResult::advance();
                    })
                    .wasInterrupted();
  return type.isF32() && (rounds || tf32) ? 40000 : 1;
}

struct CheckGpuKernels : impl::TesseraCheckGpuKernelsBase<CheckGpuKernels> {
  using TesseraCheckGpuKernelsBase::TesseraCheckGpuKernelsBase;

  void runOnOperation() override {
    std::optional<runtime::WarpgroupFault> planted =
        parse<runtime::WarpgroupFault>(warpgroupFault.getValue());
    if (!planted) {
      getOperation().emitError(
          unknownName<runtime::WarpgroupFault>("warpgroup-fault", warpgroupFault.getValue()));
      return signalPassFailure();
    }
    fault = *planted;
    OwningOpRef<ModuleOp> kernels = kernelsAlone(getOperation());
    std::vector<std::string> names;
    for (auto kernel : kernels->getOps<func::FuncOp>())
      names.push_back(kernel.getName().str());
    CpuOptions cpuOptions;
    GpuOptions gpuOptions;
    gpuOptions.archs = {"stub"};
    gpuOptions.schemes = schemes;
    gpuOptions.wideIndices = wideIndices;
    gpuOptions.byDigits = byDigits;
    gpuOptions.warpgroups = warpgroups;
    gpuOptions.reportAccesses = races;
    cpuOptions.useCache = gpuOptions.useCache = false;
    std::vector<KernelInfo> cpuInfos;
    std::vector<GpuKernelInfo> infos;
    FailureOr<runtime::CpuKernels> object = compileKernels(*kernels, cpuOptions, &cpuInfos);
    FailureOr<runtime::GpuModule> gpu = compileGpuKernels(*kernels, gpuOptions, &infos);
    if (failed(object) || failed(gpu))
      return signalPassFailure();
    runtime::KernelLibrary cpu;
    runtime::StubKernelLibrary stub;
    runtime::Status status = cpu.open({*object}, names);
    if (status.ok())
      status = stub.open(*gpu);
    if (!status.ok()) {
      getOperation().emitError(status.message());
      return signalPassFailure();
    }
    for (auto [i, kernel] : llvm::enumerate(kernels->getOps<func::FuncOp>())) {
      bool hasTf32 = llvm::any_of(infos[i].launches, [](auto &launch) { return launch.tf32; });
      for (bool tf32 : hasTf32 ? SmallVector<bool>{false, true} : SmallVector<bool>{false}) {
        std::string verdict = check(kernel, cpu.kernel(static_cast<int64_t>(i)), cpuInfos[i].tasks,
                                    stub, gpu->kernels[i], tf32);
        if (!verdict.empty()) {
          kernel.emitError("on the emulated GPU ") << (tf32 ? "by TF32 " : "") << verdict;
          signalPassFailure();
          continue;
        }
        if (quiet)
          continue;
        llvm::outs() << names[i] << (tf32 ? ", TF32:" : ":");
        for (auto [launch, info] : llvm::zip_equal(gpu->kernels[i].launches, infos[i].launches))
          if (launch.runs(tf32))
            llvm::outs() << " " << toString(info.scheme);
        llvm::outs() << " equal\n";
      }
    }
  }

  /// Empty when all destinations are equal. `tf32`: of the launches that round products to TF32.
  std::string check(func::FuncOp kernel, runtime::Kernel cpu, int64_t tasks,
                    const runtime::StubKernelLibrary &stub, const runtime::GpuKernel &gpu,
                    bool tf32) {
    std::vector<HostTensor> left;
    for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
      auto tensor = cast<RankedTensorType>(type);
      std::optional<runtime::DType> dtype = dtypeOf(tensor.getElementType());
      if (!dtype)
        return "it has an element type that the runtime does not support";
      runtime::Argument argument;
      argument.dtype = *dtype;
      argument.range = rangeFor(kernel);
      // A device's coordinate: at least on the first device, indices computed from it are within
      // the tensor.
      if (tensor.getElementType().isIndex() && tensor.getRank() == 0 && readsAnywhere(kernel))
        argument.range = {0, 1};
      argument.globalShape.assign(tensor.getShape().begin(), tensor.getShape().end());
      left.push_back(runtime::randomInput(argument, static_cast<int64_t>(i), seed));
    }
    const std::vector<HostTensor> given = left;
    std::vector<void *> pointers;
    for (HostTensor &tensor : left)
      pointers.push_back(tensor.data.data());
    cpu(pointers.data(), 0, tasks);
    using Kind = runtime::LaunchOrder::Kind;
    std::vector<Kind> kinds = {Kind::ascending};
    if (orders)
      kinds.insert(kinds.end(), {Kind::descending, Kind::shuffled});
    std::vector<size_t> apart(left.size());
    std::iota(apart.begin(), apart.end(), size_t(0));
    std::vector<size_t> together = sharedBuffers(kernel, overwrite);
    std::vector<HostTensor> first;
    auto run = [&](Kind kind, const std::vector<size_t> &buffers) -> std::string {
      runtime::LaunchOrder order{kind, static_cast<uint64_t>(seed), dropBarrier, exchangeWords,
                                 fault};
      // The check does not depend on the order. In place it would find that threads beyond the end
      // of a row read its last elements again, which others overwrite; they discard the values.
      order.checkAccesses = races && kind == Kind::ascending && buffers == apart;
      std::vector<HostTensor> right = given;
      runtime::Status status = emulate(right, buffers, stub, gpu, order, tf32);
      if (!status.ok())
        return status.message();
      for (size_t i = 0; i < left.size(); ++i) {
        if (llvm::count(buffers, i) > 1) // overwritten
          continue;
        const HostTensor &expected = first.empty() ? left[i] : first[i];
        const HostTensor &found = right[buffers[i]];
        if (!first.empty() && found.data == expected.data)
          continue;
        runtime::Comparison result = runtime::compare(found, expected, stepsFor(kernel, i, tf32));
        std::string name = "argument " + std::to_string(i);
        if (buffers[i] != i)
          return name + " differs if it overwrites argument " + std::to_string(buffers[i]) + ", " +
                 runtime::toString(order) + ": " + result.text(found, expected);
        if (!first.empty())
          return name + " depends on the order of blocks, warps and lanes, " +
                 runtime::toString(order) + " against ascending: " + result.text(found, expected);
        if (!result.equal)
          return name + " differs: " + result.text(found, expected);
      }
      if (first.empty())
        first = std::move(right);
      return "";
    };
    for (Kind kind : kinds)
      if (std::string why = run(kind, apart); !why.empty())
        return why;
    if (together != apart)
      for (Kind kind : kinds)
        if (std::string why = run(kind, together); !why.empty())
          return why;
    return "";
  }

  /// Runs the launches of a kernel, in one order of blocks and threads. Argument i is
  /// `tensors[buffers[i]]`.
  runtime::Status emulate(std::vector<HostTensor> &tensors, const std::vector<size_t> &buffers,
                          const runtime::StubKernelLibrary &stub, const runtime::GpuKernel &gpu,
                          const runtime::LaunchOrder &order, bool tf32) {
    runtime::Bytes workspace(gpu.workspaceBytes, std::byte(0xff));
    if (misalign > 0) // from an address of operator new
      for (HostTensor &tensor : tensors)
        tensor.data.insert(tensor.data.begin(), static_cast<size_t>(misalign), std::byte(0));
    for (const runtime::GpuLaunch &launch : gpu.launches) {
      if (!launch.runs(tf32))
        continue;
      std::vector<void *> pointers;
      for (const runtime::GpuArgument &argument : launch.arguments)
        pointers.push_back(
            argument.slot >= 0
                ? static_cast<void *>(tensors[buffers[argument.slot]].data.data() + misalign)
                : workspace.data() + (overlapWorkspace ? 0 : argument.offset));
      runtime::Status status = runtime::launch(stub, launch, pointers.data(), order);
      if (!status.ok())
        return status.in("launch " + std::to_string(&launch - gpu.launches.data()));
    }
    if (misalign > 0)
      for (HostTensor &tensor : tensors)
        tensor.data.erase(tensor.data.begin(), tensor.data.begin() + misalign);
    return {};
  }

  runtime::WarpgroupFault fault = runtime::WarpgroupFault::none;
};

} // namespace
} // namespace tessera::codegen
