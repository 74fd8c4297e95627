//===- DriverTest.cpp - Running programs like the tools -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

#include "tessera/Runtime/CommandLine/Driver.h"
#include "tessera/Runtime/CommandLine/Npy.h"

#include <sys/stat.h>
#include <unistd.h>

using namespace tessera::runtime;

namespace {

/// w' = w + x·1 over two devices: x (4x3) cut by rows is summed over its rows into a partial, which
/// is reduced into w, and w feeds the next step. `count` is the scalar result.
std::shared_ptr<Artifact> accumulate(int64_t n = 2) {
  ProgramBuilder b;
  int64_t m = b.mesh(makeMesh({n}, 0, "pod")), p = b.part(m);
  const Mesh mesh = b.program.meshes[m];
  AxisRef a = whole(mesh, 0);
  Layout rows = layoutOf({4, 3}, {{a}, {}}), full = replicated({1, 3});
  Layout partial = layoutOf({1, 3}, {{}, {}}, {{a, ReduceKind::sum}});
  Layout ones = layoutOf({1, 4}, {{}, {a}}), scalar = replicated({});
  int64_t x = b.argument("x", p, DType::f32, rows), o = b.argument("ones", p, DType::f32, ones);
  int64_t w = b.argument("w", p, DType::f32, partial);
  int64_t y = b.slot(p, DType::f32, full), first = b.slot(p, DType::f32, scalar);
  int64_t local = 4 / n;
  GemmStep gemm; // contributions are added to the rest of w, which is partial
  gemm.a = o, gemm.b = x, gemm.c = w;
  gemm.m = 1, gemm.n = 3, gemm.k = local;
  gemm.lda = local, gemm.ldb = 3, gemm.ldc = 3;
  gemm.accumulate = true;
  b.add(p, gemm);
  b.add(p, b.collective(CollectiveKind::all_reduce, m, w, y, DType::f32, partial, full));
  b.add(p, CopyStep{y, first, 4});
  b.result("w", p, w, partial);
  b.program.results[0].feeds = 2;
  b.result("first", p, first, scalar);
  b.result("y", p, y, full);
  auto artifact = std::make_shared<Artifact>();
  artifact->program = b.program;
  artifact->report = R"({"summary": "1 all_reduce\n"})";
  return artifact;
}

class Driver : public testing::Test {
protected:
  void SetUp() override {
    folder = testing::TempDir() + "/tessera_driver_" + std::to_string(::getpid());
    ::mkdir(folder.c_str(), 0777);
    options.quiet = true;
    options.cores = 2;
    write("ones.npy", {1, 4}, [](int64_t) { return 1.0; });
    write("w.npy", {1, 3}, [](int64_t) { return 0.0; });
    write("x.npy", {4, 3}, [](int64_t i) { return static_cast<double>(i); });
    write("xs.npy", {3, 4, 3}, [](int64_t i) { return static_cast<double>(i / 12); });
    options.inputs = {{"ones", file("ones.npy")}, {"w", file("w.npy")}};
  }
  void TearDown() override {
    for (const char *name : {"ones.npy", "w.npy", "x.npy", "xs.npy", "y.npy", "r.json", "t.json"})
      ::unlink(file(name).c_str());
    ::rmdir(folder.c_str());
  }
  std::string file(const std::string &name) const { return folder + "/" + name; }
  void write(const std::string &name, const Shape &shape, double (*value)(int64_t)) {
    HostTensor tensor = HostTensor::zeros(DType::f32, shape);
    for (int64_t i = 0; i < tensor.numElements(); ++i)
      writeElement(DType::f32, value(i), tensor.data.data() + i * 4);
    ASSERT_TRUE(writeNpy(file(name), tensor).ok());
  }
  std::string errorOf() {
    auto report = runProgram(accumulate(), options);
    return report ? "" : report.message();
  }
  DriverOptions options;
  std::string folder;
};

} // namespace

TEST_F(Driver, ResultsFeedTheNextStep) {
  options.inputs.emplace_back("x", file("x.npy"));
  options.steps = 3;
  for (int64_t n : {1, 2, 4}) {
    auto report = runProgram(accumulate(n), options);
    ASSERT_TRUE(report) << report.message();
    EXPECT_EQ(report->steps, 3);
    ASSERT_EQ(report->results.size(), 3u);
    // Columns of x sum to 18, 22, 26.
    EXPECT_EQ(report->results[2].value.number(0), 54);
    EXPECT_EQ(report->results[2].value.number(2), 78);
    EXPECT_EQ(report->results[0].value.data, report->results[2].value.data)
        << "the driver reduces a partial result";
    ASSERT_EQ(report->scalars.size(), 3u);
    EXPECT_EQ(report->scalars[1][0], 36);
    if (n == 2) {
      EXPECT_EQ(report->countedWireBytes(), 3 * 12);
    }
  }
}

TEST_F(Driver, StreamsGiveAValueEveryStep) {
  options.streams = {{"x", file("xs.npy")}};
  auto report = runProgram(accumulate(), options);
  ASSERT_TRUE(report) << report.message();
  EXPECT_EQ(report->steps, 3) << "as long as the stream";
  EXPECT_EQ(report->results[2].value.number(0), 4 * (0 + 1 + 2));
  options.steps = 4;
  EXPECT_NE(errorOf().find("holds 3 steps of 'x'"), std::string::npos);
}

