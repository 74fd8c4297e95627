//===- ProgramTesting.cpp - Compiling and running local views -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramTesting.h"

#include "tessera/Codegen/Compile.h"
#include "tessera/Codegen/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"

#include <cmath>
#include <cstring>
#include <map>
#include <random>

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen::testing;

namespace {
template <typename T> void store(std::byte *at, double value) {
  T typed = static_cast<T>(value);
  std::memcpy(at, &typed, sizeof(T));
}
template <typename T> double load(const std::byte *at) {
  T typed;
  std::memcpy(&typed, at, sizeof(T));
  return static_cast<double>(typed);
}

void storeAs(runtime::DType dtype, std::byte *at, double value) {
  using runtime::DType;
  switch (dtype) {
  case DType::f64:
    return store<double>(at, value);
  case DType::f32:
    return store<float>(at, value);
  case DType::i64:
  case DType::index:
    return store<int64_t>(at, value);
  case DType::i32:
    return store<int32_t>(at, value);
  case DType::i1:
  case DType::i8:
    return store<int8_t>(at, value);
  case DType::f16: {
    uint16_t bits = runtime::floatToHalf(static_cast<float>(value));
    std::memcpy(at, &bits, 2);
    return;
  }
  default:
    FAIL() << "element type without a test";
  }
}

double loadAs(runtime::DType dtype, const std::byte *at) {
  using runtime::DType;
  switch (dtype) {
  case DType::f64:
    return load<double>(at);
  case DType::f32:
    return load<float>(at);
  case DType::i64:
  case DType::index:
    return load<int64_t>(at);
  case DType::i32:
    return load<int32_t>(at);
  case DType::i1:
  case DType::i8:
    return load<int8_t>(at);
  case DType::f16: {
    uint16_t bits;
    std::memcpy(&bits, at, 2);
    return runtime::halfToFloat(bits);
  }
  default:
    ADD_FAILURE() << "element type without a test";
    return 0;
  }
}

/// Calls f(local element, global element or -1) for every element of a device's buffer.
void forEachElement(const sharding::Layout &layout, const sharding::Mesh &mesh, int64_t position,
                    llvm::function_ref<void(int64_t, int64_t)> f) {
  sharding::Box span = layout.span(mesh, mesh.coordinate(position));
  int64_t count = span.numElements();
  for (int64_t local = 0; local < count; ++local) {
    int64_t rest = local, global = 0, scale = 1;
    bool inside = true;
    for (int64_t dim = static_cast<int64_t>(span.size.size()) - 1; dim >= 0; --dim) {
      int64_t index = rest % span.size[dim] + span.offset[dim];
      rest /= span.size[dim];
      inside &= index >= 0 && index < layout.globalShape[dim];
      global += index * scale;
      scale *= layout.globalShape[dim];
    }
    f(local, inside ? global : -1);
  }
}

int countSteps(const runtime::StepList &steps, const std::string &op) {
  int count = 0;
  for (const runtime::Step &step : steps) {
    static const char *kNames[] = {"launch", "gemm", "collective", "transfer", "wait",
                                   "copy",   "loop", "while",      "if"};
    count += op == kNames[step.action.index()];
    if (auto *loop = std::get_if<runtime::LoopStep>(&step.action))
      count += countSteps(loop->body, op);
    if (auto *loop = std::get_if<runtime::WhileStep>(&step.action))
      count += countSteps(loop->before, op) + countSteps(loop->body, op);
    if (auto *branch = std::get_if<runtime::IfStep>(&step.action))
      count += countSteps(branch->thenSteps, op) + countSteps(branch->elseSteps, op);
  }
  return count;
}
} // namespace

