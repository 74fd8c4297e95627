//===- GpuModuleTest.cpp - Valid and damaged gpu sections -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixtures.h"

#include "tessera/Runtime/Session/Backend.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace tessera::runtime;

/// A program with one kernel of two launches over a workspace, in a loop.
static Artifact gpuArtifact() {
  ProgramBuilder b;
  int64_t p = b.part(b.mesh(makeMesh({1})));
  Layout layout = replicated({64});
  int64_t x = b.argument("x", p, DType::f32, layout), y = b.slot(p, DType::f32, layout);
  int64_t iv = b.slot(p, DType::index, Shape{});
  b.program.kernels = {"k0"};
  b.program.kernelBytes = {{256, 256}};
  Step loop = b.step(LoopStep{iv, {0, {}}, {2, {}}, {1, {}}, {}});
  std::get<LoopStep>(loop.action).body.push_back(b.step(LaunchStep{0, {x, y}, 1}));
  b.program.parts[p].steps.push_back(loop);
  b.result("y", p, y, layout);
  Artifact artifact{b.program, "", {}, {}};
  GpuLaunch first{"k0_a", {2, 1, 1}, {32, 1, 1}, 0, {{0, 0, 256, false}, {-1, 0, 64, true}}};
  GpuLaunch second{"k0_b", {1, 1, 1}, {16, 2, 1}, 128, {{-1, 0, 64, false}, {1, 0, 256, true}}};
  artifact.gpu.kernels.push_back({{first, second}, 256, {}});
  artifact.gpu.images.push_back({"sm_80", {"k0_a"}, Bytes(100, std::byte(1))});
  artifact.gpu.images.push_back({"sm_80", {"k0_b"}, Bytes(10, std::byte(2))});
  artifact.gpu.images.push_back({"compute_80", {"k0_b", "k0_a"}, Bytes(77, std::byte(3))});
  return artifact;
}

TEST(GpuModule, RoundTrip) {
  Artifact artifact = gpuArtifact();
  Bytes bytes = serialize(artifact);
  auto read = parseArtifact(bytes.data(), bytes.size(), "mem");
  ASSERT_TRUE(read) << read.message();
  EXPECT_EQ(serialize(read->gpu), serialize(artifact.gpu));
  EXPECT_EQ(read->gpu.architecturesText(), "sm_80, compute_80");
  const GpuLaunch &launch = read->gpu.kernels[0].launches[1];
  EXPECT_EQ(launch.symbol, "k0_b");
  EXPECT_EQ(launch.block[1], 2);
  EXPECT_EQ(launch.sharedBytes, 128);
  EXPECT_EQ(launch.arguments[0].slot, -1);
  EXPECT_TRUE(launch.arguments[1].writes);
  EXPECT_EQ(read->gpu.images[1].code, Bytes(10, std::byte(2)));
}

TEST(GpuModule, CpuArtifactsHaveNone) {
  Artifact artifact = gpuArtifact();
  artifact.gpu = {};
  artifact.kernels = {CpuKernels{"x86-64", "x86-64", {}, {1}, Bytes(8)}};
  Bytes bytes = serialize(artifact);
  auto read = parseArtifact(bytes.data(), bytes.size(), "mem");
  ASSERT_TRUE(read) << read.message();
  EXPECT_TRUE(read->gpu.empty());
}

TEST(GpuModule, RejectsDamage) {
  Bytes whole = serialize(gpuArtifact().gpu);
  for (size_t size = 0; size + 1 < whole.size(); size += 7) {
    auto read = parseGpuModule(whole.data(), size);
    EXPECT_FALSE(read) << size;
  }
  Bytes damaged = whole;
  uint64_t length = ~uint64_t(0);
  std::memcpy(damaged.data(), &length, sizeof(length));
  EXPECT_EQ(parseGpuModule(damaged.data(), damaged.size()).message(),
            "gpu: the header is longer than the section");
}

TEST(GpuModule, RejectsEveryInvalidReference) {
  using Change = void (*)(GpuModule &);
  struct {
    const char *expected;
    Change change;
  } table[] = {
      {"2 kernels", [](GpuModule &m) { m.kernels.emplace_back(); }},
      {"a grid of 0", [](GpuModule &m) { m.kernels[0].launches[0].grid[0] = 0; }},
      {"a grid of 65536", [](GpuModule &m) { m.kernels[0].launches[0].grid[2] = 65536; }},
      {"2048 threads", [](GpuModule &m) { m.kernels[0].launches[0].block = {32, 64, 1}; }},
      {"shared memory", [](GpuModule &m) { m.kernels[0].launches[0].sharedBytes = 1 << 20; }},
      {"the step has 2", [](GpuModule &m) { m.kernels[0].launches[0].arguments[0].slot = 2; }},
      {"slot -2", [](GpuModule &m) { m.kernels[0].launches[0].arguments[0].slot = -2; }},
      {"only reads", [](GpuModule &m) { m.kernels[0].launches[0].arguments[0].writes = true; }},
      {"which has 256", [](GpuModule &m) { m.kernels[0].launches[0].arguments[0].bytes = 257; }},
      {"within a slot", [](GpuModule &m) { m.kernels[0].launches[0].arguments[0].offset = 64; }},
      {"range of the workspace of 256",
       [](GpuModule &m) { m.kernels[0].launches[0].arguments[1].offset = 256; }},
      {"range of the workspace of 256",
       [](GpuModule &m) { m.kernels[0].launches[0].arguments[1].offset = 4; }},
      {"a workspace of -1", [](GpuModule &m) { m.kernels[0].workspaceBytes = -1; }},
      {"for any architecture", [](GpuModule &m) { m.images.clear(); }},
      {"no image for sm_80 defines 'k0_b'",
       [](GpuModule &m) { m.images.erase(m.images.begin() + 1); }},
      {"defined twice", [](GpuModule &m) { m.images[1].symbols.push_back("k0_a"); }},
  };
  for (auto &row : table) {
    Artifact artifact = gpuArtifact();
    ASSERT_TRUE(verify(artifact.gpu, artifact.program).ok());
    row.change(artifact.gpu);
    Status status = verify(artifact.gpu, artifact.program);
    EXPECT_NE(status.message().find(row.expected), std::string::npos)
        << row.expected << ": " << status.message();
  }
}

