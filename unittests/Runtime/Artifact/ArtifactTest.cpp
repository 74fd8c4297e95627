//===- ArtifactTest.cpp - Valid and damaged artifacts ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixtures.h"

#include <cstring>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace tessera::runtime;

/// One program with every kind of step.
static Artifact everything() {
  ProgramBuilder b;
  int64_t m = b.mesh(makeMesh({2, 2})), n = b.mesh(makeMesh({3}, 4, "n"));
  const Mesh mesh = b.program.meshes[m], other = b.program.meshes[n];
  Shape global{5, 4};
  Layout rows = layoutOf(global, {{whole(mesh, 0)}, {}}), full = replicated(global);
  Layout partial = layoutOf(global, {{}, {}}, {{whole(mesh, 1), ReduceKind::sum}});
  Layout there = layoutOf(global, {{whole(other, 0)}, {}});
  int64_t p = b.part(m), q = b.part(n);
  int64_t x = b.argument("x", p, DType::f32, rows), w = b.argument("w", p, DType::f32, partial);
  b.program.arguments[0].range = {0, 7};
  int64_t y = b.slot(p, DType::f32, full), z = b.slot(p, DType::f32, Shape{4, 4});
  int64_t iv = b.slot(p, DType::index, Shape{}), flag = b.slot(p, DType::i1, Shape{});
  int64_t r = b.slot(q, DType::f32, there);
  b.program.parts[p].slots.push_back({"c", Slot::Space::constant, 64, 64, DType::f32, {4, 4}});
  auto c = static_cast<int64_t>(b.program.parts[p].slots.size()) - 1;
  b.program.parts[p].coordinates.push_back({iv, {whole(mesh, 1)}});
  b.program.kernels = {"k0"};
  b.program.kernelBytes = {{4, 4, 4}};
  b.add(p, LaunchStep{0, {x, c, z}, 2});
  GemmStep gemm;
  gemm.a = y, gemm.b = c, gemm.c = y;
  gemm.m = 5, gemm.n = 4, gemm.k = 4;
  gemm.lda = gemm.ldb = gemm.ldc = 4;
  gemm.bias = c;
  gemm.epilogue = Epilogue::gelu;
  b.add(p, gemm);
  CollectiveStep reduce =
      b.collective(CollectiveKind::all_reduce, m, w, y, DType::f32, partial, full);
  reduce.axes = {whole(mesh, 1)};
  reduce.reduction = ReduceKind::sum;
  reduce.token = 1;
  reduce.operands[0].fill = -std::numeric_limits<double>::infinity();
  b.add(p, reduce);
  b.add(p, WaitStep{1});
  b.add(p, CopyStep{y, w, 32});
  Step loop = b.step(LoopStep{iv, {0, {}}, {0, iv}, {1, {}}, {}});
  std::get<LoopStep>(loop.action).body.push_back(b.step(CopyStep{y, w, 8}));
  b.program.parts[p].steps.push_back(loop);
  Step branch = b.step(IfStep{flag, {}, {}});
  std::get<IfStep>(branch.action).thenSteps.push_back(b.step(CopyStep{y, w, 8}));
  std::get<IfStep>(branch.action).elseSteps.push_back(b.step(CopyStep{y, w, 4}));
  b.program.parts[p].steps.push_back(branch);
  ContractStep contract;
  contract.a = y, contract.b = c, contract.c = z;
  contract.starts = {0, 3, 0};
  contract.loops = {{3, {1, 0, 4}}, {4, {0, 4, 1}}, {2, {2, -1, 0}}};
  contract.accumulate = true;
  contract.within = {{{1, 0, 2}, 1, 5}};
  b.add(p, contract);
  Step again = b.step(WhileStep{{}, flag, {}});
  std::get<WhileStep>(again.action).before.push_back(b.step(CopyStep{y, w, 8}));
  b.program.parts[p].steps.push_back(again);
  int64_t id = b.nextId();
  Operand moved{y, -1, DType::f32, global, full, there, {}};
  b.add(p, TransferStep{true, m, n, {moved}, 80, id});
  moved.src = -1, moved.dst = r;
  b.add(q, TransferStep{false, m, n, {moved}, 80, id});
  b.result("out", q, r, there);
  b.result("next", p, x, rows);
  b.program.results[1].feeds = 0;
  CpuKernels v3{"x86-64-v3", "x86-64", {"avx2"}, {3}, Bytes(100, std::byte(7))};
  CpuKernels arm{"aarch64", "aarch64", {}, {1}, Bytes(90, std::byte(8))};
  Artifact artifact{b.program, R"({"version":1})", {v3, arm}, Bytes(128)};
  return artifact;
}

