//===- KernelBench.cpp - Speed of compiled kernels ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of training steps on one thread. bytes_per_second counts each argument once, so that a
// memory-bound kernel compares with `memcpy` of as many bytes (read and written); `flops` where
// arithmetic bounds. `compile` is the time from text to shared object of 50 different kernels.
//
//===----------------------------------------------------------------------===//

#include "../../unittests/Codegen/KernelTexts.h"

#include "tessera/Codegen/CPU/KernelCompiler.h"

#include "mlir/Parser/Parser.h"

#include <benchmark/benchmark.h>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <random>
#include <unistd.h>

using namespace tessera::codegen;
using testing::kBiasGelu, testing::kLayerNorm, testing::substitute;

namespace {

using Kernel = void (*)(void **, int64_t, int64_t);

std::vector<char> compile(const std::string &text, std::vector<KernelInfo> &infos,
                          const std::string &cache = "") {
  mlir::DialectRegistry registry;
  registerKernelDialects(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  CpuOptions options;
  options.useCache = !cache.empty();
  options.cacheDirectory = cache;
  mlir::FailureOr<tessera::runtime::CpuKernels> compiled = mlir::failure();
  if (module)
    compiled = compileKernels(*module, options, &infos);
  if (mlir::failed(compiled)) {
    fprintf(stderr, "a benchmark's kernel does not compile\n");
    exit(1);
  }
  auto *bytes = reinterpret_cast<const char *>(compiled->image.data());
  return {bytes, bytes + compiled->image.size()};
}

Kernel loadKernel(const std::string &text, KernelInfo &info) {
  std::vector<KernelInfo> infos;
  std::vector<char> image = compile(text, infos);
  info = infos[0];
  char path[] = "/tmp/tessera-kernel-bench-XXXXXX";
  int file = mkstemp(path);
  if (file < 0 || write(file, image.data(), image.size()) != ssize_t(image.size()))
    exit(1);
  close(file);
  void *handle = dlopen(path, RTLD_NOW);
  unlink(path);
  return reinterpret_cast<Kernel>(dlsym(handle, info.name.c_str()));
}

/// Buffers of f32 (`sizes` in elements) with values in [-1, 1).
struct Arguments {
  explicit Arguments(const std::vector<size_t> &sizes) {
    std::mt19937 generator(1);
    for (size_t size : sizes) {
      auto *data = static_cast<float *>(aligned_alloc(64, (size * 4 + 63) / 64 * 64));
      for (size_t i = 0; i < size; ++i)
        data[i] = float(generator()) / 2147483648.0f - 1.0f;
      pointers.push_back(data);
      bytes += size * 4;
    }
  }
  ~Arguments() {
    for (void *pointer : pointers)
      free(pointer);
  }
  std::vector<void *> pointers;
  size_t bytes = 0;
};

void measure(benchmark::State &state, const std::string &text, const std::vector<size_t> &sizes,
             double flops = 0) {
  KernelInfo info;
  Kernel kernel = loadKernel(text, info);
  Arguments arguments(sizes);
  for (auto _ : state) {
    kernel(arguments.pointers.data(), 0, info.tasks);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(int64_t(state.iterations() * arguments.bytes));
  if (flops > 0)
    state.counters["flops"] =
        benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
  state.SetLabel((info.scheme == KernelScheme::Vectorised ? "vectorised " : "fallback ") +
                 info.reason);
}

std::string text(int64_t value) {
  return std::to_string(value);
}

//===----------------------------------------------------------------------===//
// The kernels
//===----------------------------------------------------------------------===//

void memcpyBytes(benchmark::State &state) {
  Arguments arguments({size_t(state.range(0)), size_t(state.range(0))});
  for (auto _ : state) {
    memcpy(arguments.pointers[1], arguments.pointers[0], size_t(state.range(0)) * 4);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(int64_t(state.iterations() * arguments.bytes));
}
BENCHMARK(memcpyBytes)->Name("memcpy")->Arg(1 << 14)->Arg(1 << 17)->Arg(1 << 20)->Arg(1 << 23);

void softmax(benchmark::State &state) {
  int64_t m = state.range(0), n = state.range(1);
  measure(state,
          substitute(R"(
func.func @softmax(%x: tensor<{m}x{n}xf32>, %o: tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32> attributes {kernel.reads = 1 : i64} {
  %r = linalg.softmax dimension(1) ins(%x : tensor<{m}x{n}xf32>) outs(%o : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  return %r : tensor<{m}x{n}xf32>
})",
                     {{"m", text(m)}, {"n", text(n)}}),
          {size_t(m * n), size_t(m * n)});
}
BENCHMARK(softmax)->Args({8192, 128})->Args({1024, 1024})->Args({128, 128});

void layernorm(benchmark::State &state) {
  int64_t m = state.range(0), n = state.range(1);
  measure(state, substitute(kLayerNorm, {{"m", text(m)}, {"n", text(n)}}),
          {size_t(m * n), size_t(n), size_t(n), size_t(m * n)});
}
BENCHMARK(layernorm)->Args({4096, 768})->Args({128, 256});

void biasGelu(benchmark::State &state) {
  int64_t m = state.range(0), n = state.range(1);
  measure(state, substitute(kBiasGelu, {{"m", text(m)}, {"n", text(n)}}),
          {size_t(m * n), size_t(n), size_t(m * n)});
}
BENCHMARK(biasGelu)->Name("bias_gelu")->Args({2048, 3072})->Args({64, 512});

void crossEntropy(benchmark::State &state) {
  int64_t m = state.range(0), n = state.range(1);
  // Labels are one-hot probabilities here, as in a program without gathers.
  measure(state,
          substitute(R"(
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#v = affine_map<(i) -> (i)>
#s = affine_map<(i) -> ()>
func.func @loss(%x: tensor<{m}x{n}xf32>, %y: tensor<{m}x{n}xf32>, %o: tensor<f32>) -> tensor<f32> attributes {kernel.reads = 2 : i64} {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %count = arith.constant {m}.0 : f32
  %e = tensor.empty() : tensor<{m}xf32>
  %fm = linalg.fill ins(%low : f32) outs(%e : tensor<{m}xf32>) -> tensor<{m}xf32>
  %max = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<{m}x{n}xf32>) outs(%fm : tensor<{m}xf32>) {
  ^bb0(%a: f32, %c: f32):
    %s = arith.maximumf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<{m}xf32>
  %fz = linalg.fill ins(%zero : f32) outs(%e : tensor<{m}xf32>) -> tensor<{m}xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x, %max : tensor<{m}x{n}xf32>, tensor<{m}xf32>) outs(%fz : tensor<{m}xf32>) {
  ^bb0(%a: f32, %m: f32, %c: f32):
    %d = arith.subf %a, %m : f32
    %p = math.exp %d : f32
    %s = arith.addf %p, %c : f32
    linalg.yield %s : f32
  } -> tensor<{m}xf32>
  %picked = linalg.generic {indexing_maps = [#all, #all, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x, %y : tensor<{m}x{n}xf32>, tensor<{m}x{n}xf32>) outs(%fz : tensor<{m}xf32>) {
  ^bb0(%a: f32, %l: f32, %c: f32):
    %t = arith.mulf %a, %l : f32
    %s = arith.addf %t, %c : f32
    linalg.yield %s : f32
  } -> tensor<{m}xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%o : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [#v, #v, #v, #s], iterator_types = ["reduction"]}
    ins(%sum, %max, %picked : tensor<{m}xf32>, tensor<{m}xf32>, tensor<{m}xf32>) outs(%fo : tensor<f32>) {
  ^bb0(%s: f32, %m: f32, %p: f32, %c: f32):
    %l = math.log %s : f32
    %lm = arith.addf %l, %m : f32
    %d = arith.subf %lm, %p : f32
    %q = arith.divf %d, %count : f32
    %t = arith.addf %q, %c : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %r : tensor<f32>
})",
                     {{"m", text(m)}, {"n", text(n)}}),
          {size_t(m * n), size_t(m * n), 1});
}
BENCHMARK(crossEntropy)->Name("cross_entropy")->Args({2048, 1000})->Args({1024, 10});

void conv(benchmark::State &state) {
  int64_t n = state.range(0), h = state.range(1), c = state.range(2), f = state.range(3);
  int64_t o = h - 2;
  std::string in = text(n) + "x" + text(h) + "x" + text(h) + "x" + text(c),
              out = text(n) + "x" + text(o) + "x" + text(o) + "x" + text(f),
              filter = "3x3x" + text(c) + "x" + text(f);
  measure(state,
          substitute(R"(
func.func @conv(%x: tensor<{x}xf32>, %w: tensor<{w}xf32>, %b: tensor<{f}xf32>, %o: tensor<{o}xf32>) -> tensor<{o}xf32> attributes {kernel.reads = 3 : i64} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<{o}xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<{o}xf32>) -> tensor<{o}xf32>
  %c = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<{x}xf32>, tensor<{w}xf32>) outs(%z : tensor<{o}xf32>) -> tensor<{o}xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%c, %b : tensor<{o}xf32>, tensor<{f}xf32>) outs(%o : tensor<{o}xf32>) {
  ^bb0(%p: f32, %q: f32, %t: f32):
    %u = arith.addf %p, %q : f32
    %v = arith.maximumf %u, %zero : f32
    linalg.yield %v : f32
  } -> tensor<{o}xf32>
  return %r : tensor<{o}xf32>
})",
                     {{"x", in}, {"w", filter}, {"o", out}, {"f", text(f)}}),
          {size_t(n * h * h * c), size_t(9 * c * f), size_t(f), size_t(n * o * o * f)},
          2.0 * double(n * o * o * f * 9 * c));
}
BENCHMARK(conv)->Args({8, 30, 32, 64})->Args({8, 34, 3, 32})->Args({4, 16, 64, 64});

void pool(benchmark::State &state) {
  int64_t n = state.range(0), h = state.range(1), c = state.range(2), o = h / 2;
  std::string in = text(n) + "x" + text(h) + "x" + text(h) + "x" + text(c),
              out = text(n) + "x" + text(o) + "x" + text(o) + "x" + text(c);
  measure(state,
          substitute(R"(
func.func @pool(%x: tensor<{x}xf32>, %o: tensor<{o}xf32>) -> tensor<{o}xf32> attributes {kernel.reads = 1 : i64} {
  %low = arith.constant 0xFF800000 : f32
  %w = tensor.empty() : tensor<2x2xf32>
  %f = linalg.fill ins(%low : f32) outs(%o : tensor<{o}xf32>) -> tensor<{o}xf32>
  %r = linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%x, %w : tensor<{x}xf32>, tensor<2x2xf32>) outs(%f : tensor<{o}xf32>) -> tensor<{o}xf32>
  return %r : tensor<{o}xf32>
})",
                     {{"x", in}, {"o", out}}),
          {size_t(n * h * h * c), size_t(n * o * o * c)});
}
BENCHMARK(pool)->Args({8, 56, 64})->Args({4, 28, 32});

