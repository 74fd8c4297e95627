//===- Cudnn.h - Convolutions by cuDNN --------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The backend API of cuDNN 9: descriptors with attributes. An operation becomes a
// graph, heuristics list engines for it, and an engine becomes a plan. All of that
// happens while a program is opened; a step only executes plans, which CUDA graphs
// may capture.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GPU_CUDA_CUDNN_H
#define TESSERA_LIB_RUNTIME_GPU_CUDA_CUDNN_H

#include "CudaApi.h"
#include "tessera/Runtime/Artifact/GpuKernels.h"

#include <map>

namespace tessera::runtime::gpu {

class Cudnn {
public:
  /// Limit on the workspace of a plan, in bytes: NVIDIA's heuristics sometimes rank engines with a
  /// larger one first, for little gain.
  static constexpr int64_t kMostWorkspace = int64_t(256) << 20;

  /// Opens the library on the current GPU.
  Status open();
  bool isOpen() const { return handle != nullptr; }
  /// Frees its resources; no work may be running.
  void close();
  /// Like CublasLt::useTf32; call it before convolutions are prepared.
  void useTf32() { tf32 = true; }
  /// Chooses the plan of a convolution: the first one of the library that is exact enough and
  /// reproducible. Returns the bytes of its workspace; nothing without such a plan, with the
  /// library's status in `status`.
  std::optional<int64_t> prepare(const GpuConvolution &convolution, int &status);
  /// Executes the plan on a stream; `slots` are those of the launch step. Returns false, without an
  /// effect, if there is no plan.
  Expected<bool> convolve(const GpuConvolution &convolution, const std::vector<void *> &slots,
                          void *workspace, CuStream stream);

private:
  /// Finds the functions and initializes the library.
  Status begin();

  using Status_t = int;
  using Descriptor = void *;
  struct Plan {
    Descriptor plan = nullptr;
    std::vector<Descriptor> parts; ///< descriptors that the plan uses
    int64_t workspace = 0;
  };
  struct Builder;

  SharedLibrary library;
  bool tf32 = false;
  void *handle = nullptr;
  std::map<const GpuConvolution *, Plan> plans; ///< looked up; iterated only to free them
  Status_t (*create)(void **) = nullptr;
  Status_t (*destroy)(void *) = nullptr;
  Status_t (*setStream)(void *, CuStream) = nullptr;
  Status_t (*createDescriptor)(int type, Descriptor *) = nullptr;
  Status_t (*destroyDescriptor)(Descriptor) = nullptr;
  Status_t (*finalize)(Descriptor) = nullptr;
  Status_t (*setAttribute)(Descriptor, int name, int type, int64_t count, const void *) = nullptr;
  Status_t (*getAttribute)(Descriptor, int name, int type, int64_t requested, int64_t *count,
                           void *) = nullptr;
  Status_t (*execute)(void *handle, Descriptor plan, Descriptor pack) = nullptr;
};

} // namespace tessera::runtime::gpu

#endif // TESSERA_LIB_RUNTIME_GPU_CUDA_CUDNN_H