TEST(Artifact, RoundTrip) {
  Artifact artifact = everything();
  Status verified = verify(artifact.program, 128);
  ASSERT_TRUE(verified.ok()) << verified.message();
  Bytes bytes = serialize(artifact);
  auto read = parseArtifact(bytes.data(), bytes.size(), "mem");
  ASSERT_TRUE(read) << read.message();
  EXPECT_EQ(toJson(read->program), toJson(artifact.program));
  EXPECT_EQ(read->report, artifact.report);
  EXPECT_EQ(toJson(read->kernels), toJson(artifact.kernels));
  for (size_t i : {0, 1})
    EXPECT_EQ(read->kernels[i].image, artifact.kernels[i].image);
  EXPECT_EQ(read->constants, artifact.constants);
  EXPECT_EQ(read->fingerprint(), artifact.fingerprint());
  EXPECT_EQ(serialize(*read), bytes) << "the same input, the same bytes";
}

TEST(Artifact, RejectsEveryTruncation) {
  Bytes bytes = serialize(everything());
  for (size_t size = 0; size < bytes.size(); size += size < 400 ? 1 : 61) {
    auto read = parseArtifact(bytes.data(), size, "cut.tsra");
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.message().rfind("cut.tsra: ", 0), 0u) << read.message();
  }
}

TEST(Artifact, EveryFlippedBitIsDetectedOrHarmless) {
  Artifact artifact = everything();
  Bytes bytes = serialize(artifact);
  std::string text = toJson(artifact.program);
  size_t refused = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    Bytes damaged = bytes;
    damaged[at] ^= std::byte(1 << (at % 8));
    auto read = parseArtifact(damaged.data(), damaged.size(), "mem");
    refused += !read;
    if (read) { // padding between sections
      ASSERT_EQ(toJson(read->program), text) << at;
    }
  }
  EXPECT_GT(refused, bytes.size() * 9 / 10);
}

TEST(Artifact, FilesAreWrittenAtomically) {
  std::string path = testing::TempDir() + "/tessera_artifact_test.tsra";
  Artifact artifact = everything();
  ASSERT_TRUE(writeArtifact(artifact, path).ok());
  auto read = readArtifact(path);
  ASSERT_TRUE(read) << read.message();
  ASSERT_EQ(::truncate(path.c_str(), 700), 0);
  auto cut = readArtifact(path);
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.message().find("truncated"), std::string::npos) << cut.message();
  ::unlink(path.c_str());
  EXPECT_NE(readArtifact(path).message().find("No such file"), std::string::npos);
  artifact.program.parts[0].steps[0].order = 100;
  EXPECT_FALSE(writeArtifact(artifact, path).ok());
  EXPECT_NE(::access(path.c_str(), F_OK), 0) << "nothing is written for a wrong program";
  EXPECT_FALSE(writeArtifact(everything(), "/nonexistent/x.tsra").ok());
  EXPECT_FALSE(readArtifact("/tmp"));
}

