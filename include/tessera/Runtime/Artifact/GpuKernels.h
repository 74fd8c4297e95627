//===- GpuKernels.h - An artifact's kernels for a GPU -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The `gpu` section of an artifact (docs/step-format.md): the grid launches of every kernel of the
// program, and machine code for one or several architectures.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_ARTIFACT_GPUKERNELS_H
#define TESSERA_RUNTIME_ARTIFACT_GPUKERNELS_H

#include "tessera/Runtime/Artifact/Bytes.h"
#include "tessera/Runtime/Artifact/Program.h"

#include <array>
#include <optional>

namespace tessera::runtime {

/// An argument of a grid launch, a bare pointer: the start of a slot of the launch step, or an
/// address in the workspace of the kernel.
struct GpuArgument {
  int64_t slot = -1;   ///< index into LaunchStep::slots; -1: the workspace
  int64_t offset = 0;  ///< bytes within the workspace, a multiple of 64; 0 for a slot
  int64_t bytes = 0;   ///< that the launch may access from there
  bool writes = false; ///< whether it may write there; otherwise it only reads
};

/// The precision of f32 products for which a launch is. A kernel may have two lists of launches,
/// one that rounds operands to TF32 (`high`) and one that does not.
enum class GpuPrecision { any, highest, high };

/// One grid launch.
struct GpuLaunch {
  std::string symbol;
  std::array<int64_t, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  int64_t sharedBytes = 0; ///< dynamic shared memory of a block
  std::vector<GpuArgument> arguments;
  GpuPrecision precision = GpuPrecision::any;

  /// Whether the launch is a part of its kernel if TF32 is enabled or not.
  bool runs(bool tf32) const {
    return precision != (tf32 ? GpuPrecision::highest : GpuPrecision::high);
  }
};

/// A kernel that a library can replace: the convolution y = x * w over windows, or one of its
/// derivatives. Sums are f32.
struct GpuConvolution {
  enum class Kind { forward, byInput, byWeights };
  /// Dimensions are images, channels and positions; for weights output channels, channels of a
  /// group and positions. The channels of x divided by those of w give the number of groups.
  struct Operand {
    int64_t slot = 0, offset = 0; ///< of the first element, in elements
    std::vector<int64_t> shape, strides;
  };
  Kind kind = Kind::forward;
  DType dtype = DType::f32;  ///< of the multiplied operands
  DType result = DType::f32; ///< of what is computed (y, dx or dw)
  Operand x, w, y;
  std::vector<int64_t> padding, strides, dilations; ///< by dimension of the positions

  /// The type of x (byInput), w (byWeights) or y (forward), each named by the kind that computes
  /// it.
  DType typeOf(Kind computes) const { return kind == computes ? result : dtype; }
};

/// A kernel of Program::kernels on a GPU: launches that run in order on one stream, over a
/// workspace whose contents are live only from the first to the last of them.
struct GpuKernel {
  std::vector<GpuLaunch> launches;           ///< may be empty: a kernel that computes nothing
  int64_t workspaceBytes = 0;                ///< aligned to 256 bytes
  std::optional<GpuConvolution> convolution; ///< computed by the launches if not by a library
};

/// Code for one architecture: "sm_80", "sm_90a" (a cubin), "compute_80" (PTX text), "stub" (a
/// shared object for the CPU, StubKernel.h). Several images may be for one architecture.
struct GpuImage {
  std::string arch;
  std::vector<std::string> symbols; ///< of the launches that it defines
  Bytes code;
};

/// The `gpu` section: the launches of each kernel, and the code that defines them.
struct GpuModule {
  std::vector<GpuKernel> kernels; ///< in the order of Program::kernels
  std::vector<GpuImage> images;

  /// Whether the artifact has no section `gpu`.
  bool empty() const { return kernels.empty() && images.empty(); }
  /// The architectures of the images, each once, in order of appearance.
  std::vector<std::string> architectures() const;
  /// The same for a message: "sm_80, sm_90a".
  std::string architecturesText() const;
};

/// The bytes of the section.
Bytes serialize(const GpuModule &module);
/// Parses them. Errors name the place: "gpu.kernels[2].launches[0].grid: expected an integer".
Expected<GpuModule> parseGpuModule(const std::byte *data, size_t size);

/// Checks a module against its program: the number of kernels, limits of grids and blocks,
/// arguments within the slots of every step that launches them (and written only if the step
/// writes) or within the workspace, and that the images of each architecture define every launch
/// once.
Status verify(const GpuModule &module, const Program &program);

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_ARTIFACT_GPUKERNELS_H
