//===- ProgramTesting.h - Compiling and running local views -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_UNITTESTS_CODEGEN_PROGRAMTESTING_H
#define TESSERA_UNITTESTS_CODEGEN_PROGRAMTESTING_H

#include "tessera/Runtime/Session/Backend.h"

#include "gtest/gtest.h"

#include <string>
#include <vector>

namespace tessera::codegen::testing {

/// A program of the local view, compiled and opened on virtual devices. Values are passed as
/// doubles for any element type. Elements beyond the valid extent of a device's buffer are NaN
/// (integers: a large number), so that their use changes results.
class Program {
public:
  /// Compiles and opens; failures fail the test and leave the program invalid.
  explicit Program(const std::string &text) { open(text); }

  bool valid() const { return executor != nullptr; }
  /// Distributes a global value.
  void set(const std::string &argument, const std::vector<double> &global);
  void run();
  /// Assembles a global value; devices that hold the same element must agree bit for bit.
  std::vector<double> get(const std::string &result);

  const runtime::Program &program() const { return artifact->program; }
  /// The number of steps of a kind ("launch" …), including those in loops.
  int count(const std::string &op) const;

private:
  void open(const std::string &text);

  std::shared_ptr<runtime::Artifact> artifact;
  std::unique_ptr<runtime::Executor> executor;
};

/// n numbers in [-1, 1), determined by the seed.
std::vector<double> numbers(size_t n, unsigned seed);
/// Row-major product of m x k and k x n.
std::vector<double> multiply(const std::vector<double> &a, const std::vector<double> &b, size_t m,
                             size_t k, size_t n);
void expectClose(const std::vector<double> &actual, const std::vector<double> &expected,
                 double tolerance = 1e-5);

} // namespace tessera::codegen::testing

#endif // TESSERA_UNITTESTS_CODEGEN_PROGRAMTESTING_H
