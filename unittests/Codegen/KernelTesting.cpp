//===- KernelTesting.cpp - Compiling and calling kernels in tests ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelTesting.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/APFloat.h"

#include <dlfcn.h>
#include <unistd.h>

namespace tessera::codegen::testing {

Library::Library(const std::string &text, CpuOptions options) {
  if (options.cacheDirectory.empty())
    options.useCache = false;
  mlir::DialectRegistry registry;
  registerKernelDialects(registry);
  mlir::MLIRContext context(registry);
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    message += diagnostic.str() + "\n";
    return mlir::success();
  });
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    return;
  auto compiled = compileKernels(*module, options, &infos);
  if (mlir::failed(compiled))
    return;
  auto *bytes = reinterpret_cast<const char *>(compiled->image.data());
  image.assign(bytes, bytes + compiled->image.size());
  char path[] = "/tmp/tessera-kernel-test-XXXXXX";
  int descriptor = mkstemp(path);
  if (descriptor < 0 || write(descriptor, image.data(), image.size()) != ssize_t(image.size()))
    message += "cannot write the shared object";
  close(descriptor);
  handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    message += dlerror();
  unlink(path);
}

Library::~Library() {
  if (handle)
    dlclose(handle);
}

const KernelInfo &Library::info(const std::string &name) const {
  for (const KernelInfo &info : infos)
    if (info.name == name)
      return info;
  static const KernelInfo none;
  return none;
}

void Library::run(const std::string &name, std::vector<void *> arguments, bool split) const {
  using Kernel = void (*)(void **, int64_t, int64_t);
  auto kernel = reinterpret_cast<Kernel>(dlsym(handle, name.c_str()));
  if (!kernel) {
    fprintf(stderr, "no kernel '%s'\n", name.c_str());
    abort();
  }
  int64_t tasks = info(name).tasks;
  if (!split)
    return kernel(arguments.data(), 0, tasks);
  for (int64_t task = tasks; task-- > 0;)
    kernel(arguments.data(), task, task + 1);
}

static float widen(uint16_t bits, const llvm::fltSemantics &semantics) {
  llvm::APFloat value(semantics, llvm::APInt(16, bits));
  bool lost;
  value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &lost);
  return value.convertToFloat();
}

static uint16_t narrow(float number, const llvm::fltSemantics &semantics) {
  llvm::APFloat value(number);
  bool lost;
  value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &lost);
  return uint16_t(value.bitcastToAPInt().getZExtValue());
}

float fromBF16(uint16_t value) {
  return widen(value, llvm::APFloat::BFloat());
}
uint16_t toBF16(float value) {
  return narrow(value, llvm::APFloat::BFloat());
}
float fromF16(uint16_t value) {
  return widen(value, llvm::APFloat::IEEEhalf());
}
uint16_t toF16(float value) {
  return narrow(value, llvm::APFloat::IEEEhalf());
}

CpuOptions plain() {
  CpuOptions options;
  options.vectorise = false;
  return options;
}

CpuOptions best() {
  return {};
}

} // namespace tessera::codegen::testing