TEST(Artifact, RejectsEveryInvalidReference) {
  using Change = void (*)(Program &);
  struct {
    const char *expected;
    Change change;
  } table[] = {
      {"not a part of an axis", [](Program &p) { p.parts[0].coordinates[0].axes[0].axis = 2; }},
      {"mesh 9 does not exist", [](Program &p) { p.parts[0].mesh = 9; }},
      {"outside the arena", [](Program &p) { p.parts[0].slots[0].offset = 1 << 20; }},
      {"outside the arena", [](Program &p) { p.parts[0].slots[0].bytes = -4; }},
      {"outside the arena",
       [](Program &p) { p.parts[0].slots[0].bytes = std::numeric_limits<int64_t>::max(); }},
      {"packed_bytes 60 is not a multiple of 64", [](Program &p) { p.parts[0].packedBytes = 60; }},
      {"is not a multiple of 64 from 0", [](Program &p) { p.parts[0].packedBytes = 1 << 30; }},
      {"outside the arena",
       [](Program &p) { p.parts[0].packedBytes = p.parts[0].arenaBytes / 64 * 64; }},
      {"outside the constants", [](Program &p) { p.parts[0].slots.back().offset = 128; }},
      {"not a multiple", [](Program &p) { p.parts[0].slots[0].offset = 2; }},
      {"does not fit", [](Program &p) { p.parts[0].slots[0].shape = {1 << 20, 1 << 20}; }},
      {"out of range", [](Program &p) { p.parts[0].arenaBytes = -1; }},
      {"process ids",
       [](Program &p) {
         p.meshes[0].processIds = tessera::sharding::DeviceIds::range(p.meshes[0].numDevices() - 1);
       }},
      {"duplicate",
       [](Program &p) {
         std::vector<int64_t> ids = p.meshes[0].processIds.vec();
         ids[0] = 1;
         p.meshes[0].processIds = ids;
       }},
      {"an axis of 0", [](Program &p) { p.meshes[0].shape[0] = 0; }},
      {"more than", [](Program &p) { p.meshes[0].shape = {1 << 30, 1 << 30}; }},
      {"duplicate mesh name 'm'", [](Program &p) { p.meshes[1].name = "m"; }},
      {"empty or taken", [](Program &p) { p.arguments[1].name = "x"; }},
      {"part 7 does not exist", [](Program &p) { p.arguments[0].homes[0].part = 7; }},
      {"slot 99 does not exist", [](Program &p) { p.results[0].home.slot = 99; }},
      {"feeds argument 5", [](Program &p) { p.results[1].feeds = 5; }},
      {"fed twice", [](Program &p) { p.results[0].feeds = 0; }},
      {"range is empty", [](Program &p) { p.arguments[0].range = {3, 3}; }},
      {"elements of f32", [](Program &p) { p.arguments[0].dtype = DType::i32; }},
      {"dimensions", [](Program &p) { p.results[0].home.layout.dims.pop_back(); }},
      {"used twice",
       [](Program &p) {
         auto &dims = p.arguments[0].homes[0].layout.dims;
         dims[1].axes = dims[0].axes;
       }},
      {"does not fit into slot",
       [](Program &p) { p.arguments[0].homes[0].layout.dims[0].length = 100; }},
      {"kernel 3", [](Program &p) { std::get<LaunchStep>(p.parts[0].steps[0].action).kernel = 3; }},
      {"cannot be written",
       [](Program &p) { std::get<LaunchStep>(p.parts[0].steps[0].action).reads = 1; }},
      {"reads is 9",
       [](Program &p) { std::get<LaunchStep>(p.parts[0].steps[0].action).reads = 9; }},
      {"'kernel_bytes'", [](Program &p) { p.kernelBytes.clear(); }},
      {"kernel_bytes: there are 2 entries", [](Program &p) { p.kernelBytes.resize(2); }},
      {"has 9 arguments",
       [](Program &p) { p.kernelBytes.assign(p.kernels.size(), std::vector<int64_t>(9, 4)); }},
      {"the kernel takes 1099511627776",
       [](Program &p) {
         auto &launch = std::get<LaunchStep>(p.parts[0].steps[0].action);
         std::vector<int64_t> bytes(launch.slots.size(), int64_t(1) << 40);
         p.kernelBytes.assign(p.kernels.size(), bytes);
       }},
      {"beyond slot", [](Program &p) { std::get<GemmStep>(p.parts[0].steps[1].action).m = 6; }},
      {"beyond slot",
       [](Program &p) {
         std::get<GemmStep>(p.parts[0].steps[1].action).strideB = int64_t(1) << 62;
         std::get<GemmStep>(p.parts[0].steps[1].action).batch = 3;
         std::get<GemmStep>(p.parts[0].steps[1].action).strideC = 1;
       }},
      {"leading dimension",
       [](Program &p) { std::get<GemmStep>(p.parts[0].steps[1].action).lda = 1; }},
      {"has elements of index",
       [](Program &p) {
         std::get<GemmStep>(p.parts[0].steps[1].action).bias = p.parts[0].coordinates[0].slot;
       }},
      {"overlaps slot c",
       [](Program &p) {
         auto &gemm = std::get<GemmStep>(p.parts[0].steps[1].action);
         gemm.bias = gemm.c;
       }},
      {"with k = 0", [](Program &p) { std::get<GemmStep>(p.parts[0].steps[1].action).k = 0; }},
      {"reach beyond slot",
       [](Program &p) { std::get<ContractStep>(p.parts[0].steps[7].action).starts[1] = 0; }},
      {"reach beyond slot",
       [](Program &p) {
         auto &contract = std::get<ContractStep>(p.parts[0].steps[7].action);
         contract.loops[1].strides[1] = int64_t(1) << 62;
       }},
      {"write the same element",
       [](Program &p) {
         std::get<ContractStep>(p.parts[0].steps[7].action).loops[0].strides[2] = 3;
       }},
      {"extent 0 is out of range",
       [](Program &p) { std::get<ContractStep>(p.parts[0].steps[7].action).loops[0].extent = 0; }},
      {"a bound has 2 strides for 3 loops",
       [](Program &p) {
         std::get<ContractStep>(p.parts[0].steps[7].action).within[0].strides.pop_back();
       }},
      {"a position in a bound is out of range",
       [](Program &p) {
         std::get<ContractStep>(p.parts[0].steps[7].action).within[0].strides[0] = int64_t(1) << 62;
       }},
      {"unsupported element type i32",
       [](Program &p) { std::get<ContractStep>(p.parts[0].steps[7].action).dtype = DType::i32; }},
      {"has no wait", [](Program &p) { p.parts[0].steps.erase(p.parts[0].steps.begin() + 3); }},
      {"not started", [](Program &p) { std::get<WaitStep>(p.parts[0].steps[3].action).token = 2; }},
      {"must have at least one operand",
       [](Program &p) { std::get<CollectiveStep>(p.parts[0].steps[2].action).operands.clear(); }},
      {"other devices",
       [](Program &p) { std::get<CollectiveStep>(p.parts[0].steps[2].action).mesh = 1; }},
      {"slot -1",
       [](Program &p) {
         std::get<CollectiveStep>(p.parts[0].steps[2].action).operands[0].dst = -1;
       }},
      {"that no device holds",
       [](Program &p) {
         auto &operand = std::get<CollectiveStep>(p.parts[0].steps[2].action).operands[0];
         operand.source.dims[0].length = 2;
       }},
      {"do not fit",
       [](Program &p) { std::get<CopyStep>(p.parts[0].steps[4].action).bytes = 1 << 20; }},
      {"does not hold one index",
       [](Program &p) { std::get<LoopStep>(p.parts[0].steps[5].action).iv = 0; }},
      {"must be positive",
       [](Program &p) { std::get<LoopStep>(p.parts[0].steps[5].action).step.value = 0; }},
      {"does not hold an i1",
       [](Program &p) { std::get<IfStep>(p.parts[0].steps[6].action).condition = 0; }},
      {"nothing receives", [](Program &p) { p.parts[1].steps.clear(); }},
      {"nothing sends", [](Program &p) { p.parts[0].steps.pop_back(); }},
      {"differ",
       [](Program &p) {
         std::get<TransferStep>(p.parts[1].steps[0].action).operands[0].target = replicated({5, 4});
         p.parts[1].slots[0].bytes = p.parts[1].arenaBytes = 80;
       }},
      {"does not follow", [](Program &p) { p.parts[0].steps[4].order = 0; }},
  };
  for (auto &row : table) {
    Artifact artifact = everything();
    row.change(artifact.program);
    auto parsed = parseProgram(toJson(artifact.program), 128);
    ASSERT_FALSE(parsed) << row.expected;
    EXPECT_NE(parsed.message().find(row.expected), std::string::npos)
        << "expected '" << row.expected << "', got: " << parsed.message();
    EXPECT_EQ(parsed.message().rfind("program.", 0), 0u) << parsed.message();
  }
}

