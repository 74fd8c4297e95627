//===- KernelApiTest.cpp - Errors, cache, determinism ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelTesting.h"
#include "tessera/Codegen/Kernels/DiskCache.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace tessera::codegen;
using namespace tessera::codegen::testing;

namespace {

const char *kTwo = R"(
func.func @a(%x: tensor<8xf32>, %o: tensor<8xf32>) -> tensor<8xf32> attributes {kernel.reads = 1 : i64} {
  %r = math.exp %x : tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @b(%x: tensor<8xf32>, %o: tensor<8xf32>) -> tensor<8xf32> attributes {kernel.reads = 1 : i64, extra.name = "b"} {
  %r = math.exp %x : tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @c(%x: tensor<9xf32>, %o: tensor<9xf32>) -> tensor<9xf32> attributes {kernel.reads = 1 : i64} {
  %r = math.exp %x : tensor<9xf32>
  return %r : tensor<9xf32>
})";

TEST(KernelApi, Diagnostics) {
  auto error = [](const char *text, CpuOptions options = {}) {
    Library library(text, options);
    EXPECT_FALSE(library.valid());
    return library.error();
  };
  EXPECT_NE(error("func.func @f(%x: tensor<4xf32>) { return }").find("kernel.reads"),
            std::string::npos);
  EXPECT_NE(error("func.func @f(%x: tensor<?xf32>) attributes {kernel.reads = 1 : i64} { return }")
                .find("kernel argument 0 is not a static tensor"),
            std::string::npos);
  EXPECT_NE(error("func.func @f(%x: f32) attributes {kernel.reads = 1 : i64} { return }")
                .find("not a static tensor"),
            std::string::npos);
  EXPECT_NE(error("func.func @f(%x: tensor<4xf32>) attributes {kernel.reads = 0 : i64} { return }")
                .find("1 destinations for 0 results"),
            std::string::npos);
  EXPECT_NE(error("func.func private @f(%x: tensor<4xf32>) attributes {kernel.reads = 1 : i64}")
                .find("no body"),
            std::string::npos);
  EXPECT_NE(error("func.func @f(%x: tensor<4xf32>) attributes {kernel.reads = 1 : i64} {"
                  " func.call @f(%x) : (tensor<4xf32>) -> () return }")
                .find("not allowed in a kernel"),
            std::string::npos);
  CpuOptions options;
  options.linker = "/nonexistent/ld";
  EXPECT_NE(error(kTwo, options).find("'/nonexistent/ld' cannot be executed"), std::string::npos);
  options = {};
  options.cpu = "pentium-fantasy";
  EXPECT_NE(error(kTwo, options).find("unknown CPU 'pentium-fantasy'"), std::string::npos);
}

TEST(KernelApi, BytesAreIndependentOfThreads) {
  CpuOptions one, three;
  one.threads = 1;
  three.threads = 3;
  Library a(kTwo, one), b(kTwo, three);
  ASSERT_TRUE(a.valid()) << a.error();
  EXPECT_EQ(a.bytes(), b.bytes());
}

TEST(KernelApi, Cache) {
  auto directory = std::filesystem::temp_directory_path() / "tessera-kernel-cache-test";
  std::filesystem::remove_all(directory);
  CpuOptions options;
  options.cacheDirectory = directory;
  auto entries = [&] {
    std::vector<std::filesystem::path> paths;
    for (auto &entry : std::filesystem::directory_iterator(directory))
      if (entry.path().extension() == ".kernel")
        paths.push_back(entry.path());
    return paths;
  };
  Library cold(kTwo, options);
  ASSERT_TRUE(cold.valid()) << cold.error();
  EXPECT_FALSE(cold.info("a").cached);
  EXPECT_EQ(entries().size(), 2u); // a and b are the same kernel
  Library warm(kTwo, options);
  EXPECT_TRUE(warm.info("a").cached && warm.info("b").cached && warm.info("c").cached);
  EXPECT_EQ(warm.info("c").scheme, cold.info("c").scheme);
  EXPECT_EQ(warm.bytes(), cold.bytes());

  // Any damage is a cache miss.
  for (auto &path : entries()) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(200);
    file.put('\xEE');
  }
  Library damaged(kTwo, options);
  EXPECT_FALSE(damaged.info("a").cached);
  EXPECT_EQ(damaged.bytes(), cold.bytes());
  for (auto &path : entries())
    std::filesystem::resize_file(path, 100);
  EXPECT_FALSE(Library(kTwo, options).info("c").cached);
  EXPECT_TRUE(Library(kTwo, options).info("c").cached);

  options.cacheLimitBytes = 1;
  EXPECT_TRUE(Library(kTwo, options).valid());
  EXPECT_TRUE(entries().empty());
  options.cacheDirectory = "/proc/no/such/directory";
  EXPECT_TRUE(Library(kTwo, options).valid());
  std::filesystem::remove_all(directory);
}

TEST(KernelApi, CacheStaysWithinItsLimit) {
  auto directory = std::filesystem::temp_directory_path() / "tessera-kernel-cache-limit-test";
  std::filesystem::remove_all(directory);
  constexpr uint64_t kLimit = 64 << 10, kEntry = 1 << 10;
  auto bytes = [&] {
    uint64_t total = 0;
    for (auto &entry : std::filesystem::directory_iterator(directory))
      total += entry.file_size();
    return total;
  };
  for (int i = 0; i < 200; ++i) {
    DiskCache cache(directory, ".kernel", kLimit);
    cache.store("entry" + std::to_string(i), std::string(kEntry, 'x'), {});
    cache.trim();
    EXPECT_LT(bytes(), kLimit + kLimit / 8) << i;
  }
  EXPECT_GT(bytes(), kLimit / 2);
  std::string object;
  llvm::json::Object about;
  DiskCache cache(directory, ".kernel", kLimit);
  EXPECT_TRUE(cache.load("entry199", object, about));
  EXPECT_FALSE(cache.load("entry0", object, about));
  std::filesystem::remove_all(directory);
}

TEST(KernelApi, InPlace) {
  const char *text = R"(
#id = affine_map<(i, j) -> (i, j)>
#tr = affine_map<(i, j) -> (j, i)>
func.func @sgd(%p: tensor<4x4xf32>, %g: tensor<4x4xf32>, %o: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {kernel.reads = 2 : i64} {
  %s = arith.addf %g, %g : tensor<4x4xf32>
  %r = arith.subf %p, %s : tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
func.func @transposed(%p: tensor<4x4xf32>, %o: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {kernel.reads = 1 : i64} {
  %r = linalg.transpose ins(%p : tensor<4x4xf32>) outs(%o : tensor<4x4xf32>) permutation = [1, 0]
  return %r : tensor<4x4xf32>
}
func.func @both(%p: tensor<4x4xf32>, %o: tensor<4x4xf32>, %q: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) attributes {kernel.reads = 1 : i64} {
  %r = arith.negf %p : tensor<4x4xf32>
  %s = arith.mulf %p, %p : tensor<4x4xf32>
  return %r, %s : tensor<4x4xf32>, tensor<4x4xf32>
}
func.func @chain(%p: tensor<4x4xf32>, %o: tensor<4x4xf32>, %q: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) attributes {kernel.reads = 1 : i64} {
  %r = arith.negf %p : tensor<4x4xf32>
  %s = arith.mulf %r, %r : tensor<4x4xf32>
  return %r, %s : tensor<4x4xf32>, tensor<4x4xf32>
}
func.func @accumulate(%p: tensor<4x4xf32>, %o: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {kernel.reads = 1 : i64} {
  %r = arith.addf %p, %o : tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
func.func @onto_fill(%p: tensor<4x4xf32>, %o: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {kernel.reads = 1 : i64} {
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%o : tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
func.func @momentum(%v: tensor<4x4xf32>, %i: tensor<3xindex>, %g: tensor<3x4xf32>, %o: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {kernel.reads = 3 : i64} {
  %s = arith.addf %v, %v : tensor<4x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(u, i, j) -> (u)>, affine_map<(u, i, j) -> (u, j)>, affine_map<(u, i, j) -> (i, j)>],
                       iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%i, %g : tensor<3xindex>, tensor<3x4xf32>) outs(%s : tensor<4x4xf32>) {
  ^bb0(%at: index, %in: f32, %out: f32):
    %row = linalg.index 1 : index
    %hit = arith.cmpi eq, %at, %row : index
    %sum = arith.addf %out, %in : f32
    %next = arith.select %hit, %sum, %out : f32
    linalg.yield %next : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
func.func @onto_product(%p: tensor<4x4xf32>, %o: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.addf %p, %p : tensor<4x4xf32>
  %r = linalg.matmul ins(%p, %p : tensor<4x4xf32>, tensor<4x4xf32>) outs(%s : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
func.func @softmax(%p: tensor<4x4xf32>, %o: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {kernel.reads = 1 : i64} {
  %r = linalg.softmax dimension(1) ins(%p : tensor<4x4xf32>) outs(%o : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
})";
  mlir::DialectRegistry registry;
  registerKernelDialects(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  ASSERT_TRUE(bool(module));
  auto can = [&](const char *name, unsigned input, unsigned output) {
    return canRunInPlace(module->lookupSymbol<mlir::func::FuncOp>(name), input, output);
  };
  EXPECT_TRUE(can("sgd", 0, 2));
  EXPECT_TRUE(can("sgd", 1, 2));
  EXPECT_FALSE(can("sgd", 0, 1));
  EXPECT_FALSE(can("transposed", 0, 1));
  EXPECT_FALSE(can("both", 0, 1)); // the other result still reads it
  EXPECT_TRUE(can("chain", 0, 1));
  EXPECT_FALSE(can("chain", 0, 2)); // the loop of the other result computes from it, too
  EXPECT_FALSE(can("accumulate", 0, 1));
  EXPECT_FALSE(can("onto_fill", 0, 1)); // the fill would overwrite it
  EXPECT_TRUE(can("momentum", 0, 3)); // what is updated is computed from it, element by element
  EXPECT_FALSE(can("onto_product", 0, 1)); // the product reads it after the start is written
  EXPECT_FALSE(can("softmax", 0, 1));
}

} // namespace