void transpose(benchmark::State &state) {
  int64_t m = state.range(0), n = state.range(1);
  measure(state,
          substitute(R"(
func.func @transpose(%x: tensor<{m}x{n}xf32>, %o: tensor<{n}x{m}xf32>) -> tensor<{n}x{m}xf32> attributes {kernel.reads = 1 : i64} {
  %r = linalg.transpose ins(%x : tensor<{m}x{n}xf32>) outs(%o : tensor<{n}x{m}xf32>) permutation = [1, 0]
  return %r : tensor<{n}x{m}xf32>
})",
                     {{"m", text(m)}, {"n", text(n)}}),
          {size_t(m * n), size_t(m * n)});
}
BENCHMARK(transpose)->Args({1024, 1024})->Args({128, 64});

void columnSum(benchmark::State &state) {
  int64_t m = state.range(0), n = state.range(1);
  measure(state,
          substitute(R"(
func.func @sum(%x: tensor<{m}x{n}xf32>, %o: tensor<{n}xf32>) -> tensor<{n}xf32> attributes {kernel.reads = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<{n}xf32>) -> tensor<{n}xf32>
  %r = linalg.reduce { arith.addf } ins(%x : tensor<{m}x{n}xf32>) outs(%f : tensor<{n}xf32>) dimensions = [0]
  return %r : tensor<{n}xf32>
})",
                     {{"m", text(m)}, {"n", text(n)}}),
          {size_t(m * n), size_t(n)});
}
BENCHMARK(columnSum)->Name("column_sum")->Args({2048, 1024})->Args({256, 64});

