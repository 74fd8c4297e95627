//===- Target.h - The machine whose code an artifact contains ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// No LLVM header here: the tool's main and the Python module include this file.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_TARGET_H
#define TESSERA_CODEGEN_TARGET_H

#include "tessera/Support/Names.h"

namespace tessera {

/// A backend runs the code of one target (runtime::Backend::target, by name).
enum class Target {
  cpu,
  cuda, ///< NVIDIA's GPUs: cubins and PTX
  stub, ///< the emulated GPU
};
template <> inline constexpr auto kNames<Target> = named("cpu", "cuda", "stub");

} // namespace tessera

#endif // TESSERA_CODEGEN_TARGET_H
