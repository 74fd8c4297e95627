//===- CudaImages.cpp - Load code for a GPU and kernels of the runtime ----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaDriver.h"

#include "../../Artifact/Steps.h"
#include "../../Execution/MoveJob.h"
#include "GemmArguments.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace tessera::runtime::gpu {

/// The text of MoveKernels.ptx and GemmKernel.ptx.
extern const char *const kMovePtx;
extern const char *const kGemmPtx;

/// 90 for "sm_90a" and "compute_90"; 0 for anything else.
static int numberOf(const std::string &arch, const char *prefix) {
  return arch.rfind(prefix, 0) == 0 ? std::atoi(arch.c_str() + std::strlen(prefix)) : 0;
}

/// Ranks code of an architecture for a GPU; 0: it does not run there.
static int suitability(const std::string &arch, int capability) {
  bool exact = !arch.empty() && arch.back() == 'a'; // has features of this architecture only
  if (int number = numberOf(arch, "sm_")) {
    if (number == capability)
      return 1000 + exact;
    bool sameMajor = number / 10 == capability / 10 && number < capability;
    return sameMajor && !exact ? 500 + number : 0;
  }
  int number = numberOf(arch, "compute_");
  return number > 0 && (exact ? number == capability : number <= capability) ? number : 0;
}

Expected<std::vector<const GpuImage *>> imagesFor(const GpuModule &module, int capability,
                                                  const std::string &gpu) {
  std::string best;
  int most = 0;
  for (const std::string &arch : module.architectures())
    if (int found = suitability(arch, capability); found > most) {
      most = found;
      best = arch;
    }
  bool launches = std::any_of(module.kernels.begin(), module.kernels.end(),
                              [](const GpuKernel &kernel) { return !kernel.launches.empty(); });
  if (most == 0 && launches)
    return Status::error(
        "the artifact has code for " +
        (module.images.empty() ? std::string("no GPU") : module.architecturesText()) + ", " + gpu +
        " is sm_" + std::to_string(capability) + "; compile it with --target=cuda --arch sm_" +
        std::to_string(capability));
  std::vector<const GpuImage *> images;
  for (const GpuImage &image : module.images)
    if (image.arch == best)
      images.push_back(&image);
  return images;
}

Status CudaDriver::load(int64_t, const Artifact &artifact) {
  if (loaded)
    return {};
  if (artifact.gpu.empty() && !artifact.program.kernels.empty())
    return Status::error("the artifact was compiled for the CPU; compile it with --target=cuda "
                         "--arch sm_" +
                         std::to_string(capability()));
  loaded = &artifact;
  // Otherwise a missing library would fail in the middle of the first step.
  if (hasStep<GemmStep>(artifact.program,
                        [](const GemmStep &step) { return CublasLt::multiplies(step.dtype); }))
    TESSERA_RETURN_IF_ERROR(blas.open());
  TESSERA_RETURN_IF_ERROR(loadImages(artifact.gpu));
  prepareConvolutions(artifact.gpu);
  return findKernels();
}

static std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t extent : shape)
    text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

/// A missing library is not an error: kernels compute the convolutions.
void CudaDriver::prepareConvolutions(const GpuModule &module) {
  auto isConvolution = [](const GpuKernel &kernel) { return kernel.convolution.has_value(); };
  if (std::none_of(module.kernels.begin(), module.kernels.end(), isConvolution))
    return;
  if (Status opened = dnn.open(); !opened.ok()) {
    std::fprintf(stderr, "tessera: remark: %s; without it, Tessera's kernels are used\n",
                 opened.message().c_str());
    return;
  }
  for (const GpuKernel &kernel : module.kernels) {
    if (!kernel.convolution)
      continue;
    int status = 0;
    if (std::optional<int64_t> bytes = dnn.prepare(*kernel.convolution, status)) {
      workspaceBytes = std::max(workspaceBytes, *bytes);
      continue;
    }
    std::fprintf(stderr,
                 "tessera: remark: cuDNN has no exact engine for a convolution of %s by %s (status "
                 "%d); using a kernel of Tessera\n",
                 shapeText(kernel.convolution->x.shape).c_str(),
                 shapeText(kernel.convolution->w.shape).c_str(), status);
  }
}