void batchMatmul(benchmark::State &state) {
  int64_t b = state.range(0), m = state.range(1), n = state.range(2), k = state.range(3);
  std::string pb = text(b) + "x";
  measure(state,
          substitute(R"(
func.func @mm(%x: tensor<{b}x{m}x{k}xf32>, %y: tensor<{b}x{k}x{n}xf32>, %o: tensor<{b}x{m}x{n}xf32>) -> tensor<{b}x{m}x{n}xf32> attributes {kernel.reads = 2 : i64} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<{b}x{m}x{n}xf32>) -> tensor<{b}x{m}x{n}xf32>
  %r = linalg.batch_matmul ins(%x, %y : tensor<{b}x{m}x{k}xf32>, tensor<{b}x{k}x{n}xf32>) outs(%f : tensor<{b}x{m}x{n}xf32>) -> tensor<{b}x{m}x{n}xf32>
  return %r : tensor<{b}x{m}x{n}xf32>
})",
                     {{"b", text(b)}, {"m", text(m)}, {"n", text(n)}, {"k", text(k)}}),
          {size_t(b * m * k), size_t(b * k * n), size_t(b * m * n)}, 2.0 * double(b * m * n * k));
}
BENCHMARK(batchMatmul)->Name("batch_matmul")->Args({16, 64, 64, 64})->Args({8, 16, 16, 16});

