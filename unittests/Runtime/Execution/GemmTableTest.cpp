//===- GemmTableTest.cpp - Tables of measured providers -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Execution/GemmTable.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <thread>
#include <unistd.h>

using namespace tessera::runtime;

namespace {

/// A table in a folder of its own, with a clock that prefers one provider.
struct Fixture {
  std::filesystem::path folder;
  std::atomic<int> measured = 0;
  Fixture() {
    char name[] = "/tmp/tessera-table-XXXXXX";
    folder = ::mkdtemp(name);
  }
  ~Fixture() { std::filesystem::remove_all(folder); }
  std::string path() const { return (folder / "cache" / "products.json").string(); }
  GemmTable open(std::string_view fastest, std::string key = "machine") {
    return {path(), std::move(key), [this, fastest](const GemmProvider &provider, const auto &) {
              ++measured;
              return provider.name() == fastest ? 1.0 : 2.0;
            }};
  }
  std::string text() const {
    std::ostringstream all;
    all << std::ifstream(path()).rdbuf();
    return all.str();
  }
};

GemmProblem problem(int64_t m, int64_t n, int64_t k, bool transB = false) {
  GemmProblem p;
  p.m = m, p.n = n, p.k = k, p.transB = transB;
  p.lda = k, p.ldb = transB ? k : n, p.ldc = n;
  return p;
}

/// Two installed providers, or none.
std::vector<std::string> installed() {
  std::vector<std::string> names;
  for (const char *name : {"onednn", "packed", "openblas"})
    if (gemmProvider(name))
      names.push_back(name);
  return names;
}

} // namespace

TEST(GemmTable, ClassesArePowersOfTwo) {
  EXPECT_EQ(GemmTable::classOf(problem(128, 1023, 256)), "nn 7 9 8");
  EXPECT_EQ(GemmTable::classOf(problem(255, 512, 511, true)), "nt 7 9 8");
  EXPECT_EQ(GemmTable::classOf(problem(1, 1, 1)), "nn 0 0 0");
  for (int64_t m : {int64_t(1), int64_t(1000), int64_t(1) << 30}) {
    GemmProblem one = GemmTable::representativeOf(problem(m, 50257, 768));
    EXPECT_LE(one.m * one.n * one.k, int64_t(1) << 30) << m;
    EXPECT_GE(one.m, 1);
    EXPECT_EQ(one.ldb, one.n);
  }
}

TEST(GemmTable, MeasuresAClassOnce) {
  std::vector<std::string> names = installed();
  if (names.size() < 2)
    GTEST_SKIP() << "one provider";
  Fixture files;
  {
    GemmTable table = files.open(names[1]);
    EXPECT_EQ(table.choose(problem(128, 128, 128))->name(), names[1]);
    int after = files.measured;
    EXPECT_EQ(after, static_cast<int>(names.size()));
    EXPECT_EQ(table.choose(problem(200, 130, 255))->name(), names[1]) << "of the same class";
    EXPECT_EQ(files.measured, after);
  }
  // Another process, by whose clock another provider is fastest, follows the table.
  GemmTable next = files.open(names[0]);
  int before = files.measured;
  EXPECT_EQ(next.choose(problem(128, 128, 128))->name(), names[1]);
  EXPECT_EQ(files.measured, before);
  EXPECT_EQ(next.choose(problem(512, 128, 128))->name(), names[0]);
  // The table of another machine is not used, but replaced.
  GemmTable other = files.open(names[0], "another machine");
  EXPECT_EQ(other.choose(problem(128, 128, 128))->name(), names[0]);
  EXPECT_NE(files.text().find("another machine"), std::string::npos);
}

TEST(GemmTable, IgnoresDamage) {
  std::vector<std::string> names = installed();
  if (names.empty())
    GTEST_SKIP() << "no provider";
  for (const char *text :
       {"", "{", "[]", "{\"version\": 1}",
        "{\"version\": 2, \"key\": \"machine\", \"classes\": {}}",
        "{\"version\": 1, \"key\": \"machine\", \"classes\": {\"nn 7 7 7\": \"mkl\"}}",
        "{\"version\": 1, \"key\": \"machine\", \"classes\": {\"nn 7 7 7\": 3}}",
        "{\"version\": 1, \"key\": 1, \"classes\": {}}"}) {
    Fixture files;
    std::filesystem::create_directories(files.folder / "cache");
    std::ofstream(files.path()) << text;
    testing::internal::CaptureStderr();
    GemmTable table = files.open(names[0]);
    EXPECT_EQ(table.choose(problem(128, 128, 128))->name(), names[0]) << text;
    table.choose(problem(1024, 128, 128));
    std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("remark"), std::string::npos) << text;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    EXPECT_NE(files.text().find("nn 10 7 7"), std::string::npos) << files.text();
  }
}

TEST(GemmTable, KeepsWhatOthersMeasured) {
  std::vector<std::string> names = installed();
  if (names.empty())
    GTEST_SKIP() << "no provider";
  Fixture files;
  GemmTable one = files.open(names[0]), two = files.open(names[0]);
  std::thread first([&] {
    for (int64_t m = 1; m < 5000; m *= 2)
      one.choose(problem(m, 16, 16));
  });
  for (int64_t m = 1; m < 5000; m *= 2)
    one.choose(problem(m, 16, 16));
  first.join();
  two.choose(problem(16, 16, 1 << 20));
  EXPECT_NE(files.text().find("nn 12 4 4"), std::string::npos);
  EXPECT_NE(files.text().find("nn 4 4 20"), std::string::npos);
}

TEST(GemmTable, MeasuresRealProducts) {
  for (const char *name : {"onednn", "packed", "openblas", "generated"})
    if (const GemmProvider *provider = gemmProvider(name))
      EXPECT_GT(measureGemm(*provider, GemmTable::representativeOf(problem(33, 17, 9, true))), 0);
}