/// The error for code that is newer than the driver.
static Status tooNew(const std::string &arch, const CudaApi &api, const std::string &gpu,
                     CuResult said) {
  int number = numberOf(arch, "compute_");
  return Status::error(
      "the CUDA driver of " + gpu + " supports CUDA " + std::to_string(api.version / 1000) + "." +
      std::to_string(api.version % 1000 / 10) + " and does not load the code for " + arch +
      " (CUDA error " + std::to_string(said) + "); install a later driver, or compile " +
      (number ? "for the GPU itself, --arch sm_" + std::to_string(number) + " or later"
              : std::string("PTX, --arch compute_80")));
}

Status CudaDriver::loadImages(const GpuModule &module) {
  auto images = imagesFor(module, capability(), name);
  if (!images)
    return images.status();
  std::map<std::string, CuFunction> functions;
  for (const GpuImage *image : *images) {
    CuModule opened = nullptr;
    Bytes text = image->code; // PTX must end with a zero
    text.push_back(std::byte(0));
    CuResult loadedAs = api.moduleLoadData(&opened, text.data());
    if (loadedAs == kCuInvalidImage || loadedAs == kCuNoBinary || loadedAs == kCuUnsupportedPtx)
      return tooNew(image->arch, api, name, loadedAs);
    TESSERA_RETURN_IF_ERROR(
        api.check(loadedAs, "cannot load the code for " + image->arch + " on " + name));
    modules.push_back(opened);
    for (const std::string &symbol : image->symbols)
      TESSERA_RETURN_IF_ERROR(
          api.check(api.moduleGetFunction(&functions[symbol], opened, symbol.c_str()),
                    "cannot find kernel " + symbol));
  }
  constexpr int64_t kStaticLimit = 48 << 10; // more needs a function attribute
  for (const GpuKernel &kernel : module.kernels) {
    auto &list = launches.emplace_back();
    for (const GpuLaunch &each : kernel.launches) {
      list.push_back(functions[each.symbol]);
      if (each.sharedBytes > kStaticLimit)
        TESSERA_RETURN_IF_ERROR(api.check(api.funcSetAttribute(list.back(), kCuMaxDynamicShared,
                                                               static_cast<int>(each.sharedBytes)),
                                          "cannot set the shared memory of kernel " + each.symbol));
    }
    workspaceBytes = std::max(workspaceBytes, kernel.workspaceBytes);
  }
  return {};
}

Status CudaDriver::findKernels() {
  auto find = [&](const char *ptx, const char *name, CuFunction &function) {
    CuModule opened = nullptr;
    TESSERA_RETURN_IF_ERROR(
        api.check(api.moduleLoadData(&opened, ptx), "cannot load kernel " + std::string(name)));
    modules.push_back(opened);
    return api.check(api.moduleGetFunction(&function, opened, name), name);
  };
  TESSERA_RETURN_IF_ERROR(find(kMovePtx, "tessera_move", moveKernel));
  // Loaded even with cuBLASLt, which may have no algorithm: that shows during the capture of a
  // graph, when no code may be loaded.
  return hasStep<GemmStep>(loaded->program) ? find(kGemmPtx, "tessera_gemm", gemmKernel) : Status();
}

static int typeOf(DType dtype) {
  switch (dtype) {
  case DType::f64:
    return kTypeF64;
  case DType::f32:
    return kTypeF32;
  case DType::f16:
    return kTypeF16;
  case DType::bf16:
    return kTypeBF16;
  case DType::i64:
  case DType::index:
    return kTypeI64;
  case DType::i32:
    return kTypeI32;
  case DType::i16:
    return kTypeI16;
  default:
    return kTypeI8;
  }
}

/// For i1, sum is or (max) and prod is and (min) of 0 and 1.
static int reductionOf(DType dtype, sharding::ReduceKind kind) {
  using sharding::ReduceKind;
  bool isBit = dtype == DType::i1;
  switch (kind) {
  case ReduceKind::prod:
    return isBit ? kReduceMin : kReduceProd;
  case ReduceKind::max:
    return kReduceMax;
  case ReduceKind::min:
    return kReduceMin;
  default:
    return isBit ? kReduceMax : kReduceSum;
  }
}