/// Images of 4 x 4 and weights of 3 x 3 are in the first argument, the result is in the second.
static Artifact convolutionArtifact() {
  Artifact artifact = gpuArtifact();
  GpuConvolution convolution;
  convolution.x = {0, 0, {1, 2, 4, 4}, {32, 16, 4, 1}};
  convolution.w = {0, 32, {1, 2, 3, 3}, {18, 9, 3, 1}};
  convolution.y = {1, 0, {1, 1, 2, 2}, {4, 4, 2, 1}};
  convolution.padding = {0, 0};
  convolution.strides = convolution.dilations = {1, 1};
  artifact.gpu.kernels[0].convolution = convolution;
  return artifact;
}

TEST(GpuModule, ConvolutionsRoundTrip) {
  Artifact artifact = convolutionArtifact();
  artifact.gpu.kernels[0].convolution->kind = GpuConvolution::Kind::byWeights;
  artifact.gpu.kernels[0].convolution->dtype = DType::bf16;
  artifact.gpu.kernels[0].convolution->result = DType::f16;
  Bytes bytes = serialize(artifact.gpu);
  auto read = parseGpuModule(bytes.data(), bytes.size());
  ASSERT_TRUE(read) << read.message();
  EXPECT_EQ(serialize(*read), bytes);
  const std::optional<GpuConvolution> &convolution = read->kernels[0].convolution;
  ASSERT_TRUE(convolution);
  EXPECT_EQ(convolution->kind, GpuConvolution::Kind::byWeights);
  EXPECT_EQ(convolution->typeOf(GpuConvolution::Kind::byWeights), DType::f16);
  EXPECT_EQ(convolution->typeOf(GpuConvolution::Kind::forward), DType::bf16);
  EXPECT_EQ(convolution->w.offset, 32);
  EXPECT_EQ(convolution->x.strides, (std::vector<int64_t>{32, 16, 4, 1}));
}

TEST(GpuModule, ConvolutionsStayWithinTheirArguments) {
  using Change = void (*)(GpuConvolution &);
  struct {
    const char *expected;
    Change change;
  } table[] = {
      {"element 64 of argument 0", [](GpuConvolution &c) { c.w.offset = 47; }},
      {"element 7 of argument 3", [](GpuConvolution &c) { c.y = {3, 4, c.y.shape, c.y.strides}; }},
      {"element 3 of argument 0", [](GpuConvolution &c) { c.y.slot = 0; }},
      {"extent 0", [](GpuConvolution &c) { c.x.shape[2] = 0; }},
      {"of stride -4", [](GpuConvolution &c) { c.x.strides[2] = -4; }},
      {"of stride 4611686018427387904",
       [](GpuConvolution &c) { c.x.strides[0] = int64_t(1) << 62; }},
      {"two more dimensions", [](GpuConvolution &c) { c.x.shape.pop_back(); }},
      {"2 or 3 spatial dimensions", [](GpuConvolution &c) { c.padding.pop_back(); }},
      {"at least 1", [](GpuConvolution &c) { c.dilations[0] = 0; }},
      {"must begin within", [](GpuConvolution &c) { c.x.offset = -1; }},
      {"unsupported element type i32", [](GpuConvolution &c) { c.dtype = DType::i32; }},
      {"unsupported element type f64", [](GpuConvolution &c) { c.result = DType::f64; }},
  };
  for (auto &row : table) {
    Artifact artifact = convolutionArtifact();
    Status whole = verify(artifact.gpu, artifact.program);
    ASSERT_TRUE(whole.ok()) << whole.message();
    row.change(*artifact.gpu.kernels[0].convolution);
    Status status = verify(artifact.gpu, artifact.program);
    EXPECT_NE(status.message().find(row.expected), std::string::npos)
        << row.expected << ": " << status.message();
  }
}

TEST(GpuModule, ThreadsNeedsKernelsForTheCpu) {
  auto backend = findBackend("threads");
  ASSERT_TRUE(backend);
  auto opened =
      backend->open(std::make_shared<const Artifact>(gpuArtifact()), {}, backend->userData);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.message().find("compiled for a GPU (sm_80, compute_80)"), std::string::npos)
      << opened.message();
}
