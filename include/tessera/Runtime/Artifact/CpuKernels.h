//===- CpuKernels.h - An artifact's kernels for CPUs ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The `kernels` sections of an artifact (docs/step-format.md): all kernels of the program, once for
// each CPU of `--cpu`.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_ARTIFACT_CPUKERNELS_H
#define TESSERA_RUNTIME_ARTIFACT_CPUKERNELS_H

#include "tessera/Runtime/Artifact/Bytes.h"

#include <string>
#include <vector>

namespace tessera::runtime {

/// The kernels compiled for one CPU.
struct CpuKernels {
  std::string cpu;                   ///< LLVM's name
  std::string architecture;          ///< as of tessera::hostArchitecture
  std::vector<std::string> features; ///< required ones of tessera::kernelFeatures
  std::vector<int64_t> tasks;        ///< by kernel: it may be split into ranges of [0, tasks)
  Bytes image;                       ///< a shared object (ELF)
};

/// The variant of most features among those that this machine runs, the first of equal ones. If
/// there is none, the message names the features that each requires and this machine lacks. Null if
/// `variants` is empty.
Expected<const CpuKernels *> chooseKernels(const std::vector<CpuKernels> &variants);

/// Keeps only the variant for `cpu`, an exact name; fails if there is none.
Status keepKernels(std::vector<CpuKernels> &variants, const std::string &cpu);

/// The `kernels` section: everything but the images.
std::string toJson(const std::vector<CpuKernels> &variants);
Expected<std::vector<CpuKernels>> parseCpuKernels(std::string_view text);

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_ARTIFACT_CPUKERNELS_H
