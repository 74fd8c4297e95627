//===- GpuVerify.cpp - Checks of the gpu section --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Artifact/GpuKernels.h"

#include <limits>
#include <map>
#include <set>

namespace tessera::runtime {

namespace {

/// Capabilities of all CUDA devices since compute capability 5.0.
constexpr std::array<int64_t, 3> kMaxGrid = {std::numeric_limits<int32_t>::max(), 65535, 65535};
constexpr std::array<int64_t, 3> kMaxBlock = {1024, 1024, 64};
constexpr int64_t kMaxThreads = 1024;
/// The most of any device, 227 KiB of compute capability 9.0.
constexpr int64_t kMaxShared = 227 << 10;
constexpr int64_t kHuge = int64_t(1) << 48;

std::string text(int64_t value) {
  return std::to_string(value);
}

Status checkGrid(const GpuLaunch &launch) {
  int64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    if (launch.grid[i] < 1 || launch.grid[i] > kMaxGrid[i])
      return Status::error("a grid of " + text(launch.grid[i]) + " blocks in dimension " + text(i) +
                           "; expected 1 to " + text(kMaxGrid[i]));
    if (launch.block[i] < 1 || launch.block[i] > kMaxBlock[i])
      return Status::error("a block of " + text(launch.block[i]) + " threads in dimension " +
                           text(i) + "; expected 1 to " + text(kMaxBlock[i]));
    threads *= launch.block[i];
  }
  if (threads > kMaxThreads)
    return Status::error("a block of " + text(threads) + " threads; expected at most " +
                         text(kMaxThreads));
  if (launch.sharedBytes < 0 || launch.sharedBytes > kMaxShared)
    return Status::error(text(launch.sharedBytes) + " bytes of shared memory; expected 0 to " +
                         text(kMaxShared));
  return {};
}

Status checkWorkspace(const GpuKernel &kernel, const GpuArgument &argument) {
  if (argument.offset < 0 || argument.offset % int64_t(kAlignment) != 0 ||
      argument.offset > kernel.workspaceBytes ||
      argument.bytes > kernel.workspaceBytes - argument.offset)
    return Status::error("bytes " + text(argument.offset) + " to " +
                         text(argument.offset + argument.bytes) +
                         " are not a 64-byte aligned range of the workspace of " +
                         text(kernel.workspaceBytes) + " bytes");
  return {};
}

/// Whether a library that computes the convolution only accesses elements that the launches access.
Status checkConvolution(const GpuKernel &kernel) {
  const GpuConvolution &convolution = *kernel.convolution;
  using Kind = GpuConvolution::Kind;
  size_t dimensions = convolution.strides.size();
  for (DType dtype : {convolution.dtype, convolution.result})
    if (dtype != DType::f32 && !isHalf(dtype))
      return Status::error("unsupported element type " + std::string(toString(dtype)) +
                           "; expected f32, f16 or bf16");
  if (dimensions < 2 || dimensions > 3 || convolution.padding.size() != dimensions ||
      convolution.dilations.size() != dimensions)
    return Status::error(
        "expected a padding, a stride and a dilation for each of 2 or 3 spatial dimensions");
  for (size_t d = 0; d < dimensions; ++d)
    if (convolution.padding[d] < 0 || convolution.padding[d] > kHuge ||
        convolution.strides[d] < 1 || convolution.dilations[d] < 1)
      return Status::error("a padding must be at least 0, a stride and a dilation at least 1");
  for (auto [operand, computes] :
       {std::pair(&convolution.x, Kind::byInput), std::pair(&convolution.w, Kind::byWeights),
        std::pair(&convolution.y, Kind::forward)}) {
    if (operand->shape.size() != dimensions + 2 || operand->strides.size() != dimensions + 2)
      return Status::error("an operand must have two more dimensions than the spatial ones");
    if (operand->offset < 0 || operand->offset > kHuge)
      return Status::error("an operand must begin within its slot");
    int64_t touched = -1, last = operand->offset;
    for (size_t d = 0; d < dimensions + 2; ++d) {
      int64_t extent = operand->shape[d], stride = operand->strides[d];
      if (extent < 1 || stride < 1 || extent > kHuge || stride > kHuge ||
          (extent - 1) > (kHuge - last) / stride)
        return Status::error("extent " + text(extent) + " of stride " + text(stride) +
                             " is out of range");
      last += (extent - 1) * stride;
    }
    bool isWritten = convolution.kind == computes;
    for (const GpuLaunch &launch : kernel.launches)
      for (const GpuArgument &argument : launch.arguments)
        if (argument.slot == operand->slot && argument.slot >= 0 && (argument.writes || !isWritten))
          touched = std::max(touched, argument.bytes);
    if (last >= touched / sizeOf(convolution.typeOf(computes)))
      return Status::error("element " + text(last) + " of argument " + text(operand->slot) +
                           " lies beyond the " + text(std::max<int64_t>(touched, 0)) +
                           " bytes that the launches access");
  }
  return {};
}

Status checkKernel(const GpuKernel &kernel) {
  if (kernel.workspaceBytes < 0 || kernel.workspaceBytes > kHuge)
    return Status::error("a workspace of " + text(kernel.workspaceBytes) +
                         " bytes is out of range");
  for (size_t i = 0; i < kernel.launches.size(); ++i) {
    const GpuLaunch &launch = kernel.launches[i];
    std::string place = "launches[" + text(int64_t(i)) + "]";
    TESSERA_RETURN_IF_ERROR(checkGrid(launch).in(place));
    for (size_t a = 0; a < launch.arguments.size(); ++a) {
      const GpuArgument &argument = launch.arguments[a];
      std::string where = place + ".arguments[" + text(int64_t(a)) + "]";
      if (argument.slot < -1 || argument.bytes < 0 || argument.bytes > kHuge)
        return Status::error("slot " + text(argument.slot) + " with " + text(argument.bytes) +
                             " bytes is out of range")
            .in(where);
      if (argument.slot < 0)
        TESSERA_RETURN_IF_ERROR(checkWorkspace(kernel, argument).in(where));
      else if (argument.offset != 0)
        return Status::error("the offset within a slot must be 0").in(where);
    }
  }
  return kernel.convolution ? checkConvolution(kernel).in("convolution") : Status();
}

/// Whether the kernel stays within the slots that a step gives it.
Status checkStep(const GpuKernel &kernel, const Part &part, const LaunchStep &step) {
  if (step.blocks != 1)
    return Status::error("a launch has " + text(step.blocks) +
                         " blocks; launches of GPU kernels have one");
  for (const GpuLaunch &launch : kernel.launches)
    for (const GpuArgument &argument : launch.arguments) {
      if (argument.slot < 0)
        continue;
      if (argument.slot >= static_cast<int64_t>(step.slots.size()))
        return Status::error("launch '" + launch.symbol + "' takes argument " +
                             text(argument.slot) + ", the step has " +
                             text(int64_t(step.slots.size())));
      if (argument.writes && argument.slot < step.reads)
        return Status::error("launch '" + launch.symbol + "' writes argument " +
                             text(argument.slot) + ", which the step only reads");
      const Slot &slot = part.slots[step.slots[argument.slot]];
      if (argument.bytes > slot.bytes)
        return Status::error("launch '" + launch.symbol + "' touches " + text(argument.bytes) +
                             " bytes of slot '" + slot.name + "', which has " + text(slot.bytes));
    }
  return {};
}

Status checkSteps(const GpuModule &module, const Part &part, const StepList &steps) {
  for (const Step &step : steps) {
    if (const auto *launch = std::get_if<LaunchStep>(&step.action)) {
      TESSERA_RETURN_IF_ERROR(checkStep(module.kernels[launch->kernel], part, *launch));
    } else if (const auto *loop = std::get_if<LoopStep>(&step.action)) {
      TESSERA_RETURN_IF_ERROR(checkSteps(module, part, loop->body));
    } else if (const auto *loop = std::get_if<WhileStep>(&step.action)) {
      TESSERA_RETURN_IF_ERROR(checkSteps(module, part, loop->before));
      TESSERA_RETURN_IF_ERROR(checkSteps(module, part, loop->body));
    } else if (const auto *branch = std::get_if<IfStep>(&step.action)) {
      TESSERA_RETURN_IF_ERROR(checkSteps(module, part, branch->thenSteps));
      TESSERA_RETURN_IF_ERROR(checkSteps(module, part, branch->elseSteps));
    }
  }
  return {};
}

Status checkImages(const GpuModule &module) {
  std::set<std::string> launched;
  for (const GpuKernel &kernel : module.kernels)
    for (const GpuLaunch &launch : kernel.launches)
      launched.insert(launch.symbol);
  if (!launched.empty() && module.images.empty())
    return Status::error("gpu.images: there is no code for any architecture");
  for (const std::string &arch : module.architectures()) {
    std::map<std::string, int> defined;
    for (const GpuImage &image : module.images)
      if (image.arch == arch)
        for (const std::string &symbol : image.symbols)
          if (++defined[symbol] > 1)
            return Status::error("gpu.images: '" + symbol + "' is defined twice for " + arch);
    for (const std::string &symbol : launched)
      if (!defined.count(symbol))
        return Status::error("gpu.images: no image for " + arch + " defines '" + symbol + "'");
  }
  return {};
}

} // namespace

Status verify(const GpuModule &module, const Program &program) {
  if (module.kernels.size() != program.kernels.size())
    return Status::error("gpu.kernels: " + text(int64_t(module.kernels.size())) +
                         " kernels, the program names " + text(int64_t(program.kernels.size())));
  for (size_t i = 0; i < module.kernels.size(); ++i)
    TESSERA_RETURN_IF_ERROR(
        checkKernel(module.kernels[i]).in("gpu.kernels[" + text(int64_t(i)) + "]"));
  TESSERA_RETURN_IF_ERROR(checkImages(module));
  for (const Part &part : program.parts)
    TESSERA_RETURN_IF_ERROR(checkSteps(module, part, part.steps).in("gpu"));
  return {};
}

} // namespace tessera::runtime