TEST(Artifact, LaunchesByBlocks) {
  auto make = [] {
    ProgramBuilder b;
    int64_t p = b.part(b.mesh(makeMesh({1})));
    GemmStep gemm;
    gemm.a = b.slot(p, DType::f32, Shape{32, 4}), gemm.b = b.slot(p, DType::f32, Shape{4, 16});
    gemm.c = b.slot(p, DType::f32, Shape{32, 16});
    gemm.m = 32, gemm.n = 16, gemm.k = 4;
    gemm.lda = 4, gemm.ldb = gemm.ldc = 16;
    b.add(p, gemm);
    b.program.kernels = {"k0"};
    b.program.kernelBytes = {{512, 64, 512}};
    LaunchStep launch{0, {gemm.c, b.slot(p, DType::f32, Shape{16}), gemm.c}, 2};
    launch.blocks = 4;
    launch.cut = {true, false, true};
    launch.joins = true;
    b.add(p, launch);
    return b.program;
  };
  Program good = make();
  auto read = parseProgram(toJson(good), 0);
  ASSERT_TRUE(read) << read.message();
  EXPECT_EQ(toJson(*read), toJson(good));
  EXPECT_EQ(toJson(good).rfind("{\"version\": 2", 0), 0u);
  struct Row {
    const char *expected;
    void (*change)(Program &, LaunchStep &);
  };
  const Row table[] = {
      {"blocks is 0", [](Program &, LaunchStep &launch) { launch.blocks = 0; }},
      {"cut has 2 entries for 3", [](Program &, LaunchStep &launch) { launch.cut.pop_back(); }},
      {"9 blocks of 512 bytes reach beyond slot 2",
       [](Program &, LaunchStep &launch) { launch.blocks = 9; }},
      {"beyond slot", [](Program &, LaunchStep &launch) { launch.blocks = int64_t(1) << 62; }},
      {"expected a multiple of 64",
       [](Program &p, LaunchStep &) { p.kernelBytes = {{500, 64, 500}}; }},
      {"must be cut", [](Program &, LaunchStep &launch) { launch.cut[2] = false; }},
      {"a block writes what another one accesses as args[0]",
       [](Program &, LaunchStep &launch) { launch.cut[0] = false; }},
      {"a block writes what another one accesses as args[0]",
       [](Program &p, LaunchStep &) { p.kernelBytes = {{256, 64, 512}}; }},
      {"is not cut like the result of the product",
       [](Program &p, LaunchStep &) { p.kernelBytes = {{256, 64, 256}}; }},
      {"which the product that the launch joins reads",
       [](Program &p, LaunchStep &launch) {
         launch.slots[2] = 0;
         p.kernelBytes = {{512, 64, 128}};
       }},
      {"must follow a gemm or a contract",
       [](Program &p, LaunchStep &) { p.parts[0].steps.erase(p.parts[0].steps.begin()); }},
  };
  for (const Row &row : table) {
    Program bad = make();
    row.change(bad, std::get<LaunchStep>(bad.parts[0].steps[1].action));
    auto parsed = parseProgram(toJson(bad), 0);
    ASSERT_FALSE(parsed) << row.expected;
    EXPECT_NE(parsed.message().find(row.expected), std::string::npos)
        << "expected '" << row.expected << "', got: " << parsed.message();
  }
}

TEST(Artifact, InvalidJson) {
  for (const char *text : {"", "{", "[]", "{\"version\": 2}", "{\"version\": 1}", "null",
                           "{\"version\": 1.5}", "{\"version\": 18446744073709551615}"})
    EXPECT_FALSE(parseProgram(text, 0)) << text;
  std::string nested(100000, '[');
  EXPECT_FALSE(parseProgram(nested, 0));
  std::string good = toJson(everything().program);
  std::string unknown = good;
  unknown.replace(unknown.find("\"gelu\""), 6, "\"silu\"");
  auto refused = parseProgram(unknown, 128);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.message().find("'silu' is not a valid epilogue"), std::string::npos)
      << refused.message();
  // Remove each field in turn: it is optional, or the message names it.
  for (const char *field : {"\"meshes\"", "\"kernels\"", "\"homes\"", "\"op\"", "\"order\"",
                            "\"src\"", "\"bytes\"", "\"space\"", "\"layout\"", "\"dims\""}) {
    std::string damaged = good;
    damaged.replace(damaged.find(field) + 1, 1, "_");
    EXPECT_FALSE(parseProgram(damaged, 128)) << field;
  }
}