void Program::open(const std::string &text) {
  DialectRegistry registry;
  codegen::registerKernelDialects(registry);
  registry.insert<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect, math::MathDialect,
                  scf::SCFDialect, tensor::TensorDialect, dist::DistDialect, rt::RtDialect>();
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  ScopedDiagnosticHandler handler(&context, [](Diagnostic &diagnostic) {
    ADD_FAILURE() << diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return;
  codegen::ArtifactOptions options;
  options.cpu.useCache = false;
  FailureOr<runtime::Artifact> compiled = codegen::compileToArtifact(*module, options);
  if (failed(compiled))
    return;
  // Through the bytes of a file, like every program.
  runtime::Bytes bytes = runtime::serialize(*compiled);
  auto parsed = runtime::parseArtifact(bytes.data(), bytes.size(), "test");
  ASSERT_TRUE(static_cast<bool>(parsed)) << parsed.message();
  artifact = std::make_shared<runtime::Artifact>(std::move(*parsed));
  auto backend = runtime::findBackend("threads");
  ASSERT_TRUE(static_cast<bool>(backend)) << backend.message();
  runtime::BackendOptions backendOptions;
  backendOptions.cores = 2;
  auto opened = backend->open(artifact, backendOptions, backend->userData);
  ASSERT_TRUE(static_cast<bool>(opened)) << opened.message();
  executor = std::move(*opened);
}

void Program::set(const std::string &name, const std::vector<double> &global) {
  ASSERT_TRUE(valid());
  int64_t index = program().findArgument(name);
  ASSERT_GE(index, 0) << name;
  const runtime::Argument &argument = program().arguments[index];
  int64_t size = runtime::sizeOf(argument.dtype);
  for (const runtime::Home &home : argument.homes) {
    const sharding::Mesh &mesh = program().meshOf(home);
    const sharding::Mesh &partMesh = program().meshes[program().parts[home.part].mesh];
    for (int64_t position = 0; position < mesh.numDevices(); ++position) {
      std::vector<std::byte> buffer(*runtime::elementCount(home.layout.localShape()) * size);
      double padding = runtime::isFloat(argument.dtype) ? std::nan("") : 1e5;
      forEachElement(home.layout, mesh, position, [&](int64_t local, int64_t element) {
        storeAs(argument.dtype, buffer.data() + local * size,
                element < 0 ? padding : global[element]);
      });
      runtime::Status status =
          executor->writeSlot(home.part, partMesh.positionOf(mesh.processIds[position]), home.slot,
                              buffer.data(), buffer.size());
      ASSERT_TRUE(status.ok()) << status.message();
    }
  }
}

void Program::run() {
  ASSERT_TRUE(valid());
  runtime::Status status = executor->run();
  ASSERT_TRUE(status.ok()) << status.message();
}

std::vector<double> Program::get(const std::string &name) {
  int64_t index = valid() ? program().findResult(name) : -1;
  if (index < 0) {
    ADD_FAILURE() << "no result " << name;
    return {};
  }
  const runtime::Result &result = program().results[index];
  const runtime::Home &home = result.home;
  const sharding::Mesh &mesh = program().meshOf(home);
  const sharding::Mesh &partMesh = program().meshes[program().parts[home.part].mesh];
  int64_t size = runtime::sizeOf(result.dtype);
  std::vector<double> global(*runtime::elementCount(result.globalShape));
  std::vector<bool> seen(global.size());
  for (int64_t position = 0; position < mesh.numDevices(); ++position) {
    std::vector<std::byte> buffer(*runtime::elementCount(home.layout.localShape()) * size);
    runtime::Status status =
        executor->readSlot(home.part, partMesh.positionOf(mesh.processIds[position]), home.slot,
                           buffer.data(), buffer.size());
    EXPECT_TRUE(status.ok()) << status.message();
    forEachElement(home.layout, mesh, position, [&](int64_t local, int64_t element) {
      if (element < 0)
        return;
      double value = loadAs(result.dtype, buffer.data() + local * size);
      if (seen[element])
        EXPECT_EQ(global[element], value) << name << " differs between devices at " << element;
      global[element] = value;
      seen[element] = true;
    });
  }
  return global;
}

int Program::count(const std::string &op) const {
  int total = 0;
  for (const runtime::Part &part : artifact->program.parts)
    total += countSteps(part.steps, op);
  return total;
}

std::vector<double> tessera::codegen::testing::numbers(size_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<double> values(n);
  for (double &value : values)
    value = static_cast<float>(generator() / 2147483648.0 - 1.0);
  return values;
}

std::vector<double> tessera::codegen::testing::multiply(const std::vector<double> &a,
                                                        const std::vector<double> &b, size_t m,
                                                        size_t k, size_t n) {
  std::vector<double> c(m * n, 0.0);
  for (size_t i = 0; i < m; ++i)
    for (size_t l = 0; l < k; ++l)
      for (size_t j = 0; j < n; ++j)
        c[i * n + j] += a[i * k + l] * b[l * n + j];
  return c;
}

void tessera::codegen::testing::expectClose(const std::vector<double> &actual,
                                            const std::vector<double> &expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  double square = 0;
  for (double value : expected)
    square += value * value;
  double scale = std::sqrt(square / std::max<size_t>(1, expected.size()));
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], tolerance * std::max(scale, std::abs(expected[i])))
        << "at " << i;
}
