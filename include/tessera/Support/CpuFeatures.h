//===- CpuFeatures.h - Features of CPUs that kernels use --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernel compiler uses these features and no others, and the runtime detects each of them: so
// kernels never execute an instruction that a machine lacks.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_CPUFEATURES_H
#define TESSERA_SUPPORT_CPUFEATURES_H

#include <span>
#include <string>
#include <vector>

namespace tessera {

/// "x86-64", "aarch64", or "unknown": of this process.
const char *hostArchitecture();

/// The features of an architecture, by LLVM's names, that kernels may use beyond its baseline
/// (x86-64: SSE2; aarch64: NEON). Empty for other architectures.
std::span<const char *const> kernelFeatures(const std::string &architecture);

/// Those of this machine's architecture that its CPU and operating system have, in that order.
const std::vector<std::string> &hostFeatures();

/// Instructions for products of 16-bit floats, which only the runtime's own products use. Each
/// member: the CPU has them and the operating system lets this process use them.
struct ProductFeatures {
  bool avx512Bf16 = false; ///< vdpbf16ps
  bool amxBf16 = false;    ///< tdpbf16ps
  bool amxFp16 = false;    ///< tdpfp16ps
};

/// Those of this machine. Where the CPU has AMX, this asks the system for its tile registers.
const ProductFeatures &productFeatures();

/// LLVM's name of a common CPU whose kernels this machine runs: "x86-64-v3", "aarch64".
std::string portableCpu();

} // namespace tessera

#endif // TESSERA_SUPPORT_CPUFEATURES_H