/// 50 different kernels of average size: a bias, a softmax and a scale each.
void compileTime(benchmark::State &state) {
  std::string module;
  for (int i = 0; i < 50; ++i)
    module += substitute(R"(
func.func @k{i}(%x: tensor<64x{n}xf32>, %b: tensor<{n}xf32>, %o: tensor<64x{n}xf32>) -> tensor<64x{n}xf32> attributes {kernel.reads = 2 : i64} {
  %e = tensor.empty() : tensor<64x{n}xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%x, %b : tensor<64x{n}xf32>, tensor<{n}xf32>) outs(%e : tensor<64x{n}xf32>) {
  ^bb0(%a: f32, %c: f32, %d: f32):
    %r = arith.addf %a, %c : f32
    linalg.yield %r : f32
  } -> tensor<64x{n}xf32>
  %m = linalg.softmax dimension(1) ins(%s : tensor<64x{n}xf32>) outs(%e : tensor<64x{n}xf32>) -> tensor<64x{n}xf32>
  %r = arith.mulf %m, %x : tensor<64x{n}xf32>
  return %r : tensor<64x{n}xf32>
}
)",
                         {{"i", text(i)}, {"n", text(100 + i)}});
  std::vector<KernelInfo> infos;
  std::string directory;
  if (state.range(0)) {
    char path[] = "/tmp/tessera-kernel-bench-XXXXXX";
    directory = mkdtemp(path);
    compile(module, infos, directory);
  }
  for (auto _ : state)
    benchmark::DoNotOptimize(compile(module, infos, directory));
  if (!directory.empty())
    std::filesystem::remove_all(directory);
}
BENCHMARK(compileTime)
    ->Name("compile")
    ->ArgName("cached")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

} // namespace

BENCHMARK_MAIN();
