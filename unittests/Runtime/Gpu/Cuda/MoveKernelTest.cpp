//===- MoveKernelTest.cpp - The GPU's move kernel, run on the host --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

#include "Execution/MoveJob.h"
#include "Gpu/Cuda/CudaDriver.h"
#include "Gpu/Cuda/MoveKernels.cu"

using namespace tessera::runtime;

namespace {

constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
                            DType::i32, DType::i16, DType::i8,  DType::i1};

/// Runs a job like the GPU, with `threads` threads, and like the host, and compares all bytes.
void compare(const Strides &strides, DType dtype, ReduceKind kind, double scale, int sources,
             int targets, const std::string &what) {
  constexpr int64_t kElements = 4096;
  int64_t size = sizeOf(dtype);
  std::vector<Bytes> from(sources, Bytes(kElements * size));
  for (int s = 0; s < sources; ++s)
    for (int64_t i = 0; i < kElements; ++i)
      writeElement(dtype, contribution(dtype, {i}, s), from[s].data() + i * size);
  std::vector<Bytes> expected(targets, Bytes(kElements * size, std::byte(0xab))), found = expected;
  MoveJob job{&strides, dtype, kind, scale, {}, {}, {}};
  job.value = elementOf(dtype, 1.0);
  for (Bytes &each : from)
    job.sources.push_back(each.data() + 16 * size);
  MoveJob onHost = job;
  for (int t = 0; t < targets; ++t) {
    onHost.targets.push_back(expected[t].data() + 8 * size);
    job.targets.push_back(found[t].data() + 8 * size);
  }
  runMoveJob(onHost);
  gpu::MoveArguments arguments{};
  Status status = gpu::describeMove(job, arguments);
  ASSERT_TRUE(status.ok()) << status.message();
  constexpr long long kThreads = 37;
  for (long long thread = 0; thread < kThreads; ++thread)
    moveBox(arguments, thread, kThreads);
  for (int t = 0; t < targets; ++t)
    ASSERT_EQ(found[t], expected[t]) << what << " of " << toString(dtype);
}

std::vector<Strides> boxes() {
  return {{{}, {}, {}, 512, 512},
          {{}, {}, {}, 7, 7},
          {{4}, {64}, {32}, 16, 64},
          {{3, 5}, {100, 9}, {45, 9}, 3, 45},
          {{2, 3, 4}, {100, 30, 1}, {12, 1, 3}, 1, 24}};
}

} // namespace

TEST(MoveKernel, CopiesAndFills) {
  for (DType dtype : kTypes)
    for (const Strides &strides : boxes())
      for (int targets : {1, 3}) {
        compare(strides, dtype, ReduceKind::sum, 1, 1, targets, "copy");
        compare(strides, dtype, ReduceKind::sum, 1, 0, targets, "fill");
      }
}

TEST(MoveKernel, ReducesInTheOrderOfSources) {
  for (DType dtype : kTypes)
    for (const Strides &strides : boxes())
      for (ReduceKind kind :
           {ReduceKind::sum, ReduceKind::avg, ReduceKind::max, ReduceKind::min, ReduceKind::prod}) {
        if (kind == ReduceKind::avg && !isFloat(dtype))
          continue;
        double scale = kind == ReduceKind::avg ? 1.0 / 3 : 1;
        compare(strides, dtype, kind, scale, 3, 2, std::string(toString(kind)));
      }
}

TEST(MoveKernel, HalvesRoundLikeTheRuntime) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    Half half{static_cast<unsigned short>(bits)};
    float wide = halfToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(half.load()));
      continue;
    }
    ASSERT_EQ(half.load(), wide) << bits;
  }
  // Every exponent, with fractions close to ties.
  for (uint32_t bits = 0; bits < 0x80000000u; bits += 0x0003ffu)
    for (uint32_t sign : {0u, 0x80000000u}) {
      float value = asFloat(bits | sign);
      Half half{};
      Bfloat16 brain{};
      half.store(value);
      brain.store(value);
      if (std::isnan(value))
        continue;
      ASSERT_EQ(half.bits, floatToHalf(value)) << value;
      ASSERT_EQ(brain.bits, floatToBfloat(value)) << value;
    }
}

TEST(MoveKernel, CopiesGoInTheWidestElements) {
  alignas(64) static std::byte a[4096], b[4096];
  Strides flat{{}, {}, {}, 512, 512}, odd{{3}, {30}, {45}, 9, 27};
  gpu::MoveArguments arguments{};
  MoveJob job{&flat, DType::f32, {}, 1, {a}, {b}, {}};
  ASSERT_TRUE(gpu::describeMove(job, arguments).ok());
  EXPECT_EQ(arguments.width, 16);
  EXPECT_EQ(arguments.run, 128);
  job.targets = {b + 4};
  ASSERT_TRUE(gpu::describeMove(job, arguments).ok());
  EXPECT_EQ(arguments.width, 4);
  job.strides = &odd;
  job.dtype = DType::i8;
  ASSERT_TRUE(gpu::describeMove(job, arguments).ok());
  EXPECT_EQ(arguments.width, 1);
}

TEST(CudaImages, ArchitecturesRunCompatibleImages) {
  GpuModule module;
  module.kernels.push_back({{{"k", {1, 1, 1}, {1, 1, 1}, 0, {}}}, 0});
  for (const char *arch : {"sm_80", "sm_90a", "compute_80"})
    module.images.push_back({arch, {"k"}, {}});
  auto archFor = [&](int capability) {
    auto archs = gpu::architecturesFor(module, capability, "GPU");
    if (!archs)
      return archs.message();
    std::string text;
    for (const std::string &arch : *archs)
      text += (text.empty() ? "" : ", ") + arch;
    return text;
  };
  EXPECT_EQ(archFor(90), "sm_90a, compute_80");
  EXPECT_EQ(archFor(80), "sm_80, compute_80");
  EXPECT_EQ(archFor(86), "sm_80, compute_80");
  EXPECT_EQ(archFor(100), "compute_80");
  EXPECT_EQ(archFor(75), "the artifact has code for sm_80, sm_90a, compute_80, GPU is sm_75; "
                         "kernels need sm_80 or newer");
}
