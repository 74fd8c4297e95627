//===- KernelTesting.h - Compiling and calling kernels in tests -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_UNITTESTS_CODEGEN_KERNELTESTING_H
#define TESSERA_UNITTESTS_CODEGEN_KERNELTESTING_H

#include "KernelTexts.h"

#include "tessera/Codegen/CPU/KernelCompiler.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace tessera::codegen::testing {

/// A compiled module of kernels, loaded into this process.
class Library {
public:
  /// Compiles `text`, a list of kernel functions. The cache is off unless `options` name a
  /// directory.
  explicit Library(const std::string &text, CpuOptions options = {});
  ~Library();
  Library(const Library &) = delete;
  Library &operator=(const Library &) = delete;

  bool valid() const { return handle != nullptr; }
  /// Diagnostics of the compiler, or the error of dlopen.
  const std::string &error() const { return message; }
  const KernelInfo &info(const std::string &name) const;
  const std::vector<char> &bytes() const { return image; }
  /// Runs all tasks of a kernel; `split` runs them one by one, the last first.
  void run(const std::string &name, std::vector<void *> arguments, bool split = false) const;

private:
  std::vector<char> image;
  std::vector<KernelInfo> infos;
  std::string message;
  void *handle = nullptr;
};

/// A dense buffer aligned for kernels, followed by a guard that `intact` checks.
template <typename T> class Buffer {
public:
  explicit Buffer(size_t size, T value = T()) : size_(size) {
    storage.resize(size * sizeof(T) + 256, kGuard);
    size_t address = reinterpret_cast<size_t>(storage.data());
    begin_ = reinterpret_cast<T *>((address + 63) / 64 * 64);
    std::fill(begin_, begin_ + size, value);
  }
  Buffer(Buffer &&) = default;
  T *data() { return begin_; }
  size_t size() const { return size_; }
  T &operator[](size_t i) { return begin_[i]; }
  T operator[](size_t i) const { return begin_[i]; }
  T *begin() { return begin_; }
  T *end() { return begin_ + size_; }
  bool intact() const {
    auto *after = reinterpret_cast<const unsigned char *>(begin_ + size_);
    return std::all_of(after, after + 64, [](unsigned char c) { return c == kGuard; });
  }

private:
  static constexpr unsigned char kGuard = 0xA5;
  size_t size_;
  std::vector<unsigned char> storage;
  T *begin_;
};

/// Values in [-1, 1) from a fixed seed.
template <typename T> Buffer<T> randomBuffer(size_t size, unsigned seed) {
  Buffer<T> buffer(size);
  std::mt19937 generator(seed);
  for (T &value : buffer)
    value = T(double(generator()) / 2147483648.0 - 1.0);
  return buffer;
}

/// Integers in [low, high).
template <typename T> Buffer<T> randomIntegers(size_t size, int low, int high, unsigned seed) {
  Buffer<T> buffer(size);
  std::mt19937 generator(seed);
  for (T &value : buffer)
    value = T(low + int(generator() % unsigned(high - low)));
  return buffer;
}

float fromBF16(uint16_t value);
uint16_t toBF16(float value);
float fromF16(uint16_t value);
uint16_t toF16(float value);

/// |a - b| <= tolerance * max(|b|, rms of b, floor), and the guard is intact. The floor is for
/// values that may be residuals of cancellation.
template <typename T>
::std::string compare(
    const Buffer<T> &actual, const std::vector<double> &expected, double tolerance,
    std::function<double(T)> read = [](T v) { return double(v); }, double floor = 0) {
  if (actual.size() != expected.size())
    return "sizes differ";
  double squares = 0;
  for (double value : expected)
    squares += std::isfinite(value) ? value * value : 0;
  double rms = expected.empty() ? 0 : std::max(floor, std::sqrt(squares / expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) {
    double a = read(actual[i]), b = expected[i];
    bool same = std::isnan(b)   ? std::isnan(a)
                : std::isinf(b) ? a == b
                                : std::fabs(a - b) <= tolerance * std::max(std::fabs(b), rms);
    if (!same)
      return "element " + std::to_string(i) + ": " + std::to_string(a) + " instead of " +
             std::to_string(b);
  }
  return actual.intact() ? "" : "written beyond its end";
}

/// The two compilation modes; every test uses both.
CpuOptions plain();
CpuOptions best();

} // namespace tessera::codegen::testing

#endif // TESSERA_UNITTESTS_CODEGEN_KERNELTESTING_H