/// The widest element size that divides all addresses, strides and lengths of a copy, in bytes.
static int64_t widthOf(const MoveJob &job, int64_t size) {
  const Strides &strides = *job.strides;
  uint64_t all = 16 | static_cast<uint64_t>(strides.run * size);
  for (size_t d = 0; d < strides.extents.size(); ++d)
    all |= static_cast<uint64_t>(strides.source[d] * size) |
           static_cast<uint64_t>(strides.target[d] * size);
  for (const std::byte *from : job.sources)
    all |= reinterpret_cast<uint64_t>(from);
  for (const std::byte *to : job.targets)
    all |= reinterpret_cast<uint64_t>(to);
  return static_cast<int64_t>(all & (~all + 1)); // the lowest bit
}

Status describeMove(const MoveJob &job, MoveArguments &arguments) {
  const Strides &strides = *job.strides;
  int64_t size = sizeOf(job.dtype);
  if (strides.extents.size() > kMaxMoveLoops || job.sources.size() > kMaxMoveEnds ||
      job.targets.size() > kMaxMoveEnds)
    return Status::error("a box of " + std::to_string(strides.extents.size()) + " loops, " +
                         std::to_string(job.sources.size()) + " sources and " +
                         std::to_string(job.targets.size()) +
                         " targets; a kernel supports at most " + std::to_string(kMaxMoveLoops) +
                         " loops and " + std::to_string(kMaxMoveEnds) + " of each");
  arguments.mode = job.sources.empty() ? kMoveFill : reduces(job) ? kMoveReduce : kMoveCopy;
  int64_t width = arguments.mode == kMoveCopy ? widthOf(job, size) : size;
  auto scaled = [&](int64_t elements) { return elements * size / width; };
  arguments.width = static_cast<int>(width);
  arguments.dtype = typeOf(job.dtype);
  arguments.reduction = reductionOf(job.dtype, job.reduction);
  arguments.scale = job.scale;
  arguments.scaled = job.scale != 1;
  std::memcpy(&arguments.value, job.value.data(), sizeof(arguments.value));
  arguments.loops = static_cast<int>(strides.extents.size());
  bool hasSource = strides.source.size() == strides.extents.size();
  for (size_t d = 0; d < strides.extents.size(); ++d) {
    arguments.extents[d] = strides.extents[d];
    arguments.source[d] = hasSource ? scaled(strides.source[d]) : 0;
    arguments.target[d] = scaled(strides.target[d]);
  }
  arguments.run = scaled(strides.run);
  arguments.elements = scaled(strides.elements);
  arguments.numSources = static_cast<int>(job.sources.size());
  arguments.numTargets = static_cast<int>(job.targets.size());
  std::copy(job.sources.begin(), job.sources.end(), arguments.sources);
  std::copy(job.targets.begin(), job.targets.end(), arguments.targets);
  return {};
}

GemmArguments describeGemm(const GemmStep &step, const void *a, const void *b, void *c,
                           const void *bias) {
  GemmArguments arguments{};
  DType result = step.resultDType.value_or(step.dtype);
  arguments.dtype = step.dtype == DType::i1 ? kTypeI1 : typeOf(step.dtype);
  arguments.resultType = result == DType::i1 ? kTypeI1 : typeOf(result);
  arguments.transA = step.transA;
  arguments.transB = step.transB;
  arguments.accumulate = step.accumulate;
  arguments.epilogue = step.epilogue == Epilogue::relu   ? kEpilogueRelu
                       : step.epilogue == Epilogue::gelu ? kEpilogueGelu
                                                         : kEpilogueNone;
  arguments.batch = step.batch, arguments.m = step.m, arguments.n = step.n, arguments.k = step.k;
  arguments.lda = step.lda, arguments.ldb = step.ldb, arguments.ldc = step.ldc;
  arguments.strideA = step.strideA, arguments.strideB = step.strideB;
  arguments.strideC = step.strideC;
  arguments.a = a, arguments.b = b, arguments.c = c, arguments.bias = bias;
  return arguments;
}

} // namespace tessera::runtime::gpu