TEST_F(Driver, UnsetArgumentsAreRandomAndReproducible) {
  options.seed = 5;
  auto one = runProgram(accumulate(1), options), four = runProgram(accumulate(4), options);
  ASSERT_TRUE(one && four);
  EXPECT_TRUE(checkAgainst(*four, *one));
  ASSERT_EQ(four->checks.size(), 3u);
  options.seed = 6;
  auto other = runProgram(accumulate(1), options);
  EXPECT_FALSE(checkAgainst(*other, *one));
}

TEST_F(Driver, ChecksCoverEveryStep) {
  options.inputs.emplace_back("x", file("x.npy"));
  options.steps = 3;
  auto a = runProgram(accumulate(), options), b = runProgram(accumulate(1), options);
  ASSERT_TRUE(a && b);
  EXPECT_TRUE(checkAgainst(*a, *b));
  a->scalars[0][0] = 7;
  EXPECT_FALSE(checkAgainst(*a, *b));
  EXPECT_NE(a->checks[1].text.find("step 1"), std::string::npos) << a->checks[1].text;
}

TEST_F(Driver, WritesOutputs) {
  options.inputs.emplace_back("x", file("x.npy"));
  options.outputs = {{"y", file("y.npy")}};
  options.jsonPath = file("r.json");
  options.tracePath = file("t.json");
  ASSERT_EQ(runDriver(accumulate(), options), 0);
  auto y = readNpy(file("y.npy"));
  ASSERT_TRUE(y) << y.message();
  EXPECT_EQ(y->number(1), 22);
  auto json = readFile(file("r.json"));
  ASSERT_TRUE(json);
  std::string text(reinterpret_cast<const char *>(json->data()), json->size());
  for (const char *expected : {"\"checksum\"", "\"counted_wire_bytes\": 12", "\"steps\": 1",
                               "\"kind\": \"all_reduce\"", "\"value\": 18"})
    EXPECT_NE(text.find(expected), std::string::npos) << expected << "\n" << text;
  EXPECT_NE(text.find(hexText(y->checksum())), std::string::npos);
  EXPECT_TRUE(readFile(file("t.json")));
  EXPECT_EQ(planSummary(*accumulate()), "1 all_reduce\n");
}

TEST_F(Driver, ErrorMessages) {
  DriverOptions good = options;
  struct {
    std::function<void(DriverOptions &)> change;
    std::vector<const char *> expected;
  } table[] = {
      {[](DriverOptions &o) { o.inputs.emplace_back("q", "q.npy"); }, {"--input q", "x, ones, w"}},
      {[&](DriverOptions &o) { o.inputs.emplace_back("w", file("w.npy")); }, {"duplicate value"}},
      {[](DriverOptions &o) { o.inputs.emplace_back("x", "/no/such.npy"); },
       {"--input x", "/no/such.npy", "No such file"}},
      {[&](DriverOptions &o) { o.inputs.emplace_back("x", file("w.npy")); },
       {"w.npy", "1x3xf32", "expected 4x3xf32"}},
      {[&](DriverOptions &o) { o.streams.emplace_back("x", file("x.npy")); },
       {"--stream x", "expected 4x4x3xf32"}},
      {[&](DriverOptions &o) {
         o.inputs.pop_back();
         o.streams.emplace_back("w", file("w.npy"));
       },
       {"--stream w", "feeds this argument"}},
      {[](DriverOptions &o) { o.outputs.emplace_back("z", "z.npy"); },
       {"--output z", "w, first, y"}},
      {[](DriverOptions &o) { o.outputs.emplace_back("y", "/no/such/y.npy"); }, {"/no/such/y.npy"}},
      {[](DriverOptions &o) { o.steps = 0; }, {"--steps 0"}},
      {[](DriverOptions &o) { o.devices = 1; }, {"'pod'", "2 devices", "--devices is 1"}},
      {[](DriverOptions &o) { o.backend = "gpu"; }, {"'gpu'", "threads"}},
  };
  for (auto &row : table) {
    options = good;
    row.change(options);
    std::string message = errorOf();
    for (const char *expected : row.expected)
      EXPECT_NE(message.find(expected), std::string::npos) << expected << " in: " << message;
  }
  EXPECT_FALSE(parseNamedFile("--input", "x"));
  EXPECT_FALSE(parseNamedFile("--input", "=f.npy"));
  EXPECT_EQ(parseNamedFile("--input", "x=a=b")->second, "a=b");
}

TEST_F(Driver, OverwrittenArgumentsAreWrittenAgain) {
  // The step adds its input to itself in place: without feeds each step sees the same input.
  ProgramBuilder b;
  int64_t m = b.mesh(makeMesh({2})), p = b.part(m);
  Layout partial = layoutOf({2}, {{}}, {{whole(b.program.meshes[m], 0), ReduceKind::avg}});
  int64_t x = b.argument("x", p, DType::f32, partial);
  CollectiveStep step = b.collective(
      CollectiveKind::all_reduce, m, x, x, DType::f32,
      layoutOf({2}, {{}}, {{whole(b.program.meshes[m], 0), ReduceKind::sum}}), replicated({2}));
  b.add(p, step);
  b.result("y", p, x, replicated({2}));
  auto artifact = std::make_shared<Artifact>();
  artifact->program = b.program;
  DriverOptions plain;
  plain.quiet = true;
  plain.steps = 3;
  auto report = runProgram(artifact, plain);
  plain.steps = 1;
  auto once = runProgram(artifact, plain);
  ASSERT_TRUE(report && once);
  EXPECT_EQ(report->results[0].value.data, once->results[0].value.data);
}
