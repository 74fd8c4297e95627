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

/// Of all architectures that the compiler accepts, and of the runtime's own kernels.
constexpr int kOldestCapability = 80;

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

/// The fix for an artifact without code for a GPU.
static std::string howToCompile(int capability) {
  if (capability < kOldestCapability)
    return "kernels need sm_" + std::to_string(kOldestCapability) + " or newer";
  return "compile it with --target=cuda --arch sm_" + std::to_string(capability);
}

Expected<std::vector<std::string>> architecturesFor(const GpuModule &module, int capability,
                                                    const std::string &gpu) {
  std::vector<std::pair<int, std::string>> ranked;
  for (const std::string &arch : module.architectures())
    if (int found = suitability(arch, capability))
      ranked.emplace_back(found, arch);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto &a, const auto &b) { return a.first > b.first; });
  bool launches = std::any_of(module.kernels.begin(), module.kernels.end(),
                              [](const GpuKernel &kernel) { return !kernel.launches.empty(); });
  if (ranked.empty() && launches)
    return Status::error(
        "the artifact has code for " +
        (module.images.empty() ? std::string("no GPU") : module.architecturesText()) + ", " + gpu +
        " is sm_" + std::to_string(capability) + "; " + howToCompile(capability));
  std::vector<std::string> archs;
  for (auto &[found, arch] : ranked)
    archs.push_back(arch);
  return archs;
}

Status CudaDriver::load(int64_t, const Artifact &artifact) {
  if (loaded)
    return {};
  if (artifact.gpu.empty() && !artifact.program.kernels.empty())
    return Status::error("the artifact was compiled for the CPU, " + name + " is sm_" +
                         std::to_string(capability()) + "; " + howToCompile(capability()));
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

/// Whether the driver refuses code because of its version or architecture.
static bool refuses(CuResult result) {
  return result == kCuInvalidImage || result == kCuNoBinary || result == kCuInvalidPtx ||
         result == kCuNoCompiler || result == kCuUnsupportedPtx;
}

/// The error for code that is newer than the driver. `tried` has architectures and answers; `fix`
/// is an alternative to another driver, or empty.
static Status tooNew(const std::vector<std::pair<std::string, CuResult>> &tried, const CudaApi &api,
                     const std::string &gpu, const std::string &fix) {
  std::string text;
  for (auto &[arch, said] : tried)
    text += (text.empty() ? "" : ", ") + arch + " (CUDA error " + std::to_string(said) + ")";
  return Status::error(
      "the CUDA driver of " + gpu + " supports CUDA " + std::to_string(api.version / 1000) + "." +
      std::to_string(api.version % 1000 / 10) + " and does not load the code for " + text +
      "; install a later driver" + (fix.empty() ? "" : ", or " + fix));
}

Expected<CuResult> CudaDriver::loadArchitecture(const GpuModule &module, const std::string &arch) {
  std::vector<CuModule> opened;
  for (const GpuImage &image : module.images) {
    if (image.arch != arch)
      continue;
    CuModule one = nullptr;
    Bytes text = image.code; // PTX must end with a zero
    text.push_back(std::byte(0));
    CuResult answer = api.moduleLoadData(&one, text.data());
    if (refuses(answer)) {
      for (CuModule each : opened)
        (void)api.moduleUnload(each);
      return answer;
    }
    TESSERA_RETURN_IF_ERROR(api.check(answer, "cannot load the code for " + arch + " on " + name));
    opened.push_back(one);
    for (const std::string &symbol : image.symbols)
      TESSERA_RETURN_IF_ERROR(
          api.check(api.moduleGetFunction(&symbols[symbol], one, symbol.c_str()),
                    "cannot find kernel " + symbol));
  }
  modules.insert(modules.end(), opened.begin(), opened.end());
  return CuResult(0);
}

/// A driver older than the assembler may refuse a cubin and still accept PTX.
Status CudaDriver::loadImages(const GpuModule &module) {
  auto archs = architecturesFor(module, capability(), name);
  if (!archs)
    return archs.status();
  std::vector<std::pair<std::string, CuResult>> refused;
  const std::string *runs = nullptr;
  for (const std::string &arch : *archs) {
    auto answer = loadArchitecture(module, arch);
    if (!answer)
      return answer.status();
    if (*answer == 0) {
      runs = &arch;
      break;
    }
    refused.emplace_back(arch, *answer);
  }
  auto isPtx = [](const auto &each) { return numberOf(each.first, "compute_") > 0; };
  if (!refused.empty() && !runs) {
    bool anyPtx = std::any_of(refused.begin(), refused.end(), isPtx);
    bool anyCubin = !std::all_of(refused.begin(), refused.end(), isPtx);
    return tooNew(refused, api, name,
                  !anyPtx ? "compile PTX, --arch compute_80"
                  : !anyCubin
                      ? "compile for the GPU itself, --arch sm_" + std::to_string(capability())
                      : std::string());
  }
  for (auto &[arch, answer] : refused)
    std::fprintf(stderr,
                 "tessera: remark: the CUDA driver of %s does not load the code for %s (CUDA error "
                 "%d); the code for %s runs\n",
                 name.c_str(), arch.c_str(), answer, runs->c_str());
  constexpr int64_t kStaticLimit = 48 << 10; // more needs a function attribute
  for (const GpuKernel &kernel : module.kernels) {
    auto &list = launches.emplace_back();
    for (const GpuLaunch &each : kernel.launches) {
      list.push_back(symbols[each.symbol]);
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
  if (capability() < kOldestCapability)
    return Status::error(name + " is sm_" + std::to_string(capability()) + "; " +
                         howToCompile(capability()));
  auto find = [&](const char *ptx, const char *symbol, CuFunction &function) {
    CuModule opened = nullptr;
    CuResult answer = api.moduleLoadData(&opened, ptx);
    if (refuses(answer))
      return tooNew({{"the runtime's " + std::string(symbol), answer}}, api, name, "");
    TESSERA_RETURN_IF_ERROR(api.check(answer, "cannot load kernel " + std::string(symbol)));
    modules.push_back(opened);
    return api.check(api.moduleGetFunction(&function, opened, symbol), symbol);
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
